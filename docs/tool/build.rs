//! Compiles the ladder for one architecture and keeps its NVVM IR, PTX and OpenCL C, which
//! chapters show lines of.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    CudaBuilder::new("../../gpu-kernels")
        .arch(NvvmArch::Compute90)
        .copy_to(out.join("kernels.ptx"))
        .opencl_to(out.join("opencl"))
        .emit_llvm_ir(true)
        .debug(DebugInfo::LineTables)
        .panic_messages(false) // as in the library
        .libnvvm_optional(true)
        .build()?;
    Ok(())
}
