//! How large rounding errors can be, and how large they ever are.
//!
//! With unit roundoff u, a sum of k products, in any order, with FMA or without, scaled and added to `beta * c`, is off by
//! at most
//!
//! ```text
//!     gamma(k + 2) * (|alpha| * sum |a||b| + |beta||c|)  +  (k + 2) * max(1, |alpha|) * smallest
//! ```
//!
//! where `gamma(n) = n * u / (1 - n * u)` (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, section
//! 3.1), and the last term is what underflow adds. The reference is computed in f64, whose own error is 2^-29 of this for
//! f32 and is not added.

use approx::abs_diff_eq;
use rayon::prelude::*;

use super::{Failure, reference};
use crate::element::{Arithmetic, Element};
use crate::problem::{Data, Matrix, Problem};

/// The error bound of one problem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBound {
    gamma: f64,
    underflow: f64,
    unit_roundoff: f64,
    largest: f64,
}

impl ErrorBound {
    /// The bound for the sums of `problem`.
    ///
    /// # Errors
    ///
    /// The sums are so long that there is none (2^24 terms of f32), or the elements are integers, which do not round.
    pub fn new<T: Element>(problem: &Problem<T>) -> Result<ErrorBound, Failure> {
        let Arithmetic::Float {
            unit_roundoff,
            smallest,
            largest,
            ..
        } = T::ARITHMETIC
        else {
            return Err(Failure::Unprovable(
                "integers have no error bound.".to_string(),
            ));
        };
        let operations = problem.shape().k as f64 + 2.0;
        let rounding = operations * unit_roundoff;
        if !(rounding < 1.0) {
            return Err(Failure::Unprovable(format!(
                "a sum of {} products may lose all its digits in {}.",
                problem.shape().k,
                T::TYPE
            )));
        }
        Ok(ErrorBound {
            gamma: rounding / (1.0 - rounding),
            underflow: operations * problem.alpha.to_f64().abs().max(1.0) * smallest,
            unit_roundoff,
            largest,
        })
    }

    /// The bound for an element whose terms have magnitudes that add up to `magnitude`.
    pub fn of(&self, magnitude: f64) -> f64 {
        self.gamma * magnitude + self.underflow
    }

    /// Whether `got` is right where `want` is. What is not finite must be the same; a result that may overflow may also
    /// be an infinity of its sign.
    pub fn accepts(&self, got: f64, want: f64, bound: f64) -> bool {
        if want.is_nan() {
            return got.is_nan();
        }
        if want.is_infinite() || (got.is_infinite() && want.abs() + bound > self.largest) {
            return got.is_infinite() && got.signum() == want.signum();
        }
        // False if `got` is a NaN.
        abs_diff_eq!(got, want, epsilon = bound)
    }

    /// An error in units of rounding of the sum of magnitudes.
    pub fn units(&self, err: f64, magnitude: f64) -> f64 {
        if err <= self.underflow {
            return 0.0;
        }
        (err - self.underflow) / (self.unit_roundoff * magnitude)
    }

    /// Checks every row's sum, with random signs, within the sum of the bounds of its elements.
    ///
    /// # Errors
    ///
    /// The first row that is wrong.
    pub fn check_row_sums<T: Element>(
        &self,
        problem: &Problem<T>,
        got: &Matrix<T>,
    ) -> Result<(), Failure> {
        /// Half of f64's epsilon.
        const REFERENCE_ROUNDOFF: f64 = 0.5 * f64::EPSILON;
        let shape = problem.shape();
        let sums = reference::SignedRowSums::new(problem);
        // Each sum here has n + k + 3 roundings of its own, in f64.
        let reference = (shape.n + shape.k + 3) as f64 * 2.0 * REFERENCE_ROUNDOFF;
        (0..shape.m).into_par_iter().try_for_each(|row| {
            let want = sums.expected(problem, row);
            let sum = sums.of(got.row(row));
            let bound = (self.gamma + reference) * want.magnitude + shape.n as f64 * self.underflow;
            let right = match want.want.is_finite() && want.magnitude <= self.largest {
                true => abs_diff_eq!(sum, want.want, epsilon = bound),
                // The row holds a NaN, an infinity or an overflow: elements are compared one by one, at the samples.
                false => true,
            };
            match right {
                true => Ok(()),
                false => Err(Failure::RowSum {
                    row,
                    got: sum,
                    want: want.want,
                    bound,
                }),
            }
        })
    }
}

