//! Everything that can go wrong, each as a sentence for the user: what happened, why, what to do.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use crate::{NvvmArch, Origin, Version};

/// Why libNVVM was not found, fetched or loaded, or what it reports about a module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "LIBNVVM_PATH is set to {}, but there is no libnvvm.so; set it to that file, to the folder that holds \
         it or to the root of a CUDA SDK, or unset it.", path.display()
    )]
    NotAtLibnvvmPath { path: PathBuf },

    #[error("GEMM_PTX is none; unset it to have PTX.")]
    NotWanted,

    #[error(
        "libNVVM was not found, and GEMM_NO_FETCH forbids to fetch it; install a CUDA SDK or the Python wheel \
         {wheel}, or set LIBNVVM_PATH to a libnvvm.so."
    )]
    FetchingIsOff { wheel: String },

    #[error(
        "libNVVM was not found, and there is no wheel of it for this kind of machine, which is not x86-64 Linux; \
         set LIBNVVM_PATH to a libnvvm.so."
    )]
    NoWheelForThisMachine,

    #[error(
        "libNVVM was not found, and there is no folder to keep a fetched one in: none of GEMM_CACHE_DIR, \
         XDG_CACHE_HOME and HOME is set; set GEMM_CACHE_DIR to a folder."
    )]
    NoCacheFolder,

    #[error(
        "libNVVM was not found and cannot be fetched, because there is no pip here (tried {tried}); install \
         Python 3 with pip, install a CUDA SDK, or set LIBNVVM_PATH to a libnvvm.so."
    )]
    NoPip { tried: String },

    #[error(
        "libNVVM was not found, and `{command}` did not fetch it; put right what pip says below, install a CUDA \
         SDK, or set LIBNVVM_PATH to a libnvvm.so.\n{output}"
    )]
    PipFailed { command: String, output: String },

    #[error(
        "The fetched file {} is not the expected one (SHA-256 {found} instead of {expected}), so it was thrown \
         away; make sure that pip is configured to fetch from a package index that you trust, and build again.",
        file.display()
    )]
    WrongChecksum {
        file: PathBuf,
        expected: String,
        found: String,
    },

    #[error(
        "The fetched wheel {wheel} cannot be unpacked ({source}); build again to fetch it anew."
    )]
    BadWheel {
        wheel: String,
        source: zip::result::ZipError,
    },

    #[error(
        "libNVVM cannot be kept in {}: {doing} failed ({source}); make that folder writable, or set \
         GEMM_CACHE_DIR to another one.", folder.display()
    )]
    Cache {
        folder: PathBuf,
        doing: &'static str,
        source: io::Error,
    },

    #[error(
        "libNVVM at {} (from {origin}) cannot be loaded ({source}); set LIBNVVM_PATH to the libnvvm.so of another \
         installation, of CUDA 12 or newer.", path.display()
    )]
    Load {
        path: PathBuf,
        origin: Origin,
        source: libloading::Error,
    },

    #[error(
        "libNVVM reports an error in {function}: {message}. This is a bug in its caller: please report it."
    )]
    Call {
        function: &'static str,
        message: String,
    },

    #[error(
        "libNVVM {version} (from {origin}) does not know the architecture {arch}; build for another one, or set \
         LIBNVVM_PATH to the libnvvm.so of another CUDA version."
    )]
    UnknownArch {
        arch: NvvmArch,
        version: Version,
        origin: Origin,
    },

    #[error("libNVVM rejected {module} for {arch}:\n{log}")]
    Rejected {
        module: String,
        arch: NvvmArch,
        /// libNVVM's own words, with lines and columns of the module.
        log: String,
    },

    #[error(
        "libNVVM gave no answer when it was to compile {module} for {arch} ({problem}); if it is not for want of \
         memory, please report this with the kernels."
    )]
    NoAnswer {
        module: String,
        arch: NvvmArch,
        /// How its process ended, or what it reports of a call.
        problem: String,
    },

    #[error(
        "libNVVM had not compiled {module} for {arch} after {seconds} s, and was stopped; set LIBNVVM_TIME_LIMIT to more \
         seconds (0: any number)."
    )]
    TooLong {
        module: String,
        arch: NvvmArch,
        seconds: u32,
    },

    #[error(
        "LIBNVVM_TIME_LIMIT is set to {value:?}, which is not a number of seconds; set it to one from 0 to 4294967295, \
         where 0 means any number, or unset it for 600."
    )]
    TimeLimit { value: OsString },

    #[error(
        "The libNVVM in use (from {origin}) comes without ptxas; set LIBNVVM_PATH or CUDA_HOME to a whole CUDA SDK."
    )]
    NoPtxas { origin: Origin },

    #[error("{} could not be run ({source}); check that it may be executed.", program.display())]
    PtxasNotRun { program: PathBuf, source: io::Error },

    #[error("ptxas rejected the PTX for {sm}:\n{log}")]
    PtxasRejected { sm: String, log: String },

    #[error("{} could not be run ({source}); check that it may be executed.", program.display())]
    NvdisasmNotRun { program: PathBuf, source: io::Error },

    #[error(
        "nvdisasm rejected the machine code that ptxas made; install an nvdisasm of the same CUDA version or a newer one. \
         It says:\n{log}"
    )]
    NvdisasmRejected { log: String },
}

impl Error {
    /// The error of something that went wrong in `folder`.
    pub(crate) fn cache(folder: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        let folder = folder.to_owned();
        move |source| Error::Cache {
            folder,
            doing,
            source,
        }
    }
}
