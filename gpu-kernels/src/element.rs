//! The element types of kernels.

/// An element of a matrix. Integers wrap, as on a GPU; floats round, and the compiler may fuse a
/// product and an addition.
pub trait Element: Copy + PartialEq {
    const ZERO: Self;

    /// `self + b`.
    fn plus(self, b: Self) -> Self;

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
            fn plus(self, b: Self) -> Self {
                self + b
            }

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
    fn plus(self, b: Self) -> Self {
        self.wrapping_add(b)
    }

    #[inline(always)]
    fn times(self, b: Self) -> Self {
        self.wrapping_mul(b)
    }

    #[inline(always)]
    fn times_plus(self, b: Self, c: Self) -> Self {
        self.wrapping_mul(b).wrapping_add(c)
    }
}

/// An element of 32 bits, which is loaded and stored as an f32 of the same bits.
pub trait Word: Element {
    /// The element with the bits of an f32.
    fn of_bits(bits: f32) -> Self;

    /// The f32 with the bits of the element.
    fn bits(self) -> f32;
}

impl Word for f32 {
    #[inline(always)]
    fn of_bits(bits: f32) -> f32 {
        bits
    }

    #[inline(always)]
    fn bits(self) -> f32 {
        self
    }
}

impl Word for i32 {
    #[inline(always)]
    fn of_bits(bits: f32) -> i32 {
        bits.to_bits() as i32
    }

    #[inline(always)]
    fn bits(self) -> f32 {
        f32::from_bits(self as u32)
    }
}
