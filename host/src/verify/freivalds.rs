//! Freivalds' check: `C x = A (B x)` for random vectors x takes the time of reading the
//! matrices, not of multiplying them.
//!
//! It is done over the integers modulo 2^64, with vectors of random 64-bit words, on matrices of
//! integers. If a row of `C - A B` has an element d = 2^t * odd, then d * x is equally likely
//! each multiple of 2^t modulo 2^64, whatever the other elements of the row add: the check
//! misses it with probability 2^-(64 - t) a vector. As |d| stays below twice the largest integer
//! L that an element can be, t <= log2(L) + 1: a few dozen bits even where elements are f64,
//! exact up to 2^53.

//!
//! Elements that wrap modulo 2^32 are known only so far, and the probability is 2^-(32 - t): 1/2 for
//! an error of 2^31. So there are as many vectors as make up for that.

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::data::{Matrix, Number, Problem};
use crate::parallel;

/// Independent vectors at once, for elements that do not wrap.
const VECTORS: usize = 2;

/// A wrong row passes [`first_wrong_row`] with probability 2^-bits, where no element is larger
/// than `largest`.
pub fn certainty_bits(largest: f64) -> u32 {
    VECTORS as u32 * (64 - (largest.max(1.0).log2().ceil() as u32 + 1))
}

/// A wrong row passes [`first_wrong_row_wrapping`] with probability 2^-bits at most.
pub const WRAPPING_CERTAINTY_BITS: u32 = 32;

/// The first row of `got` that is not `alpha * A * B + beta * C`, or holds anything but integers
/// up to `largest`. The matrices of `problem` hold integers, and so small ones that no element
/// of the result exceeds `largest`. The vectors follow `seed`.
pub fn first_wrong_row<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    largest: f64,
    seed: u64,
) -> Option<usize> {
    let is_allowed = |element: &T| {
        let integer = element.to_integer();
        integer.is_some_and(|integer| integer.unsigned_abs() as f64 <= largest)
    };
    wrong_row::<T, VECTORS>(problem, got, seed, u64::MAX, is_allowed)
}

/// The first row of `got`, of 32-bit integers, that is not `alpha * A * B + beta * C` modulo 2^32.
pub fn first_wrong_row_wrapping<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    seed: u64,
) -> Option<usize> {
    const VECTORS: usize = WRAPPING_CERTAINTY_BITS as usize;
    wrong_row::<T, VECTORS>(problem, got, seed, u32::MAX.into(), |_| true)
}

/// The first row that differs in the bits of `mask`, or has an element that is not allowed.
fn wrong_row<T: Number, const VECTORS: usize>(
    problem: &Problem<T>,
    got: &Matrix<T>,
    seed: u64,
    mask: u64,
    is_allowed: impl Fn(&T) -> bool + Sync,
) -> Option<usize> {
    let shape = problem.shape();
    let mut generator = Pcg64::new(seed.into(), 0xf4e1_7a1d);
    let x: Vec<[u64; VECTORS]> = (0..shape.n).map(|_| generator.random()).collect();
    let alpha = integer(problem.alpha);
    let beta = integer(problem.beta);
    let bx = match alpha {
        0 => Vec::new(),
        _ => parallel::map(shape.k, |row| dot(problem.b.row(row), &x)),
    };
    let is_wrong = |row| {
        let elements = got.row(row);
        let mut want = [0; VECTORS];
        if alpha != 0 {
            add_scaled(&mut want, alpha, dot(problem.a.row(row), &bx));
        }
        if beta != 0 {
            add_scaled(&mut want, beta, dot(problem.c.row(row), &x));
        }
        let found = dot(elements, &x);
        let is_equal = found
            .iter()
            .zip(want)
            .all(|(found, want)| (found ^ want) & mask == 0);
        !(is_equal && elements.iter().all(&is_allowed))
    };
    let wrong = parallel::map(shape.m, is_wrong);
    wrong.into_iter().position(|is_wrong| is_wrong)
}

/// An integer element modulo 2^64. Anything else becomes 0: callers refuse it before or after.
fn integer<T: Number>(element: T) -> u64 {
    element.to_integer().unwrap_or(0).cast_unsigned()
}

fn dot<T: Number, const VECTORS: usize>(row: &[T], vectors: &[[u64; VECTORS]]) -> [u64; VECTORS] {
    let mut sum = [0; VECTORS];
    for (element, entries) in row.iter().zip(vectors) {
        add_scaled(&mut sum, integer(*element), *entries);
    }
    sum
}

fn add_scaled<const VECTORS: usize>(
    sum: &mut [u64; VECTORS],
    factor: u64,
    entries: [u64; VECTORS],
) {
    for (sum, entry) in sum.iter_mut().zip(entries) {
        *sum = sum.wrapping_add(factor.wrapping_mul(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Layout};
    use gpu_gemm::Shape;

    /// The right result, of small integers, in i128.
    fn multiplied<T: Number>(problem: &Problem<T>) -> Matrix<T> {
        let Shape { m, n, k } = problem.shape();
        let integer = |element: T| i128::from(element.to_integer().unwrap());
        Matrix::from_elements(m, n, |row, col| {
            let products = (0..k).map(|index| {
                integer(problem.a.row(row)[index]) * integer(problem.b.row(index)[col])
            });
            let product = integer(problem.alpha) * products.sum::<i128>();
            let sum = product + integer(problem.beta) * integer(problem.c.row(row)[col]);
            T::from_integer(i32::try_from(sum).unwrap())
        })
        .unwrap()
    }

    /// Of any column: the vectors have an entry for each.
    #[test]
    fn an_error_of_one_in_any_single_element_is_found_in_its_row() {
        let data = Data::SmallIntegers { largest: 4 };
        for n in [1, 2, 5] {
            let shape = Shape::new(3, n, 4);
            let layout = Layout::padded(shape, [3, 1, 2], [1, 2, 3]);
            let floats = Problem::<f32>::random(shape, layout, data, 1, 2.0, -1.0).unwrap();
            let words = Problem::<i32>::random(shape, layout, data, 1, 2, -1).unwrap();
            let (right, right_words) = (multiplied(&floats), multiplied(&words));
            assert_eq!(first_wrong_row(&floats, &right, 200.0, 1), None);
            assert_eq!(first_wrong_row_wrapping(&words, &right_words, 1), None);
            for (row, col) in (0..3).flat_map(|row| (0..n).map(move |col| (row, col))) {
                let mut wrong = right.clone();
                wrong.row_mut(row)[col] += 1.0;
                assert_eq!(first_wrong_row(&floats, &wrong, 200.0, 1), Some(row));
                let mut wrong = right_words.clone();
                wrong.row_mut(row)[col] += 1;
                assert_eq!(first_wrong_row_wrapping(&words, &wrong, 1), Some(row));
            }
        }
    }

    #[test]
    fn certainty_is_as_documented() {
        assert_eq!(certainty_bits(16_777_216.0), 2 * (64 - 25));
        assert_eq!(certainty_bits(f64::from(i32::MAX)), 2 * (64 - 32));
        assert_eq!(certainty_bits(0.0), 2 * 63);
    }
}
