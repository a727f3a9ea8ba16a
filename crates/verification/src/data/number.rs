//! The numbers that matrices may hold: their arithmetic on the host, and how it rounds.

use std::fmt;

use gpu_gemm::{Bf16, E4m3, F16};
use rand::RngExt;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;

use super::random::Data;

/// How an element type rounds. Error bounds are computed from it.
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

/// A number that matrices may hold: all that filling, multiplying and checking them requires.
pub trait Number: gpu_gemm::Element + fmt::Debug + fmt::Display {
    /// Fills memory that a kernel must neither read nor write: a NaN with a payload of its own, so
    /// that reading it poisons the result, and overwriting it, even with another NaN, is detected.
    const POISON: Self;

    /// How it rounds.
    const ARITHMETIC: Arithmetic;

    /// How sums of its products round: in its own arithmetic, except for floats of 8 and 16 bits,
    /// which are summed in f32.
    const SUMS: Arithmetic = Self::ARITHMETIC;

    /// The largest power of two by which [`Data::Graded`] scales: 40, so that products are between
    /// `2^-80` and `2^80`, and their sums are in range; 2 for `f16`, which ends at 65504, and for
    /// e4m3; 0 for integers, which are not scaled.
    const LARGEST_POWER: i32 = 40;

    /// Whether elements have fewer bits than their sums.
    fn rounds_sums() -> bool {
        Self::SUMS != Self::ARITHMETIC
    }

    /// Its bits, for comparisons that tell NaNs and zeros apart.
    fn bits(self) -> u64;

    /// The number with these bits; bits beyond its width are ignored.
    fn from_bits(bits: u64) -> Self;

    /// Its value; exact for all types.
    fn to_f64(self) -> f64;

    /// The element nearest to a result; exact for integers.
    fn nearest(value: f64) -> Self;

    /// Its value as an integer, if it is one.
    fn to_integer(self) -> Option<i64> {
        // `as` saturates at 2^63, far beyond any sum that a check compares as an integer.
        let (value, integer) = (self.to_f64(), self.to_f64() as i64);
        (integer as f64 == value && value.abs() < i64::MAX as f64).then_some(integer)
    }

    /// An integer as an element; exact within [`Arithmetic::Float::exact_integers`].
    fn from_integer(value: i32) -> Self {
        Self::nearest(value.into())
    }

    /// A scalar of the command line as an element, if it is representable.
    fn from_scalar(value: f64) -> Option<Self> {
        let scalar = Self::nearest(value);
        (scalar.to_f64().is_finite() || !value.is_finite()).then_some(scalar)
    }

    /// `self * factor + addend`: floats round twice, elements of 16 bits once, integers wrap.
    fn times_plus(self, factor: Self, addend: Self) -> Self {
        Self::nearest(self.to_f64() * factor.to_f64() + addend.to_f64())
    }

    /// `self * factor + addend`: floats round once, with a slow function on CPUs without an
    /// instruction for it; integers wrap.
    fn fused_times_plus(self, factor: Self, addend: Self) -> Self {
        self.times_plus(factor, addend)
    }

    /// `self + addend`; integers wrap.
    fn plus(self, addend: Self) -> Self {
        Self::nearest(self.to_f64() + addend.to_f64())
    }

    /// `self - subtrahend`; integers wrap.
    fn minus(self, subtrahend: Self) -> Self {
        Self::nearest(self.to_f64() - subtrahend.to_f64())
    }

    /// A random element of `data`, before scaling.
    fn random(data: Data, generator: &mut Pcg64) -> Self;

    /// A random element of `data`, times a power of two.
    fn random_scaled(data: Data, power: i32, generator: &mut Pcg64) -> Self {
        let element = Self::random(data, generator);
        match power {
            0 => element,
            power => Self::nearest(element.to_f64() * 2f64.powi(power)),
        }
    }
}

/// [`Number`] for a float, given the type and the value of its poison's bits.
macro_rules! float {
    ($float:ident, $bits:ty, $poison:literal) => {
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

            fn from_bits(bits: u64) -> $float {
                $float::from_bits(bits as $bits)
            }

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn nearest(value: f64) -> $float {
                value as $float
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

            fn random(data: Data, generator: &mut Pcg64) -> $float {
                match data {
                    Data::Uniform => 2.0 * generator.random::<$float>() - 1.0,
                    Data::Positive => generator.random(),
                    Data::Normal | Data::Graded | Data::Wide => {
                        generator.sample::<f64, _>(StandardNormal) as $float
                    }
                    // They have at most 24 bits, which f32 holds.
                    integers => integers.integer(generator) as $float,
                }
            }
        }
    };
}

float!(f32, u32, 0x7fc5_a5a5);
float!(f64, u64, 0x7ffc_a5a5_a5a5_a5a5);

/// [`Number`] for elements of 8 and 16 bits, given their bits, those of their poison, the smallest
/// and the largest, their precision and [`Number::LARGEST_POWER`].
macro_rules! half {
    (
        $half:ident as $bits:ident,
        $poison:literal, $smallest:expr, $largest:literal, $precision:literal, $power:literal
    ) => {
        impl Number for $half {
            const POISON: $half = $half::from_bits($poison);
            const ARITHMETIC: Arithmetic = Arithmetic::Float {
                unit_roundoff: 1.0 / (1u64 << $precision) as f64,
                smallest: $smallest,
                largest: $largest,
                exact_integers: (1u64 << $precision) as f64,
            };
            const SUMS: Arithmetic = f32::ARITHMETIC;
            const LARGEST_POWER: i32 = $power;

            fn bits(self) -> u64 {
                self.to_bits().into()
            }

            fn from_bits(bits: u64) -> $half {
                $half::from_bits(bits as $bits)
            }

            fn to_f64(self) -> f64 {
                self.to_f32().into()
            }

            fn nearest(value: f64) -> $half {
                $half::from_f64(value)
            }

            fn random(data: Data, generator: &mut Pcg64) -> $half {
                $half::from_f32(f32::random(data, generator))
            }
        }
    };
}

