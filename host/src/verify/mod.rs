//! Whether a result is right: three gates, each of which a NaN, a dropped term or a swapped
//! element fails.
//!
//! 1. [`exact`]: on integers every sum is exact in any order, so the result must equal the
//!    reference. This gate is not optional: at k = 16384 the bound of the next one is wide
//!    enough to hide a dropped term.
//! 2. [`proven`]: on any data, each element lies within the bound that rounding allows
//!    ([`bound`]).
//! 3. The alarm, in the same call: errors far below the bound but larger than such data gives
//!    ([`alarm`]).
//!
//! [`wrapping`] takes the place of 2 and 3 for integers. Small shapes are compared in full. Of
//! large ones every row is compared by Freivalds' check ([`freivalds`]) where nothing rounds.
//! Where something does, every element is compared with a reference that a GPU has computed
//! ([`computed`]); without one, sampled elements are, among them the corners and edges of tiles,
//! and the proof is called `sampled`. Of a batch, each product is checked so ([`each_product`]).

// A NaN must fail every comparison, so they are written as what must hold, negated.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

pub mod alarm;
mod batch;
pub mod bound;
mod checker;
pub mod compensated;
pub mod computed;
mod exact_data;
pub mod freivalds;
pub mod outcome;
pub mod reference;
pub mod sample;
mod signed_sums;
pub mod strassen;
pub mod summary;

use gpu_gemm::gpu_kernels::spec::Tile;

use crate::data::{Arithmetic, Data, Matrix, Number, Problem};
use crate::parallel;
pub use batch::each_product;
pub use bound::ErrorModel;
use checker::Checker;
use computed::ComputedReference;
use exact_data::exact_integers;
pub use exact_data::{exact_data, small_integers};
use gpu_gemm::Shape;
use outcome::check_each;
pub use outcome::{Errors, Failure, Mismatch, Proof};
use reference::{Expected, Reference};
use summary::Summary;

/// How much of a result is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Every element, with a reference of its own.
    Full,
    /// Every row by Freivalds' check or its sum, and sampled elements. The seed chooses vectors,
    /// signs and samples.
    Sampled { seed: u64 },
}

impl Coverage {
    /// In full as long as the reference takes seconds and its matrices, in `f64`, some hundred
    /// megabytes.
    pub fn of(shape: Shape, seed: u64) -> Coverage {
        Coverage::of_each(1, shape, seed)
    }

    /// The same of each of `count` products.
    pub fn of_each(count: usize, shape: Shape, seed: u64) -> Coverage {
        Coverage::up_to((1 << 33) / count, shape, seed)
    }

    /// The same where a GPU can compute a reference for many results at once: the host compares
    /// what takes it parts of a second.
    pub fn beside_gpu(count: usize, shape: Shape, seed: u64) -> Coverage {
        Coverage::up_to((1 << 31) / count, shape, seed)
    }

    fn up_to(most: usize, shape: Shape, seed: u64) -> Coverage {
        let Shape { m, n, k } = shape;
        let elements = [(m, n), (m, k), (k, n)].map(|(rows, columns)| rows.saturating_mul(columns));
        let products = elements[0].saturating_mul(k);
        if products <= most && elements.iter().all(|&count| count <= 1 << 25) {
            Coverage::Full
        } else {
            Coverage::Sampled { seed }
        }
    }
}

/// Gate 1: `got` equals `alpha * A * B + beta * C`, element by element, on integers of which no
/// order of summation rounds. Zeros of either sign are equal. Where elements have fewer bits than
/// their sums, samples do only if no sum is rounded: [`exact_by`] does in any case.
///
/// # Errors
///
/// A wrong element, or data that is not so small ([`exact_data`] is, with `alpha` and `beta` up
/// to 2).
pub fn exact<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    tile: Tile,
    coverage: Coverage,
) -> Result<Proof, Failure> {
    check_shape(problem, got)?;
    let statement = match coverage {
        Coverage::Full => {
            require_exact_sums(problem)?;
            Reference::Product.each_row(problem, |row, expected| {
                let want = |expected: &Expected| T::nearest(expected.want).to_f64();
                equal_row(got, row, expected.iter().map(want))
            })?;
            format!("{} equal on integers", all_elements(problem))
        }
        Coverage::Sampled { seed } => {
            let summary = Summary::exact(got, tile, seed);
            return summary::judge_exact(problem, &summary, tile, seed).map_err(|failure| {
                let right = |row, col| reference::element(problem, row, col).want;
                naming_the_element(failure, got, right)
            });
        }
    };
    Ok(Proof::exact("exact", statement))
}

