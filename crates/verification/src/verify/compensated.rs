//! Sums of products as if computed in twice the precision of f64: the reference for results that
//! are f64 themselves.
//!
//! The exact rounding error of each product and each addition is computed, and these are added up
//! beside the sum: `Dot2` of T. Ogita, S. M. Rump and S. Oishi, "Accurate sum and dot product",
//! SIAM Journal on Scientific Computing 26(6), 2005. With u = 2^-53 and eta = 2^-1074, sum and
//! correction together have an error of at most
//!
//! ```text
//!     gamma(k)^2 * sum |a||b|  +  5 * k * eta
//! ```
//!
//! (their Proposition 5.5; rounding both to one f64 adds u times the result).

use crate::parallel;

use crate::data::{Arithmetic, Number};

/// A sum of products, and its accumulated rounding error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// The sum, rounded at every step.
    pub rounded: f64,
    /// The correction, added to it at the end.
    pub correction: f64,
    /// The sum of the terms' magnitudes.
    pub magnitude: f64,
}

impl Sum {
    /// A sum without a correction.
    pub fn plain(rounded: f64, magnitude: f64) -> Sum {
        Sum {
            rounded,
            correction: 0.0,
            magnitude,
        }
    }

    /// Adds `a * b`.
    #[inline(always)]
    pub fn add(&mut self, a: f64, b: f64) {
        let product = a * b;
        let lost_by_product = a.mul_add(b, -product);
        let sum = self.rounded + product;
        // Knuth's TwoSum: exact whichever summand is larger.
        let added = sum - self.rounded;
        let lost_by_sum = (self.rounded - (sum - added)) + (product - added);
        self.rounded = sum;
        self.correction += lost_by_product + lost_by_sum;
        self.magnitude += product.abs();
    }

    /// The sum as one f64. If it is not finite, it is not corrected.
    pub fn value(self) -> f64 {
        match self.rounded.is_finite() {
            true => self.rounded + self.correction,
            false => self.rounded,
        }
    }

    /// `alpha` times the sum. The caller handles a zero `alpha`.
    pub fn scaled(self, alpha: f64) -> Sum {
        let mut scaled = Sum::default();
        scaled.add(alpha, self.rounded);
        scaled.correction += alpha * self.correction;
        scaled.magnitude = alpha.abs() * self.magnitude;
        scaled
    }
}

/// The columns accumulated at once in a CPU's registers.
const COLUMNS: usize = 8;

/// A row of some neighbouring columns of B.
type Slice = [f64; COLUMNS];

/// Every element of `a * b`, both compact and row-major, `a` with `k` columns and `b` with `n`.
pub fn multiply(a: &[f64], b: &[f64], k: usize, n: usize) -> Vec<Sum> {
    /// Rows that read the same columns of B while these are in the cache.
    const ROWS: usize = 16;
    let m = a.len().checked_div(k).unwrap_or(0);
    let mut sums = vec![Sum::default(); m * n];
    if n == 0 || k == 0 {
        return sums;
    }
    let panels = parallel::map(n.div_ceil(COLUMNS), |index| panel(b, n, index * COLUMNS));
    parallel::pieces(&mut sums, ROWS * n, |piece, sums| {
        let a = &a[piece * ROWS * k..]; // from these rows on
        for (index, panel) in panels.iter().enumerate() {
            for (sums, a) in sums.chunks_mut(n).zip(a.chunks(k)) {
                let columns = columns(a, panel);
                // The last panel has more columns than B.
                for (sum, column) in sums[index * COLUMNS..].iter_mut().zip(columns) {
                    *sum = column;
                }
            }
        }
    });
    sums
}

/// The columns of B from `first` on, as one slice for each row, with zeros beyond the end of B.
fn panel(b: &[f64], n: usize, first: usize) -> Vec<Slice> {
    let slice = |row: &[f64]| {
        let mut slice = [0.0; COLUMNS];
        for (element, b) in slice.iter_mut().zip(&row[first..]) {
            *element = *b;
        }
        slice
    };
    b.chunks(n).map(slice).collect()
}

/// The sums of the products of a row of A and some columns of B.
fn columns(a: &[f64], panel: &[Slice]) -> [Sum; COLUMNS] {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has both features.
        return unsafe { columns_fma(a, panel) };
    }
    columns_on_any_cpu(a, panel)
}

/// Compiled for CPUs with FMA: without that instruction each `mul_add` calls a function that
/// emulates it.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn columns_fma(a: &[f64], panel: &[Slice]) -> [Sum; COLUMNS] {
    columns_on_any_cpu(a, panel)
}

#[inline(always)]
fn columns_on_any_cpu(a: &[f64], panel: &[Slice]) -> [Sum; COLUMNS] {
    // An array for each field, which compilers vectorise.
    let mut rounded = [0.0; COLUMNS];
    let mut correction = [0.0; COLUMNS];
    let mut magnitude = [0.0; COLUMNS];
    for (a, slice) in a.iter().zip(panel) {
        for column in 0..COLUMNS {
            let mut sum = Sum {
                rounded: rounded[column],
                correction: correction[column],
                magnitude: magnitude[column],
            };
            sum.add(*a, slice[column]);
            rounded[column] = sum.rounded;
            correction[column] = sum.correction;
            magnitude[column] = sum.magnitude;
        }
    }
    std::array::from_fn(|column| Sum {
        rounded: rounded[column],
        correction: correction[column],
        magnitude: magnitude[column],
    })
}

/// Whether `T` is as precise as f64, so that a reference in plain f64 would be no better than the
/// result.
pub fn is_as_fine_as_f64<T: Number>() -> bool {
    matches!(T::ARITHMETIC, Arithmetic::Float { unit_roundoff, .. } if unit_roundoff <= 0.5 * f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(products: &[(f64, f64)]) -> Sum {
        let mut sum = Sum::default();
        for (a, b) in products {
            sum.add(*a, *b);
        }
        sum
    }

    #[test]
    fn infinities_and_nans_stay_what_they_are() {
        let infinity = f64::INFINITY;
        assert_eq!(sum(&[(infinity, 1.0), (1.0, 1.0)]).value(), infinity);
        assert_eq!(sum(&[(f64::MAX, 2.0)]).value(), infinity);
        assert_eq!(sum(&[(f64::MAX, 1.0)]).scaled(-2.0).value(), -infinity);
        assert!(sum(&[(infinity, 0.0)]).value().is_nan());
        assert!(sum(&[(infinity, 1.0), (-infinity, 1.0)]).value().is_nan());
    }

    #[test]
    fn columns_of_full_panels_and_of_the_last_one_are_the_same_sums_as_one_by_one() {
        let (m, n, k) = (3, 2 * COLUMNS + 5, 40);
        let element = |index: usize| (index as f64 * 0.7).sin() * 2f64.powi(index as i32 % 60 - 30);
        let a: Vec<f64> = (0..m * k).map(element).collect();
        let b: Vec<f64> = (0..k * n).map(|index| element(index + 9)).collect();
        let sums = multiply(&a, &b, k, n);
        for row in 0..m {
            for column in 0..n {
                let products: Vec<(f64, f64)> = (0..k)
                    .map(|i| (a[row * k + i], b[i * n + column]))
                    .collect();
                assert_eq!(sums[row * n + column], sum(&products));
            }
        }
    }
}
