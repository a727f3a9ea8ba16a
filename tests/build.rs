//! Compiles the ladder and the probes to PTX for one architecture of each kind that the project supports.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};

const ARCHITECTURES: [NvvmArch; 4] = [
    NvvmArch::Compute75,
    NvvmArch::Compute80,
    NvvmArch::Compute90a,
    NvvmArch::Compute100,
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for kernels in ["../gpu-kernels", "device-kernels"] {
        let name = kernels.trim_start_matches("../");
        for arch in ARCHITECTURES {
            CudaBuilder::new(kernels)
                .arch(arch)
                .copy_to(out.join(format!("{name}.{arch}.ptx")))
                .debug(DebugInfo::LineTables)
                .libnvvm_optional(true)
                .build()?;
        }
    }
    Ok(())
}
