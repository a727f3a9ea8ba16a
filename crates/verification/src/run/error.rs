//! Why a kernel has no result: the device failed, or the kernel wrote where it must not.

use gpu_gemm::text::plural;
use gpu_gemm::{DataType, DeviceError, PlanError};
use thiserror::Error;

use crate::data::ProblemError;

/// Why there is no result.
#[derive(Debug, Error)]
pub enum RunError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("Kernel `{kernel}` {what}.")]
    Trespass { kernel: String, what: Trespass },
    /// The host's memory, not the device's.
    #[error(transparent)]
    Host(#[from] ProblemError),
    #[error("Kernel `{kernel}` does not multiply {asked}; it multiplies {}.", names(.multiplies))]
    WrongType {
        kernel: String,
        multiplies: Vec<DataType>,
        asked: DataType,
    },
}

impl From<PlanError> for RunError {
    fn from(error: PlanError) -> Self {
        RunError::Device(error.into())
    }
}

impl RunError {
    /// Converts a kernel's trespass to an error.
    pub fn trespass_of(kernel: &str) -> impl Fn(Trespass) -> RunError {
        move |what| RunError::Trespass {
            kernel: kernel.to_string(),
            what,
        }
    }
}

fn names(types: &[DataType]) -> String {
    let names: Vec<&str> = types.iter().map(|element| element.name()).collect();
    names.join(", ")
}

/// A write where a kernel must not write.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Trespass {
    /// Outside of a buffer: `distance` elements from its end, or before its start if negative.
    #[error("wrote {} {} of {matrix}'s buffer", plural(distance.unsigned_abs(), "element"), side(*distance))]
    Guard { matrix: char, distance: isize },
    /// Into A or B.
    #[error("wrote into {matrix}, which it may only read, at element {index} of its buffer")]
    Input { matrix: char, index: usize },
    /// Into C's buffer, but between or beyond the rows of C.
    #[error("wrote into the padding between the rows of C, at element {index} of its buffer")]
    Padding { index: usize },
}

fn side(distance: isize) -> &'static str {
    match distance {
        ..0 => "before the start",
        _ => "past the end",
    }
}
