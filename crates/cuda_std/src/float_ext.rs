//! Mathematical functions that `std` has not.

use crate::intrinsics as raw;

/// Defines [`FloatExt`] and implements it by libdevice's functions for `f32` and `f64`.
macro_rules! float_ext {
    ($($(#[$doc:meta])* fn $name:ident(self $(, $argument:ident: $ty:ty)?) -> $result:ty = $single:ident, $double:ident;)*) => {
        /// Mathematical functions of `f32` and `f64` that `std` has not, from NVIDIA's libdevice.
        ///
        /// The simulator computes them on the CPU; the last bits may differ. Those that `std` has
        /// are in [`GpuFloat`](crate::GpuFloat).
        pub trait FloatExt: Copy + crate::sealed::Sealed {
            $(
                $(#[$doc])*
                #[must_use]
                fn $name(self $(, $argument: $ty)?) -> $result;
            )*

            /// The Bessel function of the first kind of order `order`.
            #[must_use]
            fn jn(self, order: i32) -> Self;
            /// The Bessel function of the second kind of order `order`.
            #[must_use]
            fn yn(self, order: i32) -> Self;
            /// The fraction, 0 or of magnitude 0.5 to 1, and the exponent of 2 for which
            /// `self == fraction * 2^exponent`.
            #[must_use]
            fn frexp(self) -> (Self, i32);
            /// Sine and cosine of `self * pi`.
            #[must_use]
            fn sincospi(self) -> (Self, Self);
            /// `self` brought into the range 0 to 1; 0 for NaN.
            #[must_use]
            fn saturate(self) -> Self;
        }

        float_ext!(@implement f32, jnf, ynf, frexpf, sincospif, $($name($($argument: $ty)?) -> $result = $single;)*);
        float_ext!(@implement f64, jn, yn, frexp, sincospi, $($name($($argument: $ty)?) -> $result = $double;)*);
    };
    (
        @implement $float:ident, $jn:ident, $yn:ident, $frexp:ident, $sincospi:ident,
        $($name:ident($($argument:ident: $ty:ty)?) -> $result:ty = $raw:ident;)*
    ) => {
        impl FloatExt for $float {
            $(
                #[inline(always)]
                fn $name(self $(, $argument: $ty)?) -> $result {
                    raw::$raw(self $(, $argument)?)
                }
            )*

            #[inline(always)]
            fn jn(self, order: i32) -> Self {
                raw::$jn(order, self)
            }

            #[inline(always)]
            fn yn(self, order: i32) -> Self {
                raw::$yn(order, self)
            }

            #[inline(always)]
            fn frexp(self) -> (Self, i32) {
                let mut exponent = 0;
                // SAFETY: the pointer is to the variable.
                let fraction = unsafe { raw::$frexp(self, &raw mut exponent) };
                (fraction, exponent)
            }

            #[inline(always)]
            fn sincospi(self) -> (Self, Self) {
                let (mut sine, mut cosine) = (0.0, 0.0);
                // SAFETY: the pointers are to the variables.
                unsafe { raw::$sincospi(self, &raw mut sine, &raw mut cosine) };
                (sine, cosine)
            }

            #[inline(always)]
            fn saturate(self) -> Self {
                // A comparison with NaN is false.
                match self > 0.0 {
                    true if self < 1.0 => self,
                    true => 1.0,
                    false => 0.0,
                }
            }
        }
    };
}

float_ext! {
    /// The cosine of `self * pi`.
    fn cospi(self) -> Self = cospif, cospi;
    /// The sine of `self * pi`.
    fn sinpi(self) -> Self = sinpif, sinpi;
    /// The error function.
    fn error_function(self) -> Self = erff, erf;
    /// 1 minus the error function.
    fn complementary_error_function(self) -> Self = erfcf, erfc;
    /// The number whose complementary error function is `self`, from 0 to 2.
    fn inv_complementary_error_function(self) -> Self = erfcinvf, erfcinv;
    /// The complementary error function times e to the power of `self` squared.
    fn scaled_complementary_error_function(self) -> Self = erfcxf, erfcx;
    /// The exponent of `self` to base 2.
    fn unbiased_exp(self) -> i32 = ilogbf, ilogb;
    /// The Bessel function of the first kind of order 0.
    fn j0(self) -> Self = j0f, j0;
    /// The Bessel function of the first kind of order 1.
    fn j1(self) -> Self = j1f, j1;
    /// The Bessel function of the second kind of order 0.
    fn y0(self) -> Self = y0f, y0;
    /// The Bessel function of the second kind of order 1.
    fn y1(self) -> Self = y1f, y1;
    /// `self * 2^exp`.
    fn ldexp(self, exp: i32) -> Self = ldexpf, ldexp;
    /// `self * 2^exp`.
    fn scale_by_n(self, exp: i32) -> Self = scalbnf, scalbn;
    /// The gamma function.
    fn gamma(self) -> Self = tgammaf, tgamma;
    /// The natural logarithm of the magnitude of the gamma function.
    fn log_gamma(self) -> Self = lgammaf, lgamma;
    /// The natural logarithm of `1 + self`.
    fn log1p(self) -> Self = log1pf, log1p;
    /// The probability that a standard normal variable is at most `self`.
    fn norm_cdf(self) -> Self = normcdff, normcdf;
    /// The number that a standard normal variable is below with the probability `self`.
    fn inv_norm_cdf(self) -> Self = normcdfinvf, normcdfinv;
    /// The reciprocal of the cube root.
    fn rcbrt(self) -> Self = rcbrtf, rcbrt;
    /// The reciprocal of the square root, by the instruction `rsqrt.approx`. The relative error of
    /// an `f32` is at most 2^-22.9, and that of an `f64` about 1 unit in the last place. The
    /// simulator rounds an `f32` correctly, and divides 1 by the square root of an `f64`.
    fn rsqrt(self) -> Self = rsqrtf, rsqrt;
}
