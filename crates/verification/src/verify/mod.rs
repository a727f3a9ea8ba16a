//! Whether a result is right: three gates, each of which a NaN, a dropped term or a swapped
//! element fails.
//!
//! 1. [`exact`]: on integers every sum is exact in any order, so the result must equal the
//!    reference. This gate is not optional: at k = 16384 the bound of the next one is wide
//!    enough to hide a dropped term.
//! 2. [`general`]: on any data, each element is within the bound of rounding errors
//!    ([`bound`]); integers are equal in wrapping arithmetic.
//! 3. The alarm, in the same call: errors far below the bound but larger than usual for such data
//!    ([`alarm`]).
//!
//! Small results are compared in full. Large results that do not round are compared by rows, with
//! Freivalds' check ([`freivalds`]). If they round, every element is compared with a reference
//! from a GPU ([`computed`]); without a GPU only samples are compared, among them the corners and
//! edges of tiles, and the gate is called `sampled`. Each product of a batch is checked in this
//! way ([`each_product`]).

// A NaN must fail every check, so conditions are negations of what must hold.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

pub mod alarm;
mod batch;
pub mod bound;
mod checker;
pub mod compensated;
pub mod computed;
mod coverage;
mod exact_data;
mod expected;
pub mod freivalds;
mod lines;
mod model;
pub mod outcome;
pub mod reference;
pub mod sample;
mod signed_sums;
pub mod strassen;
pub mod summary;

use gpu_gemm::gpu_kernels::spec::Tile;

use crate::data::{Arithmetic, Data, Matrix, Number, Problem};
pub use batch::each_product;
use checker::Checker;
pub use coverage::Coverage;
use exact_data::require_exact_sums;
pub use exact_data::{exact_data, small_integers};
pub use expected::Expected;
use gpu_gemm::Shape;
pub use model::ErrorModel;
pub use outcome::{Errors, Failure, Mismatch, Verdict};
use outcome::{check_each, equal};
use summary::Summary;

/// Gate 1: `got` equals `alpha * A * B + beta * C`, element by element, on integers whose sums are
/// exact in any order. Zeros of either sign are equal. Elements with fewer bits than their sums
/// are always compared in full, since rounded elements do not add up to the sum of a row.
///
/// # Errors
///
/// A wrong element, or data with sums that may round (not [`exact_data`], with `alpha` and `beta`
/// up to 2).
pub fn exact<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    tile: Tile,
    coverage: Coverage<'_>,
) -> Result<Verdict, Failure> {
    check_size(got, (problem.shape().m, problem.shape().n))?;
    match coverage {
        Coverage::Sampled { seed } if !T::rounds_sums() && problem.epilogue.is_none() => {
            let summary = Summary::exact(got, tile, seed);
            let right = |row, col| reference::element(problem, row, col).want;
            summary::judge_exact(problem, &summary, tile, seed)
                .map_err(|failure| naming_the_element(failure, got, right))
        }
        coverage => {
            require_exact_sums(problem)?;
            reference::each_row(problem, coverage, false, |row, expected| {
                let want = expected.iter().map(|expected| T::nearest(expected.want));
                equal_row(got, row, want)
            })?;
            let statement = format!("{} equal on integers", all_elements(problem));
            Ok(Verdict::exact("exact", statement))
        }
    }
}

/// [`general`] for results that are plain sums, in any order of summation.
pub fn within_bound<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    tile: Tile,
    data: impl Into<Option<Data>>,
    coverage: Coverage<'_>,
) -> Result<Verdict, Failure> {
    general(problem, got, tile, data, coverage, ErrorModel::Elementwise)
}

/// Gates 2 and 3. Floats: every element of a result that rounds as `model` says is within the
/// bound of its rounding errors, and these, in units of rounding, are below the alarm for `data`,
/// or for `None` for the matrices' contents. Integers: every element equals the reference in
/// wrapping arithmetic.
///
/// # Errors
///
/// A wrong element, row sum or column sum, an alarm, or a sum so long that there is no bound.
pub fn general<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    tile: Tile,
    data: impl Into<Option<Data>>,
    coverage: Coverage<'_>,
    model: ErrorModel,
) -> Result<Verdict, Failure> {
    check_size(got, (problem.shape().m, problem.shape().n))?;
    match (coverage, T::ARITHMETIC) {
        (Coverage::Sampled { seed }, _) => {
            let summary = Summary::general(got, tile, seed);
            let right = |row, col| reference::in_own_type(problem, row, col..col + 1)[0].to_f64();
            summary::judge_general(problem, &summary, tile, data, seed, model)
                .map_err(|failure| naming_the_element(failure, got, right))
        }
        (_, Arithmetic::Float { .. }) => {
            let checker = Checker::new(problem, data.into(), model)?;
            let checker = match coverage {
                Coverage::By(_) => checker.with_rounded_reference(),
                _ => checker,
            };
            let rows = reference::each_row(problem, coverage, true, |row, expected| {
                checker.check_row(got, row, expected)
            })?;
            checker.verdict(
                rows,
                "bound",
                problem.elements_of_c(),
                &all_elements(problem),
            )
        }
        (_, Arithmetic::WrappingInteger { .. }) => {
            let Shape { m, n, .. } = problem.shape();
            check_each(m, |row| {
                let want = reference::in_own_type(problem, row, 0..n);
                equal_row(got, row, want.into_iter())
            })?;
            let all = all_elements(problem);
            let statement = format!("{all} equal in arithmetic that wraps");
            Ok(Verdict::exact("wrapping", statement))
        }
    }
}

fn all_elements<T: Number>(problem: &Problem<T>) -> String {
    match problem.elements_of_c() {
        1 => "the one element".to_string(),
        count => format!("all {count} elements"),
    }
}

/// Checks that a result has this many rows and columns.
fn check_size<T: Number>(got: &Matrix<T>, want: (usize, usize)) -> Result<(), Failure> {
    let got = (got.rows(), got.columns());
    match got == want {
        true => Ok(()),
        false => Err(Failure::WrongShape { got, want }),
    }
}

fn equal_row<T: Number>(
    got: &Matrix<T>,
    row: usize,
    want: impl Iterator<Item = T>,
) -> Result<(), Failure> {
    let mut pairs = got.row(row).iter().zip(want).enumerate();
    pairs.try_for_each(|(col, (got, want))| equal(row, col, got.to_f64(), want.to_f64()))
}

/// For a wrong row, the failure of its first element that differs from `right`.
fn naming_the_element<T: Number>(
    failure: Failure,
    got: &Matrix<T>,
    right: impl Fn(usize, usize) -> f64,
) -> Failure {
    let Failure::Row { row } = failure else {
        return failure;
    };
    let elements = got.row(row).iter().enumerate();
    let mut checked = elements.map(|(col, got)| equal(row, col, got.to_f64(), right(row, col)));
    let why =
        "fails Freivalds' check but each of its elements is right, so the check itself is wrong.";
    checked
        .find_map(Result::err)
        .unwrap_or_else(|| Failure::Unprovable(format!("row {row} {why}")))
}

#[cfg(test)]
mod tests;