/// [`exact`], of every element, by a reference that is there already: where an element may have
/// fewer bits than its sum, so that rows cannot be checked by their sums.
///
/// # Errors
///
/// As [`exact`].
pub fn exact_by<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    reference: &ComputedReference,
) -> Result<Proof, Failure> {
    check_shape(problem, got)?;
    require_exact_sums(problem)?;
    check_each(problem.shape().m, |row| {
        let expected = reference.row(problem, row);
        let want = expected.map(|expected| T::nearest(expected.want).to_f64());
        equal_row(got, row, want)
    })?;
    let statement = format!("{} equal on integers", all_elements(problem));
    Ok(Proof::exact("exact", statement))
}

/// Whether elements have fewer bits than their sums.
pub fn rounds_sums<T: Number>() -> bool {
    T::SUMS != T::ARITHMETIC
}

/// Gates 2 and 3, for floats: every element lies within the bound of its rounding errors, and
/// these, in units of rounding, below the alarm of such `data`, or of what the matrices hold if
/// that is something else, `None`.
///
/// # Errors
///
/// A wrong element, row sum or column sum, an alarm, or a sum so long that there is no bound.
pub fn proven<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    tile: Tile,
    data: impl Into<Option<Data>>,
    coverage: Coverage,
) -> Result<Proof, Failure> {
    proven_as(problem, got, tile, data, coverage, ErrorModel::Elementwise)
}

/// [`proven`] for a result that rounds as `model` says.
///
/// # Errors
///
/// As [`proven`]; or the algorithm has no bound for such matrices.
pub fn proven_as<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    tile: Tile,
    data: impl Into<Option<Data>>,
    coverage: Coverage,
    model: ErrorModel,
) -> Result<Proof, Failure> {
    check_shape(problem, got)?;
    match coverage {
        Coverage::Full => {
            let checker = Checker::new(problem, data.into(), model)?;
            let rows = Reference::ProductAndMagnitude.each_row(problem, |row, expected| {
                checker.check_row(got, row, expected.iter().copied())
            })?;
            checker.proof(rows, "proven", elements(problem), all_elements(problem))
        }
        Coverage::Sampled { seed } => {
            let summary = Summary::general(got, tile, seed);
            summary::judge_general(problem, &summary, tile, data, seed, model)
        }
    }
}

/// [`proven_as`], of every element, by a reference that is there already.
///
/// # Errors
///
/// As [`proven_as`].
pub fn proven_by<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    reference: &ComputedReference,
    data: impl Into<Option<Data>>,
    model: ErrorModel,
) -> Result<Proof, Failure> {
    check_shape(problem, got)?;
    let checker = Checker::new(problem, data.into(), model)?.with_rounded_reference::<T>();
    let rows = check_each(problem.shape().m, |row| {
        checker.check_row(got, row, reference.row(problem, row))
    })?;
    checker.proof(rows, "proven", elements(problem), all_elements(problem))
}

/// Gate 2 for integers: every element equals the reference, computed in arithmetic that wraps.
///
/// # Errors
///
/// A wrong element.
pub fn wrapping<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    tile: Tile,
    coverage: Coverage,
) -> Result<Proof, Failure> {
    check_shape(problem, got)?;
    let statement = match coverage {
        Coverage::Full => {
            check_each(problem.shape().m, |row| {
                let want = reference::wrapping_row(problem, row);
                equal_row(got, row, want.into_iter().map(T::to_f64))
            })?;
            format!("{} equal in arithmetic that wraps", all_elements(problem))
        }
        Coverage::Sampled { seed } => {
            let summary = Summary::general(got, tile, seed);
            let model = ErrorModel::Elementwise; // of floats
            let judged = summary::judge_general(problem, &summary, tile, None, seed, model);
            return judged.map_err(|failure| {
                let right = |row, col| reference::wrapping_element(problem, row, col).to_f64();
                naming_the_element(failure, got, right)
            });
        }
    };
    Ok(Proof::exact("wrapping", statement))
}

/// The gate for data of any kind: [`proven_as`] for floats, [`wrapping`] for integers.
///
/// # Errors
///
/// As the two.
pub fn general<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    tile: Tile,
    data: impl Into<Option<Data>>,
    coverage: Coverage,
    model: ErrorModel,
) -> Result<Proof, Failure> {
    match T::ARITHMETIC {
        Arithmetic::Float { .. } => proven_as(problem, got, tile, data, coverage, model),
        Arithmetic::WrappingInteger { .. } => wrapping(problem, got, tile, coverage),
    }
}

fn elements<T: Number>(problem: &Problem<T>) -> usize {
    problem.shape().m * problem.shape().n
}

fn all_elements<T: Number>(problem: &Problem<T>) -> String {
    match elements(problem) {
        1 => "the one element".to_string(),
        count => format!("all {count} elements"),
    }
}

