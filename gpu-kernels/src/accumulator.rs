//! How a kernel adds up products.

use crate::compat;
use crate::element::Element;

/// A running sum of products.
pub trait Accumulator<T: Element>: Copy {
    /// The empty sum.
    const EMPTY: Self;

    /// Adds `a * b`.
    fn add(&mut self, a: T, b: T);

    /// The sum.
    fn value(self) -> T;
}

/// Rounds after each product: an error of up to K * 2^-24 of the magnitudes of K products.
#[derive(Clone, Copy)]
pub struct Plain<T>(T);

impl<T: Element> Accumulator<T> for Plain<T> {
    const EMPTY: Self = Self(T::ZERO);

    #[inline(always)]
    fn add(&mut self, a: T, b: T) {
        self.0 = a.times_plus(b, self.0);
    }

    #[inline(always)]
    fn value(self) -> T {
        self.0
    }
}

/// Kahan's compensated summation (W. Kahan, "Further remarks on reducing truncation errors", CACM
/// 8(1), 1965).
///
/// The rounding error of a sum is subtracted from the next product. The error is about 2 * 2^-24
/// of the sum of magnitudes, whatever K is; each product takes four additions, not one.
#[derive(Clone, Copy)]
pub struct Compensated {
    sum: f32,
    /// By how much `sum` is too large.
    excess: f32,
}

impl Accumulator<f32> for Compensated {
    const EMPTY: Self = Self {
        sum: 0.0,
        excess: 0.0,
    };

    #[inline(always)]
    fn add(&mut self, a: f32, b: f32) {
        let term = a * b - self.excess;
        let sum = self.sum + term;
        let excess = (sum - self.sum) - term;
        // Once the sum is infinite, the excess is infinity or NaN: an infinite sum must stay
        // infinite.
        self.excess = if excess.is_finite() { excess } else { 0.0 };
        self.sum = sum;
    }

    #[inline(always)]
    fn value(self) -> f32 {
        self.sum
    }
}

/// A sum as if in twice the precision of `f64`, rounded once: `Dot2` of T. Ogita, S. M. Rump and
/// S. Oishi, "Accurate sum and dot product", SIAM Journal on Scientific Computing 26(6), 2005.
///
/// The exact rounding error of each product and each addition is computed, and these errors are
/// added up beside the sum.
#[derive(Clone, Copy)]
pub struct Dot2 {
    sum: f64,
    correction: f64,
}

impl Accumulator<f64> for Dot2 {
    const EMPTY: Self = Self {
        sum: 0.0,
        correction: 0.0,
    };

    #[inline(always)]
    fn add(&mut self, a: f64, b: f64) {
        let (product, lost_by_product) = compat::exact_product(a, b);
        let sum = self.sum + product;
        // Knuth's TwoSum: exact whichever summand is larger.
        let added = sum - self.sum;
        let lost_by_sum = (self.sum - (sum - added)) + (product - added);
        self.sum = sum;
        self.correction += lost_by_product + lost_by_sum;
    }

    #[inline(always)]
    fn value(self) -> f64 {
        // A sum that is not finite is not corrected.
        if self.sum.is_finite() {
            self.sum + self.correction
        } else {
            self.sum
        }
    }
}
