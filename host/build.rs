//! Compiles the kernels to PTX, which `src/device/ptx.rs` embeds.

use std::path::PathBuf;

use cuda_builder::{CudaBuilder, CudaBuilderError, DebugInfo, NvvmArch};

fn main() -> Result<(), CudaBuilderError> {
    // cargo sets OUT_DIR for every build script.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    CudaBuilder::new("../gpu-kernels")
        .arch(NvvmArch::Compute75)
        .copy_to(out.join("kernels.ptx"))
        .debug(DebugInfo::LineTables)
        .libnvvm_optional(true)
        .build()?;
    Ok(())
}
