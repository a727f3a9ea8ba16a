//! The numbers that matrices may hold: their arithmetic on the host, and how it rounds.

use std::fmt;

use gpu_gemm::{Bf16, F16};

/// How an element type rounds: what an error bound is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arithmetic {
    /// Sums and products are rounded to the nearest representable number.
    Float {
        /// The largest relative error of one rounding: 2^-24 for `f32`, 2^-53 for `f64`.
        unit_roundoff: f64,
        /// The smallest positive number, the absolute error of one underflow: 2^-149 for `f32`,
        /// 2^-1074 for `f64`.
        smallest: f64,
        /// The largest finite number.
        largest: f64,
        /// All integers up to this magnitude are represented exactly: 2^24 for `f32`, 2^53 for
        /// `f64`.
        exact_integers: f64,
    },
    /// Nothing is rounded; results are taken modulo 2^`bits`.
    WrappingInteger {
        /// The width of the type.
        bits: u32,
    },
}

/// A number that matrices may hold, as checking it requires.
pub trait Number: gpu_gemm::Element + fmt::Debug + fmt::Display {
    /// What is written wherever a kernel must neither read nor write: a NaN with a payload of
    /// its own, so that reading it poisons the result and overwriting it, even with another NaN,
    /// shows.
    const POISON: Self;

    /// How it rounds.
    const ARITHMETIC: Arithmetic;

    /// How sums of its products round: in its own arithmetic, but for elements of 16 bits, whose
    /// sums are f32.
    const SUMS: Arithmetic = Self::ARITHMETIC;

    /// Its bits, for comparisons that tell NaNs and zeros apart.
    fn bits(self) -> u64;

    /// Its value; exact for the types of up to 32 bits, and for `f64`.
    fn to_f64(self) -> f64;

    /// Its value as an integer, if it is one.
    fn to_integer(self) -> Option<i64>;

    /// An integer as an element; exact within [`Arithmetic::Float::exact_integers`].
    fn from_integer(value: i32) -> Self;

    /// The element nearest to a result; an integer is one.
    fn nearest(value: f64) -> Self;

    /// A scalar of the command line as an element, if it is representable.
    fn from_scalar(value: f64) -> Option<Self>;

    /// `self * factor + addend`: floats round twice, integers wrap.
    fn times_plus(self, factor: Self, addend: Self) -> Self;

    /// `self * factor + addend`: floats round once, by a slow function where the CPU has no
    /// instruction for it.
    fn fused_times_plus(self, factor: Self, addend: Self) -> Self;

    /// `self + addend`; integers wrap.
    fn plus(self, addend: Self) -> Self;

    /// `self - subtrahend`; integers wrap.
    fn minus(self, subtrahend: Self) -> Self;
}

/// [`Number`] for a float, by the bits of its poison.
macro_rules! float {
    ($float:ident, $poison:literal) => {
        impl Number for $float {
            const POISON: $float = $float::from_bits($poison);
            const ARITHMETIC: Arithmetic = Arithmetic::Float {
                unit_roundoff: 0.5 * $float::EPSILON as f64,
                smallest: $float::from_bits(1) as f64,
                largest: $float::MAX as f64,
                exact_integers: (1u64 << $float::MANTISSA_DIGITS) as f64,
            };

            fn bits(self) -> u64 {
                self.to_bits().into()
            }

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn to_integer(self) -> Option<i64> {
                // `as` saturates at 2^63, far beyond any sum that a check takes for an integer.
                let integer = self as i64;
                let is_exact = integer as $float == self && self.abs() < i64::MAX as $float;
                is_exact.then_some(integer)
            }

            fn from_integer(value: i32) -> $float {
                value as $float
            }

            fn nearest(value: f64) -> $float {
                value as $float
            }

            fn from_scalar(value: f64) -> Option<$float> {
                let scalar = value as $float;
                (scalar.is_finite() || !value.is_finite()).then_some(scalar)
            }

            #[inline(always)]
            fn times_plus(self, factor: $float, addend: $float) -> $float {
                self * factor + addend
            }

            #[inline(always)]
            fn fused_times_plus(self, factor: $float, addend: $float) -> $float {
                self.mul_add(factor, addend)
            }

            #[inline(always)]
            fn plus(self, addend: $float) -> $float {
                self + addend
            }

            #[inline(always)]
            fn minus(self, subtrahend: $float) -> $float {
                self - subtrahend
            }
        }
    };
}

float!(f32, 0x7fc5_a5a5);
float!(f64, 0x7ffc_a5a5_a5a5_a5a5);

