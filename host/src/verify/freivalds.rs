//! Freivalds' check: `C x = A (B x)` for random vectors x takes the time of reading the
//! matrices, not of multiplying them.
//!
//! It is done over the integers modulo 2^64, with vectors of random 64-bit words, on matrices of
//! integers. If a row of `C - A B` has an element d = 2^t * odd, then d * x is equally likely
//! each multiple of 2^t modulo 2^64, whatever the other elements of the row add: the check
//! misses it with probability 2^-(64 - t) a vector. As |d| stays below twice the largest integer
//! L that an element can be, t <= log2(L) + 1: a few dozen bits even where elements are f64,
//! exact up to 2^53.

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::data::{Matrix, Number, Problem};
use crate::parallel;

/// Independent vectors at once.
const VECTORS: usize = 2;

/// One entry of each vector.
type Entry = [u64; VECTORS];

/// A wrong row passes with probability 2^-bits, where no element is larger than `largest`.
pub fn certainty_bits(largest: f64) -> u32 {
    VECTORS as u32 * (64 - (largest.max(1.0).log2().ceil() as u32 + 1))
}

/// The first row of `got` that is not `alpha * A * B + beta * C`, or holds anything but integers
/// up to `largest`. The matrices of `problem` hold integers, and so small ones that no element
/// of the result exceeds `largest`.
pub fn first_wrong_row<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    largest: f64,
) -> Option<usize> {
    let shape = problem.shape();
    let mut generator = Pcg64::new(0xf4e1_7a1d, 0);
    let x: Vec<Entry> = (0..shape.n).map(|_| generator.random()).collect();
    let alpha = integer(problem.alpha);
    let beta = integer(problem.beta);
    let bx: Vec<Entry> = if alpha == 0 {
        Vec::new()
    } else {
        parallel::map(shape.k, |row| dot(problem.b.row(row), &x))
    };
    let is_wrong = |row| {
        let elements = got.row(row);
        let integers = elements.iter().all(|element| {
            element
                .to_integer()
                .is_some_and(|integer| integer.unsigned_abs() as f64 <= largest)
        });
        let mut want = [0u64; VECTORS];
        if alpha != 0 {
            add_scaled(&mut want, alpha, dot(problem.a.row(row), &bx));
        }
        if beta != 0 {
            add_scaled(&mut want, beta, dot(problem.c.row(row), &x));
        }
        !(integers && dot(elements, &x) == want)
    };
    let wrong = parallel::map(shape.m, is_wrong);
    wrong.into_iter().position(|is_wrong| is_wrong)
}

/// An integer element modulo 2^64. Anything else becomes 0: callers refuse it before or after.
fn integer<T: Number>(element: T) -> u64 {
    element.to_integer().unwrap_or(0).cast_unsigned()
}

fn dot<T: Number>(row: &[T], vectors: &[Entry]) -> Entry {
    let mut sum = [0; VECTORS];
    for (element, entry) in row.iter().zip(vectors) {
        add_scaled(&mut sum, integer(*element), *entry);
    }
    sum
}

fn add_scaled(sum: &mut Entry, factor: u64, entry: Entry) {
    for (sum, entry) in sum.iter_mut().zip(entry) {
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
