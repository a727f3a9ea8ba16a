//! The right result, computed apart from any kernel: in f64 by `matrixmultiply`; for
//! results that are f64 themselves, as if in twice that precision ([`compensated`]); in integers
//! by plain loops.

use std::ops::Range;

use super::compensated::{self, Sum};
use super::coverage::Coverage;
use super::expected::Expected;
use super::outcome::{Failure, check_each};
use crate::data::{Matrix, Number, Problem};
use crate::parallel;

/// Passes each row's index and expected elements to `check`, in parallel. `coverage` says where
/// these come from. Magnitudes double the time; without them only [`Expected::want`] is known.
///
/// # Errors
///
/// An error of `check`, of the first band of rows that has one.
pub fn each_row<T: Number, R: Send>(
    problem: &Problem<T>,
    coverage: Coverage<'_>,
    with_magnitudes: bool,
    check: impl Fn(usize, &[Expected]) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    /// Elements of a band: at most 200 MB of sums.
    const BAND: usize = 1 << 23;
    let shape = problem.shape();
    if let Coverage::By(reference) = coverage {
        return check_each(shape.m, |row| {
            let expected: Vec<Expected> = reference.row(problem, row).collect();
            check(row, &expected)
        });
    }
    if shape.is_empty() {
        return Ok(Vec::new());
    }
    let ignored = problem.alpha == T::default();
    let compensate = with_magnitudes && compensated::is_as_fine_as_f64::<T>();
    let b = match ignored {
        true => Vec::new(),
        false => to_f64(&problem.b, 0..shape.k),
    };
    let mut b_magnitudes = Vec::new();
    if with_magnitudes && !compensate {
        b_magnitudes.clone_from(&b);
        make_positive(&mut b_magnitudes);
    }
    let mut results = Vec::with_capacity(shape.m);
    let rows_at_once = (BAND / shape.n.max(shape.k)).max(1);
    for first in (0..shape.m).step_by(rows_at_once) {
        let rows = rows_at_once.min(shape.m - first);
        let a = || to_f64(&problem.a, first..first + rows);
        let sums: Vec<Sum> = match ignored {
            true => Vec::new(),
            false if compensate => compensated::multiply(&a(), &b, shape.k, shape.n),
            false => plain_sums(a(), &b, &b_magnitudes, shape.k, shape.n),
        };
        results.extend(check_each(rows, |row| {
            let c = problem.c.row(first + row).iter().enumerate();
            let expected: Vec<Expected> = c
                .map(|(col, c)| {
                    let sum = sums.get(row * shape.n + col).copied();
                    Expected::new(problem, sum.unwrap_or_default(), c.to_f64())
                        .after(problem.epilogue, col)
                })
                .collect();
            check(first + row, &expected)
        })?);
    }
    Ok(results)
}

/// The right value of one element, before an epilogue.
pub fn element<T: Number>(problem: &Problem<T>, row: usize, col: usize) -> Expected {
    let mut sum = Sum::default();
    if problem.alpha != T::default() {
        for (index, a) in problem.a.row(row).iter().enumerate() {
            sum.add(a.to_f64(), problem.b.row(index)[col].to_f64());
        }
    }
    Expected::new(problem, sum, problem.c.row(row)[col].to_f64())
}

/// Some elements of a row, computed sequentially in `T` itself: for integers, which wrap, the
/// right result; for floats, one of many right results.
pub fn in_own_type<T: Number>(problem: &Problem<T>, row: usize, columns: Range<usize>) -> Vec<T> {
    let (alpha, beta, zero) = (problem.alpha, problem.beta, T::default());
    let mut results = vec![zero; columns.len()];
    if alpha != zero {
        for (index, a) in problem.a.row(row).iter().enumerate() {
            let b = &problem.b.row(index)[columns.clone()];
            for (sum, b) in results.iter_mut().zip(b) {
                *sum = a.times_plus(*b, *sum);
            }
        }
    }
    for (result, c) in results.iter_mut().zip(&problem.c.row(row)[columns]) {
        let product = alpha.times_plus(*result, zero);
        *result = match beta == zero {
            true => product,
            false => beta.times_plus(*c, product),
        };
    }
    results
}

/// Some rows of a matrix in f64, compact.
fn to_f64<T: Number>(matrix: &Matrix<T>, rows: Range<usize>) -> Vec<f64> {
    let columns = matrix.columns();
    let mut compact = vec![0.0; rows.len() * columns];
    if columns > 0 {
        parallel::pieces(&mut compact, columns, |index, compact| {
            let row = matrix.row(rows.start + index);
            for (compact, element) in compact.iter_mut().zip(row) {
                *compact = element.to_f64();
            }
        });
    }
    compact
}

/// Every element of `a * b`, and of `|a| * |b|` unless `b_magnitudes` is empty.
fn plain_sums(mut a: Vec<f64>, b: &[f64], b_magnitudes: &[f64], k: usize, n: usize) -> Vec<Sum> {
    let m = a.len().checked_div(k).unwrap_or(0);
    let mut rounded = vec![0.0; m * n];
    multiply(&a, b, k, n, &mut rounded);
    let mut magnitudes = vec![0.0; m * n];
    if !b_magnitudes.is_empty() {
        make_positive(&mut a);
        multiply(&a, b_magnitudes, k, n, &mut magnitudes);
    }
    let sums = rounded.into_iter().zip(magnitudes);
    sums.map(|(rounded, magnitude)| Sum::plain(rounded, magnitude))
        .collect()
}

