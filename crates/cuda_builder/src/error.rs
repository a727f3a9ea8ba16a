//! What can go wrong, each as a sentence for the user: what happened, why, what to do.

use std::{fmt, io, path::PathBuf};

/// Why there is no PTX. `Debug` writes what `Display` does: `main` of a build script shows an
/// error by `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CudaBuilderError {
    #[error(
        "The environment variable {variable} is not set; cargo sets it for a build script, so call \
         CudaBuilder::build from there."
    )]
    NotInABuildScript { variable: &'static str },

    #[error(
        "There is no crate of kernels in {}, because it has no Cargo.toml; give CudaBuilder::new the crate's \
         folder, relative to that of the crate whose build script this is.", path.display()
    )]
    NoCrate { path: PathBuf },

    #[error("{command} could not be run ({source}); check the installation of Rust.")]
    CargoNotRun { command: String, source: io::Error },

    #[error("The kernels do not compile for the GPU:\n\n{}", diagnostics.concat())]
    KernelsDoNotCompile {
        /// rustc's errors, in its own words.
        diagnostics: Vec<String>,
    },

    #[error("Cargo could not build the kernels for the GPU:\n\n{output}")]
    CargoFailed {
        /// Cargo's own words.
        output: String,
    },

    #[error(
        "rustc's LLVM IR of the kernels cannot be read from {} ({source}); delete the folder {} and build again.",
        path.display(), folder.display()
    )]
    NoIr {
        path: PathBuf,
        folder: PathBuf,
        source: io::Error,
    },

    #[error("{} cannot be written ({source}); make room for it, or make its folder writable.", path.display())]
    NotWritten { path: PathBuf, source: io::Error },

    #[error("{0}")]
    Codegen(#[from] device_codegen::Error),

    #[error(
        "The crate in {} has no kernels; mark a function with #[kernel], and make sure that it is compiled \
         when `--cfg cuda_device` is set.", path.display()
    )]
    NoKernels { path: PathBuf },

    #[error(
        "The kernels call maths functions of libdevice, which libNVVM from {origin} comes without; set \
         LIBNVVM_PATH or CUDA_HOME to a whole CUDA SDK."
    )]
    NoLibdevice { origin: nvvm::Origin },

    #[error(
        "libNVVM rejected {place} ({log}). The IR is kept in {}. This is a bug in device_codegen: please report it \
         with that file.", ir.display()
    )]
    IrRejected {
        /// The kernel or function, or all kernels where libNVVM names no line.
        place: String,
        /// libNVVM's own words.
        log: String,
        /// The file that the IR is kept in.
        ir: PathBuf,
    },

    #[error(
        "libNVVM had not compiled {} for {arch} after {seconds} s, and was stopped; it can take for ever where a loop \
         has been unrolled whose iterations need one another.{} Keep such a loop rolled, by \
         `for i in cuda_std::unroll::<1>(0..n)`, or set LIBNVVM_TIME_LIMIT to more seconds (0: any number).",
        kernels.join(", "),
        most_copied.as_ref().map_or(String::new(), |(place, count)| format!(
            " {count} instructions come from {place}, which is most likely in it."
        ))
    )]
    TooLong {
        /// All that were compiled together.
        kernels: Vec<String>,
        arch: nvvm::NvvmArch,
        seconds: u32,
        /// A place in the source, and how many instructions come from it.
        most_copied: Option<(String, usize)>,
    },

    #[error("{0}")]
    Nvvm(#[from] nvvm::Error),

    #[error(
        "{error}\n\nThe kernels were compiled by rustc {used}; tested is Rust {tested} (LLVM {tested_llvm}). A newer \
         one works as long as the IR of its LLVM is the same. Choose {tested} in rust-toolchain.toml, or with \
         `rustup override set {tested}`."
    )]
    UntestedRust {
        /// What went wrong.
        error: Box<CudaBuilderError>,
        /// The versions of rustc and its LLVM.
        used: String,
        /// The versions that work.
        tested: &'static str,
        tested_llvm: &'static str,
    },
}

impl fmt::Debug for CudaBuilderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
