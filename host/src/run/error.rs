//! Why a kernel has no result: the device failed, or the kernel wrote where it must not.

use std::fmt;

use gpu_gemm::{DeviceError, ElementType, PlanError};
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
        multiplies: Vec<ElementType>,
        asked: ElementType,
    },
}

impl From<PlanError> for RunError {
    fn from(error: PlanError) -> Self {
        RunError::Device(error.into())
    }
}

fn names(types: &[ElementType]) -> String {
    let names: Vec<&str> = types.iter().map(|element| element.name()).collect();
    names.join(", ")
}

/// What a kernel wrote that it must not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trespass {
    /// Outside of a buffer: `distance` elements from its end, or before its start if negative.
    Guard { matrix: char, distance: isize },
    /// Into A or B.
    Input { matrix: char, index: usize },
    /// Into C's buffer, but between or beyond the rows of C.
    Padding { index: usize },
}

impl fmt::Display for Trespass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Trespass::Guard { matrix, distance } if distance < 0 => {
                let before = distance.unsigned_abs();
                write!(
                    formatter,
                    "wrote {before} elements before the start of {matrix}'s buffer"
                )
            }
            Trespass::Guard { matrix, distance } => {
                write!(
                    formatter,
                    "wrote {distance} elements past the end of {matrix}'s buffer"
                )
            }
            Trespass::Input { matrix, index } => {
                write!(
                    formatter,
                    "wrote into {matrix}, which it may only read, at element {index} of its buffer"
                )
            }
            Trespass::Padding { index } => {
                write!(
                    formatter,
                    "wrote into the padding between the rows of C, at element {index} of its buffer"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trespass_says_on_which_side() {
        let guard = |distance| {
            let matrix = 'C';
            Trespass::Guard { matrix, distance }.to_string()
        };
        assert_eq!(guard(-2), "wrote 2 elements before the start of C's buffer");
        assert_eq!(guard(0), "wrote 0 elements past the end of C's buffer");
    }
}
