//! What a kernel multiplies and adds.

/// An element of a matrix. Integers wrap, as a GPU's do; floats round, and the compiler may fuse a
/// product with the addition that follows.
pub trait Element: Copy + PartialEq {
    const ZERO: Self;

    /// `self * b`.
    fn times(self, b: Self) -> Self;

    /// `self * b + c`.
    fn times_plus(self, b: Self, c: Self) -> Self;
}

macro_rules! float {
    ($float:ty) => {
        impl Element for $float {
            const ZERO: Self = 0.0;

            #[inline(always)]
            fn times(self, b: Self) -> Self {
                self * b
            }

            #[inline(always)]
            fn times_plus(self, b: Self, c: Self) -> Self {
                // Not `mul_add`: libNVVM fuses this into one FMA, and a CPU without FMA would
                // emulate `mul_add`.
                self * b + c
            }
        }
    };
}

float!(f32);
float!(f64);

impl Element for i32 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn times(self, b: Self) -> Self {
        self.wrapping_mul(b)
    }

    #[inline(always)]
    fn times_plus(self, b: Self, c: Self) -> Self {
        self.wrapping_mul(b).wrapping_add(c)
    }
}
