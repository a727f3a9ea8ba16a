//! Why a call ended before its report was complete.

use std::io;

use gpu_gemm::{DataType, DeviceError, ElementType};
use thiserror::Error;

use crate::cpu::TeamError;
use crate::data::ProblemError;
use crate::measure::cublas::CublasError;
use crate::measure::gpu::MeasureError;
use crate::measure::limits::Implausible;
use crate::memory::TooLarge;
use crate::npy::ReadError;
use crate::output::clause;
use crate::run::RunError;
use crate::verify::Failure;

/// Why a call ended before its report was complete.
#[derive(Debug, Error)]
pub enum EvaluateError {
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error(transparent)]
    Problem(#[from] ProblemError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("C cannot be written: {}.", clause(.0))]
    Output(io::Error),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Measure(#[from] MeasureError),
    #[error(transparent)]
    Cublas(#[from] CublasError),
    #[error(transparent)]
    Implausible(#[from] Implausible),
    #[error(
        "The result of {name} ({library}) is wrong, so nothing is compared with its times: {failure}"
    )]
    WrongYardstick {
        name: String,
        /// The library, such as `cuBLAS 13.1.0 from libcublas.so.13`.
        library: String,
        failure: Failure,
    },
    #[error(transparent)]
    Team(#[from] TeamError),
    #[error(
        "cuBLAS, which `--baseline` names, needs a CUDA GPU: leave `--baseline` out, or choose `--device cuda`."
    )]
    BaselineWithoutGpu,
    #[error(
        "cuBLAS, which `--baseline` names, multiplies on one GPU. Leave `--baseline` out; the time of our kernels on one of them is measured anyway."
    )]
    BaselineOfSeveral,
    #[error(
        "`--batch` needs one device: several divide each product, and take one at a time. Leave `--batch` out, or name one device."
    )]
    BatchOnSeveral,
    #[error("{name} is {scalar}, but {}.", required(*.data_type))]
    Scalar {
        /// `alpha` or `beta`.
        name: &'static str,
        scalar: f64,
        data_type: DataType,
    },
}

/// The requirement for alpha and beta, for matrices of this type.
fn required(data_type: DataType) -> String {
    let number = match data_type.c {
        ElementType::I32 => "a whole number",
        _ => "a finite number",
    };
    let scalar = match data_type {
        DataType::I8 | DataType::E4M3 | DataType::E4M3_BF16 => data_type.c.name(),
        _ => data_type.name(),
    };
    format!("for matrices of {data_type} it must be {number} that {scalar} can represent")
}