fn check_shape<T: Number>(problem: &Problem<T>, got: &Matrix<T>) -> Result<(), Failure> {
    let want = problem.shape();
    if (got.rows(), got.columns()) != (want.m, want.n) {
        return Err(Failure::WrongShape {
            got: (got.rows(), got.columns()),
            want,
        });
    }
    Ok(())
}

fn equal_row<T: Number>(
    got: &Matrix<T>,
    row: usize,
    want: impl Iterator<Item = f64>,
) -> Result<(), Failure> {
    want.enumerate()
        .try_for_each(|(col, want)| equal(got, row, col, want))
}

fn equal<T: Number>(got: &Matrix<T>, row: usize, col: usize, want: f64) -> Result<(), Failure> {
    equal_values(row, col, got.row(row)[col].to_f64(), want)
}

fn equal_values(row: usize, col: usize, got: f64, want: f64) -> Result<(), Failure> {
    // Not `!=`: a NaN must fail.
    if got == want {
        return Ok(());
    }
    Err(Failure::Element(Mismatch {
        row,
        col,
        got,
        want,
        err: (got - want).abs(),
        bound: 0.0,
    }))
}

/// A failure; of a wrong row its first element that is not what it should be by `right`.
fn naming_the_element<T: Number>(
    failure: Failure,
    got: &Matrix<T>,
    right: impl Fn(usize, usize) -> f64,
) -> Failure {
    let Failure::Row { row } = failure else {
        return failure;
    };
    (0..got.columns())
        .find_map(|col| equal(got, row, col, right(row, col)).err())
        .unwrap_or_else(|| {
            Failure::Unprovable(format!(
                "row {row} fails Freivalds' check but each of its elements is right, so the check itself is wrong."
            ))
        })
}

/// Refuses data whose sums might round. Returns a magnitude that no element of the result exceeds.
fn require_exact_sums<T: Number>(problem: &Problem<T>) -> Result<f64, Failure> {
    let refuse = |what: &str| Err(Failure::Unprovable(format!("{what}, so sums may round.")));
    let scalars = (problem.alpha.to_integer(), problem.beta.to_integer());
    let (Some(alpha), Some(beta)) = scalars else {
        return refuse("alpha or beta is no integer");
    };
    let not_integers = || refuse("an element is no integer");
    // Of the terms with each index along k.
    let (mut sum, mut c) = (0.0, 0);
    if alpha != 0 {
        let (Some(a), Some(b)) = (largest_in_columns(&problem.a), largest_in_rows(&problem.b))
        else {
            return not_integers();
        };
        sum = a.iter().zip(&b).map(|(a, b)| *a as f64 * *b as f64).sum();
    }
    if beta != 0 {
        let Some(of_rows) = largest_in_rows(&problem.c) else {
            return not_integers();
        };
        c = of_rows.into_iter().max().unwrap_or(0);
    }
    let result = sum * alpha.unsigned_abs() as f64 + c as f64 * beta.unsigned_abs() as f64;
    if !(sum.max(result) <= exact_integers::<T>()) {
        return refuse("the integers are too large for this k");
    }
    Ok(result)
}

/// The largest magnitude in each row of a matrix of integers; `None` if it holds anything else.
fn largest_in_rows<T: Number>(matrix: &Matrix<T>) -> Option<Vec<u64>> {
    let of_rows: Vec<Option<u64>> = parallel::map(matrix.rows(), |row| {
        matrix.row(row).iter().try_fold(0, |largest: u64, element| {
            Some(largest.max(element.to_integer()?.unsigned_abs()))
        })
    });
    of_rows.into_iter().collect()
}

/// The largest magnitude in each column of a matrix of integers; `None` if it holds anything else.
fn largest_in_columns<T: Number>(matrix: &Matrix<T>) -> Option<Vec<u64>> {
    const PIECES: usize = 64;
    let of_piece = matrix.rows().div_ceil(PIECES).max(1);
    let pieces = parallel::map(matrix.rows().div_ceil(of_piece), |piece| {
        let rows = piece * of_piece..matrix.rows().min((piece + 1) * of_piece);
        let mut largest = vec![0; matrix.columns()];
        for row in rows {
            for (largest, element) in largest.iter_mut().zip(matrix.row(row)) {
                *largest = element.to_integer()?.unsigned_abs().max(*largest);
            }
        }
        Some(largest)
    });
    pieces
        .into_iter()
        .try_fold(vec![0; matrix.columns()], |mut largest, piece| {
            for (largest, of_piece) in largest.iter_mut().zip(piece?) {
                *largest = of_piece.max(*largest);
            }
            Some(largest)
        })
}

#[cfg(test)]
mod tests;
