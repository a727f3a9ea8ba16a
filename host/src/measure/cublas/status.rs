//! The two libraries, their status codes, and what these mean.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;

use gpu_gemm::DataType;
use thiserror::Error;

/// A `cublasHandle_t`, which is also a `cublasLtHandle_t`.
pub(super) type Handle = *mut c_void;

/// One of the two libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    Cublas,
    CublasLt,
}

impl Interface {
    pub const ALL: [Interface; 2] = [Interface::Cublas, Interface::CublasLt];

    pub(super) fn name(self) -> &'static str {
        match self {
            Interface::Cublas => "cublas",
            Interface::CublasLt => "cublaslt",
        }
    }

    /// As NVIDIA spells it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Interface::Cublas => "cuBLAS",
            Interface::CublasLt => "cublasLt",
        }
    }
}

/// Why cuBLAS cannot be measured.
#[derive(Debug, Error, PartialEq)]
pub enum CublasError {
    #[error(
        "There is no cuBLAS (libcublas.so) on this machine. Install a CUDA toolkit or the Python package nvidia-cublas-cu12, or set LIBCUBLAS_PATH to the library or its folder."
    )]
    NotFound,
    #[error("{} cannot be used as cuBLAS: {reason}.", path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error("cuBLAS failed in {function} with status {status}.")]
    Failed {
        function: &'static str,
        status: c_int,
    },
    #[error("cuBLAS does not multiply {0}.")]
    NoSuchType(DataType),
    #[error("{} has no such epilogue: leave out --baseline.", .0.title())]
    NoSuchEpilogue(Interface),
    #[error("cuBLAS does not multiply this type in these layouts: leave out --baseline.")]
    NotSupported,
    #[error("cublasLt proposes no algorithm for this product.")]
    NoAlgorithm,
    #[error("cuBLAS takes dimensions of up to 2147483647 only.")]
    TooLarge,
    #[error("{0}")]
    Device(String),
}

impl CublasError {
    /// The library that multiplies other products, but not this one.
    pub fn unable(&self) -> Option<Interface> {
        match self {
            CublasError::NotSupported => Some(Interface::Cublas),
            CublasError::NoAlgorithm => Some(Interface::CublasLt),
            CublasError::NoSuchEpilogue(interface) => Some(*interface),
            _ => None,
        }
    }
}

/// `CUBLAS_STATUS_NOT_SUPPORTED`: there is no kernel for such a product.
pub(super) const NOT_SUPPORTED: c_int = 15;

/// Whether a function succeeded.
pub(super) fn succeeded(function: &'static str, status: c_int) -> Result<(), CublasError> {
    match status {
        0 => Ok(()),
        status => Err(CublasError::Failed { function, status }),
    }
}

/// Whether a product succeeded.
pub(super) fn supported(function: &'static str, status: c_int) -> Result<(), CublasError> {
    match status {
        NOT_SUPPORTED => Err(CublasError::NotSupported),
        status => succeeded(function, status),
    }
}