/// [`Number`] for elements of 16 bits, by the bits of their poison, of the largest and of
/// precision.
macro_rules! half {
    ($half:ident, $poison:literal, $largest:literal, $precision:literal) => {
        impl Number for $half {
            const POISON: $half = $half::from_bits($poison);
            const ARITHMETIC: Arithmetic = Arithmetic::Float {
                unit_roundoff: 1.0 / (1u64 << $precision) as f64,
                smallest: <$half>::SMALLEST,
                largest: $largest,
                exact_integers: (1u64 << $precision) as f64,
            };
            const SUMS: Arithmetic = f32::ARITHMETIC;

            fn bits(self) -> u64 {
                self.to_bits().into()
            }

            fn to_f64(self) -> f64 {
                self.to_f32().into()
            }

            fn to_integer(self) -> Option<i64> {
                self.to_f32().to_integer()
            }

            fn from_integer(value: i32) -> $half {
                $half::from_f64(value.into())
            }

            fn nearest(value: f64) -> $half {
                $half::from_f64(value)
            }

            fn from_scalar(value: f64) -> Option<$half> {
                let scalar = $half::from_f64(value);
                (scalar.to_f32().is_finite() || !value.is_finite()).then_some(scalar)
            }

            #[inline(always)]
            fn times_plus(self, factor: $half, addend: $half) -> $half {
                $half::from_f32(self.to_f32() * factor.to_f32() + addend.to_f32())
            }

            #[inline(always)]
            fn fused_times_plus(self, factor: $half, addend: $half) -> $half {
                $half::from_f64(self.to_f64() * factor.to_f64() + addend.to_f64())
            }

            #[inline(always)]
            fn plus(self, addend: $half) -> $half {
                $half::from_f32(self.to_f32() + addend.to_f32())
            }

            #[inline(always)]
            fn minus(self, subtrahend: $half) -> $half {
                $half::from_f32(self.to_f32() - subtrahend.to_f32())
            }
        }
    };
}

half!(Bf16, 0x7fa5, 3.389_531_389_251_535_5e38, 8);
half!(F16, 0x7da5, 65_504.0, 11);

impl Number for i32 {
    const POISON: i32 = 0x5a5a_5a5b;
    const ARITHMETIC: Arithmetic = Arithmetic::WrappingInteger { bits: 32 };

    fn bits(self) -> u64 {
        self.cast_unsigned().into()
    }

    fn to_f64(self) -> f64 {
        self.into()
    }

    fn to_integer(self) -> Option<i64> {
        Some(self.into())
    }

    fn from_integer(value: i32) -> i32 {
        value
    }

    fn nearest(value: f64) -> i32 {
        value as i32
    }

    fn from_scalar(value: f64) -> Option<i32> {
        let scalar = value as i32;
        (f64::from(scalar) == value).then_some(scalar)
    }

    #[inline(always)]
    fn times_plus(self, factor: i32, addend: i32) -> i32 {
        self.wrapping_mul(factor).wrapping_add(addend)
    }

    #[inline(always)]
    fn fused_times_plus(self, factor: i32, addend: i32) -> i32 {
        self.times_plus(factor, addend)
    }

    #[inline(always)]
    fn plus(self, addend: i32) -> i32 {
        self.wrapping_add(addend)
    }

    #[inline(always)]
    fn minus(self, subtrahend: i32) -> i32 {
        self.wrapping_sub(subtrahend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arithmetic_of_f32_is_ieee_binary32() {
        let expected = Arithmetic::Float {
            unit_roundoff: 2f64.powi(-24),
            smallest: 2f64.powi(-149),
            largest: 2f64.powi(128) - 2f64.powi(104),
            exact_integers: 2f64.powi(24),
        };
        assert_eq!(f32::ARITHMETIC, expected);
    }

    #[test]
    fn the_arithmetic_of_f64_is_ieee_binary64() {
        let expected = Arithmetic::Float {
            unit_roundoff: 2f64.powi(-53),
            smallest: 2f64.powi(-1022) * 2f64.powi(-52),
            largest: 2f64.powi(1023) * (2.0 - 2f64.powi(-52)),
            exact_integers: 2f64.powi(53),
        };
        assert_eq!(f64::ARITHMETIC, expected);
    }

    #[test]
    fn poison_is_a_nan_that_no_arithmetic_produces() {
        assert!(f64::POISON.is_nan());
        assert_ne!((f64::INFINITY - f64::INFINITY).bits(), f64::POISON.bits());
        assert!(f32::POISON.is_nan());
        assert_ne!(f32::POISON.bits(), f32::NAN.bits());
        assert_ne!((f32::INFINITY - f32::INFINITY).bits(), f32::POISON.bits());
    }

    #[test]
    fn only_integers_become_integers() {
        assert_eq!((-7.0f32).to_integer(), Some(-7));
        for other in [0.5, f32::NAN, f32::INFINITY, f32::MAX] {
            assert_eq!(other.to_integer(), None);
        }
        assert_eq!((-2f64.powi(53)).to_integer(), Some(-(1 << 53)));
        for other in [0.5, f64::NAN, f64::INFINITY, f64::MAX, 2f64.powi(63)] {
            assert_eq!(other.to_integer(), None);
        }
    }

    #[test]
    fn a_scalar_that_the_type_cannot_hold_is_refused() {
        assert_eq!(f32::from_scalar(1e39), None);
        assert_eq!(f32::from_scalar(f64::INFINITY), Some(f32::INFINITY));
        assert_eq!(i32::from_scalar(0.5), None);
        assert_eq!(i32::from_scalar(-3.0), Some(-3));
    }
}
