//! Mathematical functions of `f32` and `f64`, which `std` has and `core` lacks.
//!
//! On a GPU the simple functions are instructions and the others come from NVIDIA's libdevice,
//! whose results may differ from a CPU's in the last bits (its error bounds are listed in the
//! CUDA C++ programming guide, "Mathematical Functions"). In the simulator they are `std`'s.

/// Defines [`GpuFloat`] and implements it, each function by an extern function of the device and
/// a method of `std`.
macro_rules! gpu_float {
    (
        $(
            $(#[$doc:meta])*
            fn $name:ident(self $(, $argument:ident: $kind:ident)*) -> Self = $single:ident, $double:ident;
        )*
    ) => {
        /// Mathematical functions for floating-point numbers in kernels, under the names that
        /// `std` uses.
        ///
        /// On a CPU the inherent methods of `f32` and `f64` take precedence and mean the same. In
        /// code without generics rustc then reports the import of this trait as unused;
        /// `#[cfg_attr(not(cuda_device), allow(unused_imports))]` silences that.
        pub trait GpuFloat: Copy + crate::sealed::Sealed {
            $(
                $(#[$doc])*
                #[must_use]
                fn $name(self $(, $argument: gpu_float!(@type $kind))*) -> Self;
            )*

            /// The fractional part: `self - self.trunc()`.
            #[must_use]
            fn fract(self) -> Self;
            /// 1 or -1, with the sign of `self`; NaN for NaN.
            #[must_use]
            fn signum(self) -> Self;
            /// The logarithm to base `base`.
            #[must_use]
            fn log(self, base: Self) -> Self;
            /// The whole number `n` for which `self == n * divisor + self.rem_euclid(divisor)`.
            #[must_use]
            fn div_euclid(self, divisor: Self) -> Self;
            /// The least non-negative remainder of `self / divisor`.
            #[must_use]
            fn rem_euclid(self, divisor: Self) -> Self;
            /// Sine and cosine, of an angle in radians.
            #[must_use]
            fn sin_cos(self) -> (Self, Self);
        }

        gpu_float!(@implement f32, $($name($($argument: $kind),*) = $single;)*);
        gpu_float!(@implement f64, $($name($($argument: $kind),*) = $double;)*);
    };
    (@type float) => { Self };
    (@type int) => { i32 };
    (@type $float:ident float) => { $float };
    (@type $float:ident int) => { i32 };
    (@implement $float:ident, $($name:ident($($argument:ident: $kind:ident),*) = $intrinsic:ident;)*) => {
        impl GpuFloat for $float {
            $(
                #[inline(always)]
                fn $name(self $(, $argument: gpu_float!(@type $kind))*) -> Self {
                    #[cfg(cuda_device)]
                    {
                        unsafe extern "C" {
                            safe fn $intrinsic(
                                x: $float $(, $argument: gpu_float!(@type $float $kind))*
                            ) -> $float;
                        }
                        $intrinsic(self $(, $argument)*)
                    }
                    #[cfg(not(cuda_device))]
                    {
                        <$float>::$name(self $(, $argument)*)
                    }
                }
            )*

            #[inline(always)]
            fn fract(self) -> Self {
                self - GpuFloat::trunc(self)
            }

            #[inline(always)]
            fn signum(self) -> Self {
                if self.is_nan() { self } else { GpuFloat::copysign(1.0, self) }
            }

            #[inline(always)]
            fn log(self, base: Self) -> Self {
                GpuFloat::ln(self) / GpuFloat::ln(base)
            }

            #[inline(always)]
            fn div_euclid(self, divisor: Self) -> Self {
                let quotient = GpuFloat::trunc(self / divisor);
                if self % divisor >= 0.0 {
                    quotient
                } else if divisor > 0.0 {
                    quotient - 1.0
                } else {
                    quotient + 1.0
                }
            }

            #[inline(always)]
            fn rem_euclid(self, divisor: Self) -> Self {
                let remainder = self % divisor;
                if remainder < 0.0 { remainder + GpuFloat::abs(divisor) } else { remainder }
            }

            #[inline(always)]
            fn sin_cos(self) -> (Self, Self) {
                (GpuFloat::sin(self), GpuFloat::cos(self))
            }
        }
    };
}

gpu_float! {
    /// The square root, correctly rounded; NaN for a negative number.
    fn sqrt(self) -> Self = __nvvm_sqrt_f32, __nvvm_sqrt_f64;
    /// The magnitude.
    fn abs(self) -> Self = __nvvm_fabs_f32, __nvvm_fabs_f64;
    /// `self * factor + term`, rounded once.
    fn mul_add(self, factor: float, term: float) -> Self = __nvvm_fma_f32, __nvvm_fma_f64;
    /// The magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: float) -> Self = __nvvm_copysign_f32, __nvvm_copysign_f64;
    /// The lesser of the two; the other one if one is NaN.
    fn min(self, other: float) -> Self = __nvvm_fmin_f32, __nvvm_fmin_f64;
    /// The greater of the two; the other one if one is NaN.
    fn max(self, other: float) -> Self = __nvvm_fmax_f32, __nvvm_fmax_f64;
    /// Rounds down to a whole number.
    fn floor(self) -> Self = __nvvm_floor_f32, __nvvm_floor_f64;
    /// Rounds up to a whole number.
    fn ceil(self) -> Self = __nvvm_ceil_f32, __nvvm_ceil_f64;
    /// Rounds toward zero to a whole number.
    fn trunc(self) -> Self = __nvvm_trunc_f32, __nvvm_trunc_f64;
    /// Rounds to the nearest whole number, halves away from zero.
    fn round(self) -> Self = __nv_roundf, __nv_round;
    /// Rounds to the nearest whole number, halves to the even one.
    fn round_ties_even(self) -> Self = __nvvm_rint_f32, __nvvm_rint_f64;
    /// `self` to an integer power.
    fn powi(self, power: int) -> Self = __nv_powif, __nv_powi;
    /// `self` to any power.
    fn powf(self, power: float) -> Self = __nv_powf, __nv_pow;
    /// e to the power `self`.
    fn exp(self) -> Self = __nv_expf, __nv_exp;
    /// 2 to the power `self`.
    fn exp2(self) -> Self = __nv_exp2f, __nv_exp2;
    /// e to the power `self`, minus 1, precise near 0.
    fn exp_m1(self) -> Self = __nv_expm1f, __nv_expm1;
    /// The natural logarithm.
    fn ln(self) -> Self = __nv_logf, __nv_log;
    /// The natural logarithm of `1 + self`, precise near 0.
    fn ln_1p(self) -> Self = __nv_log1pf, __nv_log1p;
    /// The logarithm to base 2.
    fn log2(self) -> Self = __nv_log2f, __nv_log2;
    /// The logarithm to base 10.
    fn log10(self) -> Self = __nv_log10f, __nv_log10;
    /// The cube root.
    fn cbrt(self) -> Self = __nv_cbrtf, __nv_cbrt;
    /// The length of the vector `(self, other)`.
    fn hypot(self, other: float) -> Self = __nv_hypotf, __nv_hypot;
    /// The sine, of an angle in radians.
    fn sin(self) -> Self = __nv_sinf, __nv_sin;
    /// The cosine, of an angle in radians.
    fn cos(self) -> Self = __nv_cosf, __nv_cos;
    /// The tangent, of an angle in radians.
    fn tan(self) -> Self = __nv_tanf, __nv_tan;
    /// The angle in radians whose sine is `self`.
    fn asin(self) -> Self = __nv_asinf, __nv_asin;
    /// The angle in radians whose cosine is `self`.
    fn acos(self) -> Self = __nv_acosf, __nv_acos;
    /// The angle in radians whose tangent is `self`.
    fn atan(self) -> Self = __nv_atanf, __nv_atan;
    /// The angle in radians of the point whose y is `self` and whose x is `x`.
    fn atan2(self, x: float) -> Self = __nv_atan2f, __nv_atan2;
    /// The hyperbolic sine.
    fn sinh(self) -> Self = __nv_sinhf, __nv_sinh;
    /// The hyperbolic cosine.
    fn cosh(self) -> Self = __nv_coshf, __nv_cosh;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self = __nv_tanhf, __nv_tanh;
    /// The inverse of the hyperbolic sine.
    fn asinh(self) -> Self = __nv_asinhf, __nv_asinh;
    /// The inverse of the hyperbolic cosine.
    fn acosh(self) -> Self = __nv_acoshf, __nv_acosh;
    /// The inverse of the hyperbolic tangent.
    fn atanh(self) -> Self = __nv_atanhf, __nv_atanh;
}

#[cfg(test)]
mod tests {
    use super::GpuFloat;

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    const VALUES: [f64; 12] = [
        0.0, -0.0, 1.0, -1.0, 0.3, 2.5, -2.5, 7.75, -7.75, 1e10, INF, NAN,
    ];

    #[test]
    fn functions_made_of_others_mean_what_stds_do() {
        macro_rules! assert_same {
            ($name:ident($($argument:ident),*)) => {
                let (ours, std) = (GpuFloat::$name($($argument),*), f64::$name($($argument),*));
                // The signs of zero differ, all NaN are the same.
                let is_same = ours.is_nan() && std.is_nan() || ours.to_bits() == std.to_bits();
                assert!(is_same, "{} of {:?}: {ours}, {std}", stringify!($name), ($($argument,)*));
            };
        }
        for x in VALUES {
            assert_same!(fract(x));
            assert_same!(signum(x));
            assert_eq!(
                format!("{:?}", GpuFloat::sin_cos(x)),
                format!("{:?}", x.sin_cos())
            );
            for y in VALUES {
                assert_same!(div_euclid(x, y));
                assert_same!(rem_euclid(x, y));
            }
        }
    }
}