half!(
    Bf16 as u16,
    0x7fa5,
    Bf16::from_bits(1).to_f64_const(),
    3.389_531_389_251_535_5e38,
    8,
    40
);
half!(
    F16 as u16,
    0x7da5,
    F16::from_bits(1).to_f64_const(),
    65_504.0,
    11,
    2
);
// It has two NaNs, and conversions give the positive one. Numbers beyond the largest become that.
half!(E4m3 as u8, 0xff, 1.0 / 512.0, 448.0, 4, 2);

/// [`Number`] for an integer, given its bits and its poison.
macro_rules! integer {
    ($integer:ident, $bits:literal, $poison:literal) => {
        impl Number for $integer {
            const POISON: $integer = $poison;
            const ARITHMETIC: Arithmetic = Arithmetic::WrappingInteger { bits: $bits };
            const LARGEST_POWER: i32 = 0;

            fn bits(self) -> u64 {
                self.cast_unsigned().into()
            }

            fn from_bits(bits: u64) -> $integer {
                bits as $integer
            }

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn nearest(value: f64) -> $integer {
                value as $integer
            }

            fn from_scalar(value: f64) -> Option<$integer> {
                let scalar = value as $integer;
                (f64::from(scalar) == value).then_some(scalar)
            }

            #[inline(always)]
            fn times_plus(self, factor: $integer, addend: $integer) -> $integer {
                self.wrapping_mul(factor).wrapping_add(addend)
            }

            #[inline(always)]
            fn plus(self, addend: $integer) -> $integer {
                self.wrapping_add(addend)
            }

            #[inline(always)]
            fn minus(self, subtrahend: $integer) -> $integer {
                self.wrapping_sub(subtrahend)
            }

            fn random(data: Data, generator: &mut Pcg64) -> $integer {
                match data {
                    Data::Positive => generator.random_range(0..=$integer::MAX),
                    Data::Uniform | Data::Normal | Data::Graded | Data::Wide => generator.random(),
                    integers => Self::nearest(integers.integer(generator).into()),
                }
            }
        }
    };
}

integer!(i32, 32, 0x5a5a_5a5b);
integer!(i8, 8, 0x5a);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poison_is_a_nan_that_no_arithmetic_produces_and_bits_come_back() {
        fn check<T: Number>(produced: [T; 2]) {
            assert!(T::POISON.to_f64().is_nan());
            for nan in produced {
                assert_ne!(nan.bits(), T::POISON.bits());
            }
            assert_eq!(T::from_bits(T::POISON.bits()).bits(), T::POISON.bits());
        }
        check([f64::NAN, f64::INFINITY - f64::INFINITY]);
        check([f32::NAN, f32::INFINITY - f32::INFINITY]);
        check([Bf16::nearest(f64::NAN); 2]);
        check([F16::nearest(f64::NAN); 2]);
        check([E4m3::nearest(f64::NAN); 2]);
        assert_eq!(i32::from_bits((-7i32).bits()), -7);
    }

    /// As `cvt.rn.satfinite.e4m3x2.f32` rounds: to nearest, of two the even one, and to the largest
    /// beyond it.
    #[test]
    fn numbers_of_8_bits_are_rounded_as_the_hardware_does() {
        let of_code = |code: u8| {
            let (exponent, fraction) = (i32::from(code >> 3), f64::from(code & 7) / 8.0);
            match exponent {
                0 => fraction * 2f64.powi(-6),
                _ => (1.0 + fraction) * 2f64.powi(exponent - 7),
            }
        };
        for code in 0..0x7e {
            let (number, next) = (of_code(code), of_code(code + 1));
            let even = if code % 2 == 0 { code } else { code + 1 };
            let middle = 0.5 * (number + next);
            for (value, expected) in [
                (number, code),
                (middle * (1.0 - f64::EPSILON), code),
                (middle, even),
                (middle * (1.0 + f64::EPSILON), code + 1),
            ] {
                assert_eq!(E4m3::nearest(value).to_bits(), expected, "{value}");
                assert_eq!(E4m3::nearest(-value).to_bits(), expected | 0x80, "{value}");
            }
            assert_eq!(E4m3::from_bits(code).to_f64(), number);
        }
        for large in [448.0, 464.0, 1e9, f64::INFINITY] {
            assert_eq!(E4m3::nearest(large).to_f64(), 448.0);
        }
    }

    #[test]
    fn only_integers_become_integers() {
        assert_eq!((-7.0f32).to_integer(), Some(-7));
        assert_eq!((-2f64.powi(53)).to_integer(), Some(-(1 << 53)));
        assert_eq!(i32::MIN.to_integer(), Some(i32::MIN.into()));
        for other in [0.5, f64::NAN, f64::INFINITY, f64::MAX, 2f64.powi(63)] {
            assert_eq!(other.to_integer(), None);
            assert_eq!((other as f32).to_integer(), None);
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
