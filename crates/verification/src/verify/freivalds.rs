//! Freivalds' check: `C x = A (B x)` for random vectors x takes the time of reading the
//! matrices, not of multiplying them.
//!
//! It is done over the integers modulo 2^64, with vectors of random 64-bit words, on matrices of
//! integers. If a row of `C - A B` has an element d = 2^t * odd, then d * x is each multiple of
//! 2^t modulo 2^64 with equal probability, whatever the other elements of the row add: a vector
//! misses it with probability 2^-(64 - t). As |d| stays below twice the largest integer L that an
//! element can be, t <= log2(L) + 1: a few dozen bits even where elements are f64, exact up to
//! 2^53.
//!
//! Elements that wrap are known only modulo 2^32, and the probability is 2^-(32 - t): 1/2 for an
//! error of 2^31. More vectors make up for that.

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::data::{Matrix, Number, Problem};
use crate::parallel;

/// Independent vectors at once, for elements that do not wrap.
pub(super) const VECTORS: usize = 2;

/// Independent vectors at once, for elements that wrap modulo 2^32. A wrong row passes with
/// probability 2^-32 at most.
pub const WRAPPING_VECTORS: usize = 32;

/// A wrong row passes the check with probability 2^-bits, where nothing wraps and no element is
/// larger than `largest`.
pub fn certainty_bits(largest: f64) -> u32 {
    VECTORS as u32 * (64 - (largest.max(1.0).log2().ceil() as u32 + 1))
}

/// The sums of each row of `got`, weighted by `V` random words for each column, from `seed`.
pub(super) fn sums_of_rows<T: Number, const V: usize>(got: &Matrix<T>, seed: u64) -> Vec<[u64; V]> {
    let x = vectors::<V>(got.columns(), seed);
    parallel::map(got.rows(), |row| dot(got.row(row), &x))
}

/// The first row whose `sums` differ, in the bits of `mask`, from those of
/// `alpha * A * B + beta * C`. The vectors come from `seed`.
pub(super) fn first_wrong_row<T: Number, const V: usize>(
    problem: &Problem<T>,
    sums: &[[u64; V]],
    mask: u64,
    seed: u64,
) -> Option<usize> {
    let shape = problem.shape();
    let x = vectors::<V>(shape.n, seed);
    let [alpha, beta] = [problem.alpha, problem.beta].map(integer);
    let bx = match alpha {
        0 => Vec::new(),
        _ => parallel::map(shape.k, |row| dot(problem.b.row(row), &x)),
    };
    let is_wrong = parallel::map(sums.len(), |row| {
        let mut want = [0; V];
        if alpha != 0 {
            add_scaled(&mut want, alpha, dot(problem.a.row(row), &bx));
        }
        if beta != 0 {
            add_scaled(&mut want, beta, dot(problem.c.row(row), &x));
        }
        let mut pairs = sums[row].iter().zip(want);
        pairs.any(|(found, want)| (found ^ want) & mask != 0)
    });
    is_wrong.into_iter().position(|is_wrong| is_wrong)
}

fn vectors<const V: usize>(columns: usize, seed: u64) -> Vec<[u64; V]> {
    let mut generator = Pcg64::new(seed.into(), 0xf4e1_7a1d);
    (0..columns).map(|_| generator.random()).collect()
}

/// An integer element modulo 2^64. Anything else becomes 0: callers refuse it before or after.
fn integer<T: Number>(element: T) -> u64 {
    element.to_integer().unwrap_or(0).cast_unsigned()
}

fn dot<T: Number, const V: usize>(row: &[T], vectors: &[[u64; V]]) -> [u64; V] {
    let mut sum = [0; V];
    for (element, entries) in row.iter().zip(vectors) {
        add_scaled(&mut sum, integer(*element), *entries);
    }
    sum
}

fn add_scaled<const V: usize>(sum: &mut [u64; V], factor: u64, entries: [u64; V]) {
    for (sum, entry) in sum.iter_mut().zip(entries) {
        *sum = sum.wrapping_add(factor.wrapping_mul(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_is_as_documented() {
        assert_eq!(certainty_bits(16_777_216.0), 2 * (64 - 25));
        assert_eq!(certainty_bits(f64::from(i32::MAX)), 2 * (64 - 32));
        assert_eq!(certainty_bits(0.0), 2 * 63);
    }
}
