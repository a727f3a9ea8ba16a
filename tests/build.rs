//! Compiles what the library does not embed: the probes for one architecture of each kind that
//! the project supports, and the ladder in the dialect of NVVM IR that no embedded architecture
//! has.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};

const BUILDS: [(&str, NvvmArch); 6] = [
    ("../gpu-kernels", NvvmArch::Compute100),
    ("device-kernels", NvvmArch::Compute75),
    ("device-kernels", NvvmArch::Compute80),
    ("device-kernels", NvvmArch::Compute90),
    ("device-kernels", NvvmArch::Compute90a),
    ("device-kernels", NvvmArch::Compute100),
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for (kernels, arch) in BUILDS {
        let name = kernels.trim_start_matches("../");
        CudaBuilder::new(kernels)
            .arch(arch)
            .copy_to(out.join(format!("{name}.{arch}.ptx")))
            .debug(DebugInfo::LineTables)
            .panic_messages(kernels == "device-kernels") // of the ladder none, as in the library
            .libnvvm_optional(true)
            .build()?;
    }
    Ok(())
}
