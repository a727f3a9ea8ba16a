//! How a kernel adds up products.

use crate::element::Element;

/// A running sum of products.
pub trait Accumulator<T: Element>: Copy {
    /// Nothing added yet.
    const EMPTY: Self;

    /// Adds `a * b`.
    fn add(&mut self, a: T, b: T);

    /// The sum.
    fn value(self) -> T;
}

/// Rounds after each product: K products lose up to K * 2^-24 of the sum of their magnitudes.
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
/// What rounding cuts off a sum is subtracted from the next product. The error no longer grows
/// with K; each product takes four additions instead of one.
#[derive(Clone, Copy)]
pub struct Compensated {
    sum: f32,
    /// How much `sum` is too large.
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
        // The excess of an infinite sum is infinity less infinity, NaN: an infinite sum must stay
        // infinite.
        self.excess = if excess.is_nan() { 0.0 } else { excess };
        self.sum = sum;
    }

    #[inline(always)]
    fn value(self) -> f32 {
        self.sum
    }
}
