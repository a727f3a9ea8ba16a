//! The outcome of a check: what was compared, or what is wrong and where.

use std::fmt;

use thiserror::Error;

use crate::parallel;

use gpu_gemm::ElementType;

/// A wrong element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mismatch {
    pub row: usize,
    pub col: usize,
    pub got: f64,
    pub want: f64,
    /// `|got - want|`; NaN where one of them is not finite.
    pub err: f64,
    /// The largest `err` that would be accepted.
    pub bound: f64,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch {
            row,
            col,
            got,
            want,
            err,
            bound,
        } = self;
        write!(formatter, "C[{row}][{col}] is {got}, but must be {want}")?;
        if *bound > 0.0 && want.is_finite() {
            write!(formatter, " within {bound:.3e}: it is off by {err:.3e}")?;
        }
        write!(formatter, ".")
    }
}

/// The direction of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Row,
    Column,
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Line::Row => "Row",
            Line::Column => "Column",
        })
    }
}

/// Why a result did not pass.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Failure {
    #[error("{0}")]
    Element(Mismatch),
    #[error("Row {row} of C is wrong: it fails Freivalds' check.")]
    Row { row: usize },
    #[error(
        "{line} {index} of C is wrong: its elements, with random signs, add up to {got}, but must add up to {want} within {bound:.3e}."
    )]
    Sum {
        line: Line,
        index: usize,
        got: f64,
        want: f64,
        bound: f64,
    },
    #[error(
        "C[{row}][{col}] is {got}, where the reference, in a wider type, is {want}: its terms add up to {magnitude:.3e} in magnitude, and no {data_type} is larger than {largest:.3e}, so a partial sum has overflowed. Make A or B smaller, or alpha larger, or use a wider type."
    )]
    Overflow {
        row: usize,
        col: usize,
        got: f64,
        want: f64,
        magnitude: f64,
        largest: f64,
        data_type: ElementType,
    },
    #[error(
        "Errors are suspiciously large: {statistic:.1} units of rounding at C[{row}][{col}], where such data stays below {limit:.1}. Each element is within its proven bound, but a term may be missing."
    )]
    Alarm {
        row: usize,
        col: usize,
        statistic: f64,
        limit: f64,
    },
    #[error("The result was right, but that of a launch like the timed ones is not: {0}")]
    Timed(Box<Failure>),
    /// One product of a batch fails, or of the groups.
    #[error("Product {index} of the {of}, counted from 0: {failure}")]
    Product {
        index: usize,
        of: &'static str,
        failure: Box<Failure>,
    },
    #[error("The result cannot be bound: {0}")]
    Unprovable(String),
    #[error("The result is {} x {}, but must be {} x {}.", got.0, got.1, want.0, want.1)]
    WrongShape {
        got: (usize, usize),
        want: (usize, usize),
    },
}

/// A result that passed a gate: what was compared, and the errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// `exact`, `bound`, `sampled` (not every element was compared), `wrapping` or `timed` (for
    /// one more launch after the timed ones).
    pub gate: &'static str,
    /// A clause that says what was compared, and the outcome.
    pub statement: String,
    /// The largest error, and the bound for its element; both 0 for an exact comparison.
    pub largest_error: f64,
    pub bound: f64,
    /// The errors of all elements, if each was compared with a number.
    pub errors: Option<Errors>,
}

/// The errors of the elements of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// The Frobenius norm of the errors over that of the exact result.
    pub frobenius: f64,
    /// The largest error of an element, in units of rounding of its sum of magnitudes.
    pub units: f64,
}

impl Errors {
    /// The larger of each figure.
    pub fn or(self, other: Errors) -> Errors {
        Errors {
            frobenius: self.frobenius.max(other.frobenius),
            units: self.units.max(other.units),
        }
    }
}

impl Verdict {
    /// The largest error as a share of its bound.
    pub(super) fn share(&self) -> f64 {
        // Both are 0 for an exact comparison.
        self.largest_error / self.bound.max(f64::MIN_POSITIVE)
    }

    pub fn exact(gate: &'static str, statement: String) -> Verdict {
        Verdict {
            gate,
            statement,
            largest_error: 0.0,
            bound: 0.0,
            errors: None,
        }
    }
}

/// The outcomes of `check` for each number below `count`, or the first failure, so that the same
/// result always fails in the same way.
pub(super) fn check_each<R: Send>(
    count: usize,
    check: impl Fn(usize) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    parallel::map(count, check).into_iter().collect()
}

/// Checks that an element is equal to `want`.
pub(super) fn equal(row: usize, col: usize, got: f64, want: f64) -> Result<(), Failure> {
    // Not `!=`: a NaN must fail.
    if got == want {
        return Ok(());
    }
    let (err, bound) = ((got - want).abs(), 0.0);
    Err(Failure::Element(Mismatch {
        row,
        col,
        got,
        want,
        err,
        bound,
    }))
}
