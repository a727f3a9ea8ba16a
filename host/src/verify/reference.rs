//! What a result must be, computed apart from any kernel: in f64 by `matrixmultiply`; for
//! results that are f64 themselves, as if in twice that precision ([`compensated`]); in integers
//! by plain loops.

use super::compensated::{self, Sum};
use super::outcome::{Failure, check_each};
use crate::data::{Matrix, Number, Problem};
use crate::parallel;

/// What an element must be, and how large the terms of its sum are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// `alpha * sum a b + beta * c`.
    pub want: f64,
    /// `|alpha| * sum |a||b| + |beta||c|`.
    pub magnitude: f64,
}

impl Expected {
    /// From `sum a b` with `sum |a||b|`.
    pub(super) fn new<T: Number>(problem: &Problem<T>, sum: Sum, c: f64) -> Expected {
        let (alpha, beta) = (problem.alpha.to_f64(), problem.beta.to_f64());
        let mut total = match alpha {
            0.0 => Sum::default(),
            alpha => sum.scaled(alpha),
        };
        if beta != 0.0 {
            total.add(beta, c);
        }
        Expected {
            want: total.value(),
            magnitude: total.magnitude,
        }
    }
}

/// What to compute of every element: the magnitudes double the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// [`Expected::want`] alone, of integers so small that nothing rounds.
    Product,
    /// Both.
    ProductAndMagnitude,
}

impl Reference {
    /// Hands each row and what it must be to `check`, in parallel, a band of rows at a time.
    ///
    /// # Errors
    ///
    /// An error of `check`, of the first band that has one.
    pub fn each_row<T: Number, R: Send>(
        self,
        problem: &Problem<T>,
        check: impl Fn(usize, &[Expected]) -> Result<R, Failure> + Sync,
    ) -> Result<Vec<R>, Failure> {
        /// Elements of a band: at most 200 MB of sums.
        const BAND: usize = 1 << 23;
        let shape = problem.shape();
        if shape.is_empty() {
            return Ok(Vec::new());
        }
        let ignored = problem.alpha == T::default();
        let with_magnitudes = self == Reference::ProductAndMagnitude;
        let b = if ignored {
            Vec::new()
        } else {
            to_f64(&problem.b, 0..shape.k)
        };
        let compensate = with_magnitudes && compensated::is_as_fine_as_f64::<T>();
        let mut b_magnitudes = Vec::new();
        if with_magnitudes && !compensate {
            b_magnitudes.clone_from(&b);
            make_positive(&mut b_magnitudes);
        }
        let mut results = Vec::with_capacity(shape.m);
        let rows_at_once = (BAND / shape.n.max(shape.k)).max(1);
        for first in (0..shape.m).step_by(rows_at_once) {
            let rows = rows_at_once.min(shape.m - first);
            let sums: Vec<Sum> = match ignored {
                true => Vec::new(),
                false if compensate => {
                    let a = to_f64(&problem.a, first..first + rows);
                    compensated::multiply(&a, &b, shape.k, shape.n)
                }
                false => {
                    let a = to_f64(&problem.a, first..first + rows);
                    plain_sums(a, &b, &b_magnitudes, shape.k, shape.n)
                }
            };
            let checked = check_each(rows, |row| {
                let c = problem.c.row(first + row);
                let expected: Vec<Expected> = (0..shape.n)
                    .map(|col| {
                        let sum = sums.get(row * shape.n + col).copied();
                        Expected::new(problem, sum.unwrap_or_default(), c[col].to_f64())
                    })
                    .collect();
                check(first + row, &expected)
            })?;
            results.extend(checked);
        }
        Ok(results)
    }
}

/// What one element must be.
pub fn element<T: Number>(problem: &Problem<T>, row: usize, col: usize) -> Expected {
    let mut sum = Sum::default();
    if problem.alpha != T::default() {
        for (index, a) in problem.a.row(row).iter().enumerate() {
            sum.add(a.to_f64(), problem.b.row(index)[col].to_f64());
        }
    }
    Expected::new(problem, sum, problem.c.row(row)[col].to_f64())
}

/// What a row must be in arithmetic that wraps.
pub fn wrapping_row<T: Number>(problem: &Problem<T>, row: usize) -> Vec<T> {
    let zero = T::default();
    let mut sums = vec![zero; problem.shape().n];
    if problem.alpha != zero {
        for (index, a) in problem.a.row(row).iter().enumerate() {
            for (sum, b) in sums.iter_mut().zip(problem.b.row(index)) {
                *sum = a.times_plus(*b, *sum);
            }
        }
    }
    for (sum, c) in sums.iter_mut().zip(problem.c.row(row)) {
        *sum = scaled(problem, *sum, *c);
    }
    sums
}

/// What one element must be in arithmetic that wraps.
pub fn wrapping_element<T: Number>(problem: &Problem<T>, row: usize, col: usize) -> T {
    let zero = T::default();
    let mut sum = zero;
    if problem.alpha != zero {
        for (index, a) in problem.a.row(row).iter().enumerate() {
            sum = a.times_plus(problem.b.row(index)[col], sum);
        }
    }
    scaled(problem, sum, problem.c.row(row)[col])
}

/// `alpha * sum + beta * c`, wrapping.
fn scaled<T: Number>(problem: &Problem<T>, sum: T, c: T) -> T {
    let product = problem.alpha.times_plus(sum, T::default());
    problem.beta.times_plus(c, product)
}

