//! The PTX that the build script compiled.

use gpu_gemm::device::ptx;
use nvvm::NvvmArch;

/// A crate of kernels, compiled for one architecture.
#[derive(Clone, Copy)]
pub struct Built {
    pub kernels: &'static str,
    pub arch: NvvmArch,
    /// Empty where the build had no libNVVM.
    pub ptx: &'static str,
}

macro_rules! built {
    ($($kernels:literal for $arch:ident as $name:literal;)*) => {
        /// What this crate's build script compiled.
        const OURS: &[Built] = &[$(
            Built {
                kernels: $kernels,
                arch: NvvmArch::$arch,
                ptx: include_str!(concat!(env!("OUT_DIR"), "/", $kernels, ".", $name, ".ptx")),
            },
        )*];
    };
}

built! {
    "gpu-kernels" for Compute100 as "compute_100";
    "device-kernels" for Compute75 as "compute_75";
    "device-kernels" for Compute80 as "compute_80";
    "device-kernels" for Compute90 as "compute_90";
    "device-kernels" for Compute90a as "compute_90a";
    "device-kernels" for Compute100 as "compute_100";
}

/// Everything that was compiled: the ladder as the library embeds it, and what the build script
/// adds.
pub fn built() -> impl Iterator<Item = Built> {
    let shipped = ptx::EMBEDDED.iter().filter_map(|ptx| {
        let target = ptx::header(ptx).target;
        let arch = NvvmArch::ALL.into_iter().find(|arch| arch.sm() == target)?;
        let kernels = "gpu-kernels";
        Some(Built { kernels, arch, ptx })
    });
    shipped.chain(OURS.iter().copied())
}

/// What the first of [`probes`] is compiled for.
pub const OLDEST: &str = "compute_75";

/// The probes as modules for several architectures, oldest first. The first one every GPU takes.
pub fn probes() -> Vec<&'static str> {
    let probes = OURS
        .iter()
        .filter(|built| built.kernels == "device-kernels");
    probes.map(|built| built.ptx).collect()
}
