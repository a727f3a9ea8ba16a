//! Errors in matrices.

use gpu_gemm::text::plural;
use thiserror::Error;

/// Why a problem cannot be launched.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ProblemError {
    #[error(
        "A matrix of {} with a leading dimension of {leading} has more elements than memory can address.",
        plural(.rows, "row")
    )]
    Overflow { rows: usize, leading: usize },
    #[error("There is no memory for a matrix of {rows} x {columns}: {bytes} bytes are needed.")]
    OutOfMemory {
        rows: usize,
        columns: usize,
        bytes: usize,
    },
    #[error(
        "The shapes do not fit: A is {} x {}, B is {} x {} and C is {} x {}; they must be m x k, k x n and m x n.",
        a.0, a.1, b.0, b.1, c.0, c.1
    )]
    ShapesDiffer {
        a: (usize, usize),
        b: (usize, usize),
        c: (usize, usize),
    },
    #[error(
        "A or B has a NaN, or a number of magnitude {most:.1e}: there are scales for up to 5e20; \
         divide the matrix by a number, or leave out --scales."
    )]
    NoScale { most: f64 },
}
