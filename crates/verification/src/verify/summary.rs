//! The summary of a result: enough to judge it, and no longer than a few of its rows and columns.
//!
//! The machine with the result multiplies it by vectors drawn from a seed, and picks some of its
//! elements. The machine with A and B computes the expected sums and elements. If these are two
//! machines, only the summary is sent from one to the other.

// A NaN must fail every check, so conditions are negations of what must hold.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

use gpu_gemm::Shape;
use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::text::plural;

use super::checker::Checker;
use super::exact_data::require_exact_sums;
use super::freivalds::{self, VECTORS, WRAPPING_VECTORS};
use super::lines::{integer_magnitude, largest_in_rows};
use super::outcome::{Failure, Verdict, check_each, equal};
use super::signed_sums::Sums;
use super::{ErrorModel, reference, sample};
use crate::data::{Arithmetic, Data, Matrix, Number, Problem};

/// The sums and elements of a result, as two lists of numbers, so that they can be sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Sums of rows of integers, modulo 2^64.
    pub words: Vec<u64>,
    /// All other sums, and the samples at the end.
    pub numbers: Vec<f64>,
}

impl Summary {
    /// A summary for [`judge_exact`].
    pub fn exact<T: Number>(got: &Matrix<T>, tile: Tile, seed: u64) -> Summary {
        let largest = largest_in_rows(got, 0.0, integer_magnitude).into_iter();
        Summary {
            words: freivalds::sums_of_rows::<T, VECTORS>(got, seed).concat(),
            numbers: largest.chain(samples(got, tile, seed)).collect(),
        }
    }

    /// A summary for [`judge_general`].
    pub fn general<T: Number>(got: &Matrix<T>, tile: Tile, seed: u64) -> Summary {
        match T::ARITHMETIC {
            Arithmetic::Float { .. } => {
                let Sums { rows, columns } = Sums::of(got, seed);
                let sums = rows.into_iter().chain(columns);
                Summary {
                    words: Vec::new(),
                    numbers: sums.chain(samples(got, tile, seed)).collect(),
                }
            }
            Arithmetic::WrappingInteger { .. } => Summary {
                words: freivalds::sums_of_rows::<T, WRAPPING_VECTORS>(got, seed).concat(),
                numbers: samples(got, tile, seed).collect(),
            },
        }
    }

    /// The words of each row.
    fn words<const V: usize>(&self, rows: usize) -> Result<&[[u64; V]], Failure> {
        match self.words.as_chunks() {
            (words, []) if words.len() == rows => Ok(words),
            _ => Err(other_size()),
        }
    }
}

/// The elements at the sampled positions.
fn samples<T: Number>(got: &Matrix<T>, tile: Tile, seed: u64) -> impl Iterator<Item = f64> {
    let shape = Shape::new(got.rows(), got.columns(), 0);
    let positions = sample::positions(shape, tile, seed).into_iter();
    positions.map(|(row, col)| got.row(row)[col].to_f64())
}

fn other_size() -> Failure {
    Failure::Unprovable("its summary is that of a result of another size.".to_string())
}

/// [`super::exact`] for the [`Summary::exact`] of a result, with the same tile and seed.
///
/// # Errors
///
/// As for [`super::exact`]; of a wrong row only the number is known.
pub fn judge_exact<T: Number>(
    problem: &Problem<T>,
    got: &Summary,
    tile: Tile,
    seed: u64,
) -> Result<Verdict, Failure> {
    let largest = require_exact_sums(problem)?;
    let m = problem.shape().m;
    let (rows, samples) = got.numbers.split_at_checked(m).ok_or_else(other_size)?;
    let wrong = freivalds::first_wrong_row::<T, VECTORS>(problem, got.words(m)?, u64::MAX, seed);
    // The check shows nothing for elements that are not integers, or are larger than any sum.
    let too_large = rows.iter().position(|of_row| !(*of_row <= largest));
    if let Some(row) = wrong.into_iter().chain(too_large).min() {
        return Err(Failure::Row { row });
    }
    let sampled = check_samples(problem, samples, tile, seed, |row, col, got| {
        equal(row, col, got, reference::element(problem, row, col).want)
    })?;
    let statement = format!(
        "every row passes Freivalds' check on integers (a wrong one passes with probability 2^-{}), and {} sampled elements are equal",
        freivalds::certainty_bits(largest),
        sampled.len()
    );
    Ok(Verdict::exact("exact", statement))
}