/// The error, in units of rounding, that sums over such data never reached. Sequential sums gave 5 and 16 at k = 256, 3 and
/// 88 at k = 16384, on data of either sign and on positive data.
pub fn alarm_limit(data: Data, k: usize) -> Option<f64> {
    match data {
        Data::Uniform => Some(32.0),
        Data::Positive => Some(9.0 * (k as f64 + 2.0).sqrt()),
        Data::SmallIntegers { .. } | Data::Normal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Layout, Shape};

    fn bound(k: usize, alpha: f32) -> Result<ErrorBound, Failure> {
        let shape = Shape { m: 1, n: 1, k };
        let layout = Layout::compact(shape);
        ErrorBound::new(&Problem::random(shape, layout, Data::Uniform, 1, alpha, 0.0).unwrap())
    }

    #[test]
    fn the_bound_is_the_documented_formula() {
        let bound = bound(14, -3.0).unwrap();
        let nu = 16.0 / 16_777_216.0;
        let expected = nu / (1.0 - nu) * 10.0 + 16.0 * 3.0 * 2f64.powi(-149);
        approx::assert_relative_eq!(bound.of(10.0), expected, max_relative = 1e-15);
        assert_eq!(bound.of(0.0), 48.0 * 2f64.powi(-149));
    }

    #[test]
    fn a_sum_of_2_to_the_24_terms_has_no_bound() {
        assert!(bound((1 << 24) - 3, 1.0).is_ok());
        assert!(matches!(
            bound((1 << 24) - 2, 1.0),
            Err(Failure::Unprovable(_))
        ));
    }

    #[test]
    fn what_is_not_finite_must_be_the_same() {
        let bound = bound(4, 1.0).unwrap();
        let infinity = f64::INFINITY;
        for (got, want) in [
            (f64::NAN, f64::NAN),
            (infinity, infinity),
            (-infinity, -infinity),
        ] {
            assert!(bound.accepts(got, want, 1.0));
        }
        for (got, want) in [
            (f64::NAN, 0.0),
            (0.0, f64::NAN),
            (infinity, 1.0),
            (1.0, infinity),
            (infinity, -infinity),
            (infinity, f64::NAN),
            (f64::NAN, infinity),
        ] {
            assert!(!bound.accepts(got, want, 1e30), "{got} for {want}");
        }
    }

    #[test]
    fn only_a_result_that_may_overflow_may_be_an_infinity() {
        let bound = bound(4, 1.0).unwrap();
        let largest = f64::from(f32::MAX);
        assert!(bound.accepts(f64::INFINITY, largest, 1e32));
        assert!(bound.accepts(f64::INFINITY, 1e39, 1e32));
        assert!(bound.accepts(largest, largest, 1e32));
        assert!(!bound.accepts(f64::NEG_INFINITY, 1e39, 1e32));
        assert!(!bound.accepts(f64::INFINITY, 1e38, 1e32));
        assert!(!bound.accepts(f64::NAN, 1e39, 1e32));
    }

    #[test]
    fn an_error_at_the_bound_is_right_and_just_beyond_it_wrong() {
        let bound = bound(4, 1.0).unwrap();
        assert!(bound.accepts(1.5, 1.0, 0.5));
        assert!(!bound.accepts(1.5 + f64::EPSILON, 1.0, 0.5));
        assert!(!bound.accepts(0.5 - f64::EPSILON, 1.0, 0.5));
    }
}