fn make_positive(elements: &mut [f64]) {
    parallel::pieces(elements, 1 << 16, |_, elements| {
        elements
            .iter_mut()
            .for_each(|element| *element = element.abs());
    });
}

/// `c = a * b`, all compact and row-major, `a` with `k` columns and `b` with `n`.
fn multiply(a: &[f64], b: &[f64], k: usize, n: usize, c: &mut [f64]) {
    let m = c.len() / n;
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n);
    // SAFETY: the lengths, just checked, are those that the dimensions and strides require.
    unsafe {
        matrixmultiply::dgemm(
            m,
            k,
            n,
            1.0,
            a.as_ptr(),
            k as isize,
            1,
            b.as_ptr(),
            n as isize,
            1,
            0.0,
            c.as_mut_ptr(),
            n as isize,
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Storage};
    use gpu_gemm::Shape;

    fn matrix(rows: usize, columns: usize, values: &[f32]) -> Matrix<f32> {
        Matrix::new(values.to_vec(), rows, columns)
    }

    /// A B = [10, 28; 37, 14] and |A||B| = [22, 28; 37, 46], so 2 A B - C = [10, 36; 44, -12]; and
    /// 1 + 2^-30 + 2^-40, of which f32 keeps only the 1.
    #[test]
    fn both_ways_agree_with_a_product_worked_out_by_hand() {
        let (e, fine) = (2f32.powi(-15), 2f64.powi(-30) + 2f64.powi(-40));
        let (a, b) = (
            [1.0, -2.0, 3.0, 0.0, 4.0, 5.0],
            [1.0, 2.0, 3.0, -4.0, 5.0, 6.0],
        );
        let of = |m, n, k, [alpha, beta]: [f32; 2], a: &[f32], b: &[f32], c: &[f32]| {
            let (a, b, c) = (matrix(m, k, a), matrix(k, n, b), matrix(m, n, c));
            Problem::new(alpha, beta, a, b, c).unwrap()
        };
        let by_hand = of(2, 2, 3, [2.0, -1.0], &a, &b, &[10.0, 20.0, 30.0, 40.0]);
        let fine_sum = of(1, 1, 2, [1.0; 2], &[1.0, e], &[1.0, e], &[2f32.powi(-40)]);
        let expected = [(10.0, 54.0), (36.0, 76.0), (44.0, 104.0), (-12.0, 132.0)];
        for (problem, expected) in [
            (by_hand, &expected[..]),
            (fine_sum, &[(1.0 + fine, 1.0 + fine)]),
        ] {
            let n = problem.shape().n;
            for with_magnitudes in [true, false] {
                let check = |row, found: &[Expected]| {
                    for (col, found) in found.iter().enumerate() {
                        let (want, magnitude) = expected[row * n + col];
                        assert_eq!(found.want, want);
                        let right = Expected { want, magnitude };
                        assert!(*found == right || !with_magnitudes, "{found:?}");
                        assert_eq!(element(&problem, row, col), right);
                    }
                    Ok(found.len())
                };
                let rows = each_row(&problem, Coverage::Full, with_magnitudes, check).unwrap();
                assert_eq!(rows.iter().sum::<usize>(), expected.len());
            }
        }
    }

    /// Two bands of two rows, and one of the last row; and rows that are each longer than a band.
    #[test]
    fn every_row_is_in_one_band_however_long_rows_are() {
        for (m, k) in [(5, 1 << 22), (2, (1 << 23) + 1)] {
            let (mut a, mut b) = (vec![0f32; m * k], vec![0f32; k]);
            for row in 0..m {
                a[row * k] = 1.0;
                a[(row + 1) * k - 1] = (row + 2) as f32;
            }
            (b[0], b[k - 1]) = (100.0, 1.0);
            let (a, b) = (matrix(m, k, &a), matrix(k, 1, &b));
            let c = matrix(m, 1, &vec![0.0; m]);
            let problem = Problem::new(1.0, 0.0, a, b, c).unwrap();
            let numbered = |row, expected: &[Expected]| Ok((row, expected[0].want));
            let rows = each_row(&problem, Coverage::Full, false, numbered).unwrap();
            let right = (0..m).map(|row| (row, (102 + row) as f64));
            assert_eq!(rows, right.collect::<Vec<_>>());
        }
    }

    #[test]
    fn integers_wrap() {
        let (shape, compact) = (Shape::new(3, 4, 50), Storage::COMPACT);
        let problem = Problem::<i32>::random(shape, compact, Data::Uniform, 5, 3, -7).unwrap();
        let integer =
            |matrix: &Matrix<i32>, row: usize, col: usize| i128::from(matrix.row(row)[col]);
        for row in 0..3 {
            let whole_row = in_own_type(&problem, row, 0..4);
            for (col, &element) in whole_row.iter().enumerate() {
                let terms =
                    (0..50).map(|l| integer(&problem.a, row, l) * integer(&problem.b, l, col));
                let want = 3 * terms.sum::<i128>() - 7 * integer(&problem.c, row, col);
                assert_eq!(element, want as i32);
                assert_eq!(in_own_type(&problem, row, col..col + 1), [element]);
            }
        }
    }
}