/// [`super::general`] for the [`Summary::general`] of a result, with the same tile and seed.
///
/// # Errors
///
/// As for [`super::general`]; of a wrong row of integers only the number is known.
pub fn judge_general<T: Number>(
    problem: &Problem<T>,
    got: &Summary,
    tile: Tile,
    data: impl Into<Option<Data>>,
    seed: u64,
    model: ErrorModel,
) -> Result<Verdict, Failure> {
    let Shape { m, n, .. } = problem.shape();
    if let Arithmetic::WrappingInteger { .. } = T::ARITHMETIC {
        let words = got.words(m)?;
        let mask = u32::MAX.into();
        if let Some(row) =
            freivalds::first_wrong_row::<T, WRAPPING_VECTORS>(problem, words, mask, seed)
        {
            return Err(Failure::Row { row });
        }
        let sampled = check_samples(problem, &got.numbers, tile, seed, |row, col, got| {
            let want = reference::in_own_type(problem, row, col..col + 1)[0];
            equal(row, col, got, want.to_f64())
        })?;
        let statement = format!(
            "every row passes Freivalds' check in arithmetic that wraps (a wrong one passes with probability 2^-{WRAPPING_VECTORS} at most), and {} sampled elements are equal",
            sampled.len()
        );
        return Ok(Verdict::exact("wrapping", statement));
    }
    let checker = Checker::new(problem, data.into(), model)?;
    let (sums, samples) = got.numbers.split_at_checked(m + n).ok_or_else(other_size)?;
    let sums = match problem.epilogue {
        None => checker.check_sums(problem, sums.split_at(m), seed)?,
        Some(_) => "no sums, since the epilogue is not linear".to_string(),
    };
    let sampled = check_samples(problem, samples, tile, seed, |row, col, got| {
        let expected = reference::element(problem, row, col).after(problem.epilogue, col);
        checker.check(row, col, got, expected)
    })?;
    let count = sampled.len();
    let all = plural(problem.elements_of_c(), "element");
    let verdict = checker.verdict(
        sampled,
        "sampled",
        count,
        &format!("{count} of {all} and {sums}"),
    )?;
    let errors = None; // errors of samples tell nothing about the other elements
    Ok(Verdict { errors, ..verdict })
}

/// The outcomes of `check` at the sampled positions, with the elements `samples`.
fn check_samples<T: Number, R: Send>(
    problem: &Problem<T>,
    samples: &[f64],
    tile: Tile,
    seed: u64,
    check: impl Fn(usize, usize, f64) -> Result<R, Failure> + Sync + Send,
) -> Result<Vec<R>, Failure> {
    let positions = sample::positions(problem.shape(), tile, seed);
    if positions.len() != samples.len() {
        return Err(other_size());
    }
    check_each(positions.len(), |index| {
        let (row, col) = positions[index];
        check(row, col, samples[index])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Storage;
    use crate::verify::exact_data;

    const TILE: Tile = Tile { m: 4, n: 4, k: 4 };

    #[test]
    fn a_summary_of_another_result_or_by_another_seed_checks_nothing() {
        let model = ErrorModel::Elementwise;
        for data in [exact_data::<f32>(30).unwrap(), Data::Normal] {
            let (shape, compact) = (Shape::new(6, 7, 30), Storage::COMPACT);
            let problem = Problem::<f32>::random(shape, compact, data, 1, 1.0, 0.0).unwrap();
            let part = |rows, columns| {
                let element = |row, col| reference::in_own_type(&problem, row, col..col + 1)[0];
                Matrix::from_elements(rows, columns, element).unwrap()
            };
            let judged = |c: &Matrix<f32>, seed| match data {
                Data::Normal => {
                    let got = Summary::general(c, TILE, seed);
                    judge_general(&problem, &got, TILE, data, 3, model)
                }
                _ => judge_exact(&problem, &Summary::exact(c, TILE, seed), TILE, 3),
            };
            judged(&part(6, 7), 3).unwrap();
            judged(&part(6, 7), 4).unwrap_err();
            judged(&part(6, 2), 3).unwrap_err();
            judged(&part(5, 7), 3).unwrap_err();
            judge_exact(&problem, &Summary::default(), TILE, 3).unwrap_err();
        }
    }
}
