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
//! Elements that wrap modulo 2^32 are known only so far, and the probability is 2^-(32 - t): 1/2
//! for an error of 2^31. So there are as many vectors as make up for that.

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::data::{Matrix, Number, Problem};
use crate::parallel;

/// Independent vectors at once, for elements that do not wrap.
pub(super) const VECTORS: usize = 2;

/// A wrong row passes `first_wrong_row` with probability 2^-bits, where no element is larger
/// than `largest`.
pub fn certainty_bits(largest: f64) -> u32 {
    VECTORS as u32 * (64 - (largest.max(1.0).log2().ceil() as u32 + 1))
}

/// A wrong row passes `first_wrong_row_wrapping` with probability 2^-bits at most.
pub const WRAPPING_CERTAINTY_BITS: u32 = 32;

/// The sums of one row of a result: `V` random words for each column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RowSum<const V: usize> {
    pub sums: [u64; V],
    /// The largest magnitude; infinite if an element is no integer.
    pub largest: f64,
}

/// The sums of each row of `got`, by the words that `seed` gives.
pub(super) fn sums_of_rows<T: Number, const V: usize>(
    got: &Matrix<T>,
    seed: u64,
) -> Vec<RowSum<V>> {
    let x = vectors::<V>(got.columns(), seed);
    parallel::map(got.rows(), |row| {
        let elements = got.row(row);
        let largest = elements.iter().map(|element| match element.to_integer() {
            Some(integer) => integer.unsigned_abs() as f64,
            None => f64::INFINITY,
        });
        RowSum {
            sums: dot(elements, &x),
            largest: largest.fold(0.0, f64::max),
        }
    })
}

/// The first row whose `sums` are not those of `alpha * A * B + beta * C`, or that holds anything
/// but integers up to `largest`. The matrices of `problem` hold integers, and so small ones that
/// no element of the result exceeds `largest`. The vectors follow `seed`.
pub(super) fn first_wrong_row<T: Number>(
    problem: &Problem<T>,
    sums: &[RowSum<VECTORS>],
    largest: f64,
    seed: u64,
) -> Option<usize> {
    wrong_row(problem, sums, seed, u64::MAX, largest)
}

/// The first row whose `sums` are not those of `alpha * A * B + beta * C` modulo 2^32: for 32-bit
/// integers.
pub(super) fn first_wrong_row_wrapping<T: Number>(
    problem: &Problem<T>,
    sums: &[RowSum<{ WRAPPING_CERTAINTY_BITS as usize }>],
    seed: u64,
) -> Option<usize> {
    wrong_row(problem, sums, seed, u32::MAX.into(), f64::INFINITY)
}

/// The first row whose sums differ in the bits of `mask`, or that has an element above `largest`.
fn wrong_row<T: Number, const V: usize>(
    problem: &Problem<T>,
    sums: &[RowSum<V>],
    seed: u64,
    mask: u64,
    largest: f64,
) -> Option<usize> {
    let shape = problem.shape();
    let x = vectors::<V>(shape.n, seed);
    let alpha = integer(problem.alpha);
    let beta = integer(problem.beta);
    let bx = match alpha {
        0 => Vec::new(),
        _ => parallel::map(shape.k, |row| dot(problem.b.row(row), &x)),
    };
    let is_wrong = |row: usize| {
        let mut want = [0; V];
        if alpha != 0 {
            add_scaled(&mut want, alpha, dot(problem.a.row(row), &bx));
        }
        if beta != 0 {
            add_scaled(&mut want, beta, dot(problem.c.row(row), &x));
        }
        let found = sums[row];
        let mut pairs = found.sums.iter().zip(want);
        let is_equal = pairs.all(|(found, want)| (found ^ want) & mask == 0);
        !(is_equal && found.largest <= largest)
    };
    let wrong = parallel::map(sums.len(), is_wrong);
    wrong.into_iter().position(|is_wrong| is_wrong)
}

fn vectors<const V: usize>(columns: usize, seed: u64) -> Vec<[u64; V]> {
    let mut generator = Pcg64::new(seed.into(), 0xf4e1_7a1d);
    (0..columns).map(|_| generator.random()).collect()
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
            let in_floats = |got: &_| first_wrong_row(&floats, &sums_of_rows(got, 1), 200.0, 1);
            let in_words = |got: &_| first_wrong_row_wrapping(&words, &sums_of_rows(got, 1), 1);
            assert_eq!(in_floats(&right), None);
            assert_eq!(in_words(&right_words), None);
            for (row, col) in (0..3).flat_map(|row| (0..n).map(move |col| (row, col))) {
                let mut wrong = right.clone();
                wrong.row_mut(row)[col] += 1.0;
                assert_eq!(in_floats(&wrong), Some(row));
                let mut wrong = right_words.clone();
                wrong.row_mut(row)[col] += 1;
                assert_eq!(in_words(&wrong), Some(row));
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
