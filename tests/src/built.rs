//! The PTX that the build script compiled.

use nvvm::NvvmArch;

/// The folder of what the build script made.
pub const OUT_DIR: &str = env!("OUT_DIR");

/// A crate of kernels, compiled for one architecture.
pub struct Built {
    pub kernels: &'static str,
    pub arch: NvvmArch,
    /// Empty where the build had no libNVVM.
    pub ptx: &'static str,
}

macro_rules! built {
    ($($kernels:literal for $arch:ident as $name:literal;)*) => {
        /// Everything that was compiled.
        pub const BUILT: &[Built] = &[$(
            Built {
                kernels: $kernels,
                arch: NvvmArch::$arch,
                ptx: include_str!(concat!(env!("OUT_DIR"), "/", $kernels, ".", $name, ".ptx")),
            },
        )*];
    };
}

built! {
    "gpu-kernels" for Compute75 as "compute_75";
    "gpu-kernels" for Compute80 as "compute_80";
    "gpu-kernels" for Compute90a as "compute_90a";
    "gpu-kernels" for Compute100 as "compute_100";
    "device-kernels" for Compute75 as "compute_75";
    "device-kernels" for Compute80 as "compute_80";
    "device-kernels" for Compute90a as "compute_90a";
    "device-kernels" for Compute100 as "compute_100";
}

/// The probes as modules for several architectures, oldest first. The first one every GPU takes.
pub fn probes() -> Vec<&'static str> {
    let probes = BUILT
        .iter()
        .filter(|built| built.kernels == "device-kernels");
    probes.map(|built| built.ptx).collect()
}