/// Some rows of a matrix, compact.
fn to_f64<T: Number>(matrix: &Matrix<T>, rows: std::ops::Range<usize>) -> Vec<f64> {
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
    rounded
        .into_iter()
        .zip(magnitudes)
        .map(|(rounded, magnitude)| Sum {
            rounded,
            correction: 0.0,
            magnitude,
        })
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
    use crate::data::{Data, Layout, Placement};
    use gpu_gemm::Shape;

    /// 2 x 3 times 3 x 2, worked out by hand.
    fn by_hand() -> Problem<f32> {
        let matrix = |rows, columns, values: &[f32]| {
            Matrix::new(values.to_vec(), rows, columns, Placement::compact(columns)).unwrap()
        };
        Problem::new(
            2.0,
            -1.0,
            matrix(2, 3, &[1.0, -2.0, 3.0, 0.0, 4.0, 5.0]),
            matrix(3, 2, &[1.0, 2.0, 3.0, -4.0, 5.0, 6.0]),
            matrix(2, 2, &[10.0, 20.0, 30.0, 40.0]),
        )
        .unwrap()
    }

    // A B = [10, 28; 37, 14] and |A||B| = [22, 28; 37, 46], so 2 A B - C = [10, 36; 44, -12].
    const WANT: [[f64; 2]; 2] = [[10.0, 36.0], [44.0, -12.0]];
    const MAGNITUDE: [[f64; 2]; 2] = [[54.0, 76.0], [104.0, 132.0]];

    #[test]
    fn both_ways_agree_with_a_product_worked_out_by_hand() {
        let problem = by_hand();
        let rows = Reference::ProductAndMagnitude
            .each_row(&problem, |row, expected| Ok((row, expected.to_vec())))
            .unwrap();
        for (row, expected) in rows {
            for col in 0..2 {
                let by_hand = Expected {
                    want: WANT[row][col],
                    magnitude: MAGNITUDE[row][col],
                };
                assert_eq!(expected[col], by_hand);
                assert_eq!(element(&problem, row, col), by_hand);
            }
        }
    }

    /// The numbers of the rows, and what each row of one element is.
    fn single_column(m: usize, k: usize) -> Vec<(usize, f64)> {
        let mut a = vec![0f32; m * k];
        for row in 0..m {
            a[row * k] = 1.0;
            a[(row + 1) * k - 1] = (row + 2) as f32;
        }
        let mut b = vec![0f32; k];
        (b[0], b[k - 1]) = (100.0, 1.0);
        let matrix = |values, rows, columns| {
            Matrix::new(values, rows, columns, Placement::compact(columns)).unwrap()
        };
        let (a, b, c) = (
            matrix(a, m, k),
            matrix(b, k, 1),
            matrix(vec![0f32; m], m, 1),
        );
        let problem = Problem::new(1.0, 0.0, a, b, c).unwrap();
        Reference::Product
            .each_row(&problem, |row, expected| Ok((row, expected[0].want)))
            .unwrap()
    }

    /// Two bands of two rows and one of the last; and rows that are each longer than a band should
    /// be.
    #[test]
    fn every_row_is_in_one_band_however_long_rows_are() {
        let rows = |m: usize| {
            (0..m)
                .map(|row| (row, (102 + row) as f64))
                .collect::<Vec<_>>()
        };
        assert_eq!(single_column(5, 1 << 22), rows(5));
        assert_eq!(single_column(2, (1 << 23) + 1), rows(2));
    }

    #[test]
    fn a_product_replaces_what_was_there() {
        let mut c = [f64::NAN; 2];
        multiply(&[1.0, 2.0], &[3.0, 4.0, 5.0, 6.0], 2, 2, &mut c);
        assert_eq!(c, [13.0, 16.0]);
    }

    /// 1 + 2^-30 + 2^-40, of which f32 keeps only the 1.
    #[test]
    fn the_reference_of_f32_is_not_rounded_to_f32() {
        let two_to = |exponent| 2f32.powi(exponent);
        let matrix = |rows, columns, values: &[f32]| {
            Matrix::new(values.to_vec(), rows, columns, Placement::compact(columns)).unwrap()
        };
        let (a, b) = (&[1.0, two_to(-15)], &[1.0, two_to(-15)]);
        let problem = Problem::new(
            1.0,
            1.0,
            matrix(1, 2, a),
            matrix(2, 1, b),
            matrix(1, 1, &[two_to(-40)]),
        )
        .unwrap();
        let want = 1.0 + 2f64.powi(-30) + 2f64.powi(-40);
        assert_eq!(element(&problem, 0, 0).want, want);
        for reference in [Reference::Product, Reference::ProductAndMagnitude] {
            reference
                .each_row(&problem, |_, expected| {
                    assert_eq!(expected[0].want, want);
                    Ok(())
                })
                .unwrap();
        }
    }

    #[test]
    fn integers_wrap() {
        let shape = Shape::new(3, 4, 50);
        let layout = Layout::compact(shape);
        let problem = Problem::<i32>::random(shape, layout, Data::Uniform, 5, 3, -7).unwrap();
        for row in 0..3 {
            let wrapped = wrapping_row(&problem, row);
            for (col, &element) in wrapped.iter().enumerate() {
                let mut sum = 0i128;
                for index in 0..50 {
                    sum += i128::from(problem.a.row(row)[index])
                        * i128::from(problem.b.row(index)[col]);
                }
                let want = (3 * sum - 7 * i128::from(problem.c.row(row)[col])) as i32;
                assert_eq!(element, want);
                assert_eq!(wrapping_element(&problem, row, col), want);
            }
        }
    }
}
