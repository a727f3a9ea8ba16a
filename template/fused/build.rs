//! Compiles the kernels to PTX for Ampere and newer, and for Hopper, which `src/main.rs` embeds.

use std::env;
use std::path::PathBuf;

use cuda_builder::{CudaBuilder, CudaBuilderError, NvvmArch};

fn main() -> Result<(), CudaBuilderError> {
    // Cargo sets OUT_DIR for every build script.
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for arch in [NvvmArch::Compute80, NvvmArch::Compute90a] {
        CudaBuilder::new("kernels")
            .arch(arch)
            .copy_to(out.join(format!("{arch}.ptx")))
            .panic_messages(false) // no input makes the library's kernels panic
            .libnvvm_optional(true) // without it: a warning, and the simulator
            .build()?;
    }
    Ok(())
}
