//! Compiles the kernels to PTX, which `src/main.rs` embeds.

use std::env;
use std::path::PathBuf;

use cuda_builder::{CudaBuilder, CudaBuilderError, NvvmArch};

fn main() -> Result<(), CudaBuilderError> {
    // Cargo sets OUT_DIR for every build script.
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    CudaBuilder::new("kernels")
        .arch(NvvmArch::Compute75) // for this GPU generation, Turing, and all newer ones
        .copy_to(out.join("kernels.ptx"))
        .libnvvm_optional(true) // without it: a warning, and the simulator
        .build()?;
    Ok(())
}
