//! Two floats of 16 bits in one register, which a GPU multiplies and adds by one instruction.

use core::ops::{Add, Mul, Neg, Sub};

use half::{bf16, f16};

/// Defines a pair: of which floats, in which fraction bits and with which bias of the exponent,
/// how two f32 are rounded to it, and the instruction, where a GPU has it.
macro_rules! pairs {
    ($(
        $(#[$doc:meta])*
        $name:ident: $element:ident, $fraction:literal, $bias:literal, $rounded:path,
        $instruction:literal, [$($has:tt)*], $why:literal;
    )*) => {
        $(
            $(#[$doc])*
            #[allow(non_camel_case_types, reason = "as the type of its elements")]
            #[derive(Clone, Copy, Debug, Default)]
            #[repr(transparent)]
            pub struct $name(u32);

            impl $name {
                /// The pair of these, `low` in the lower 16 bits and first in memory.
                #[inline(always)]
                pub const fn new(low: $element, high: $element) -> Self {
                    Self(low.to_bits() as u32 | (high.to_bits() as u32) << 16)
                }

                /// One number, twice.
                #[inline(always)]
                pub const fn splat(value: $element) -> Self {
                    Self::new(value, value)
                }

                /// The pair of the numbers nearest to these, rounded by one instruction from
                /// compute capability 8.0 on.
                #[inline(always)]
                pub fn from_f32(low: f32, high: f32) -> Self {
                    Self($rounded(low, high))
                }

                /// The pair with these bits.
                #[inline(always)]
                pub const fn from_bits(bits: u32) -> Self {
                    Self(bits)
                }

                /// The bits of both.
                #[inline(always)]
                pub const fn to_bits(self) -> u32 {
                    self.0
                }

                #[allow(missing_docs)]
                #[inline(always)]
                pub const fn low(self) -> $element {
                    $element::from_bits(self.0 as u16)
                }

                #[allow(missing_docs)]
                #[inline(always)]
                pub const fn high(self) -> $element {
                    $element::from_bits((self.0 >> 16) as u16)
                }

                /// `self * factor + summand`, each rounded once.
                #[inline(always)]
                pub fn mul_add(self, factor: Self, summand: Self) -> Self {
                    let (a, b, c) = (self, factor, summand);
                    #[cfg(all(cuda_device, $($has)*))]
                    {
                        let sum: u32;
                        // SAFETY: it touches nothing.
                        unsafe {
                            core::arch::asm!(
                                concat!($instruction, " {:e}, {:e}, {:e}, {:e};"),
                                out(reg) sum, in(reg) a.0, in(reg) b.0, in(reg) c.0,
                                options(pure, nomem, nostack, preserves_flags)
                            );
                        }
                        Self(sum)
                    }
                    #[cfg(all(cuda_device, not($($has)*)))]
                    {
                        crate::device::needs_architecture!($why, a, b);
                        c
                    }
                    #[cfg(not(cuda_device))]
                    {
                        let fused = |part: fn(Self) -> $element| {
                            let [a, b, c] = [a, b, c].map(|pair| f64::from(part(pair)));
                            $element::from_bits(nearest(fused(a, b, c), $fraction, $bias))
                        };
                        Self::new(fused(Self::low), fused(Self::high))
                    }
                }
            }

            // The instruction of a sum, a difference or a product gives the same bits, and bf16 has
            // none before compute capability 9.0.
            impl Add for $name {
                type Output = Self;

                #[inline(always)]
                fn add(self, other: Self) -> Self {
                    self.mul_add(Self::splat($element::ONE), other)
                }
            }

            impl Sub for $name {
                type Output = Self;

                #[inline(always)]
                fn sub(self, other: Self) -> Self {
                    other.mul_add(Self::splat($element::NEG_ONE), self)
                }
            }

            impl Mul for $name {
                type Output = Self;

                #[inline(always)]
                fn mul(self, other: Self) -> Self {
                    self.mul_add(other, Self::splat($element::NEG_ZERO))
                }
            }

            impl Neg for $name {
                type Output = Self;

                #[inline(always)]
                fn neg(self) -> Self {
                    Self(self.0 ^ 0x8000_8000)
                }
            }
        )*
    };
}

pairs! {
    /// Two f16, as CUDA's `__half2`.
    ///
    /// ```
    /// # use cuda_std::{f16, f16x2};
    /// let x = f16x2::from_f32(1.0, 2.0);
    /// let y = x.mul_add(x, f16x2::splat(f16::ONE));
    /// assert_eq!((y.low().to_f32(), y.high().to_f32()), (2.0, 5.0));
    /// ```
    ///
    /// Each result is the nearest number, of two that are as near the even one, and subnormal ones
    /// are kept. Which NaN comes out is not promised.
    f16x2: f16, 10, 15, crate::mma::pair_of_f16, "fma.rn.f16x2", [all()], "f16x2 needs nothing";

    /// Two bf16, as CUDA's `__nv_bfloat162`. As [`f16x2`], but arithmetic needs compute capability
    /// 8.0 or newer: compiled for an older one it ends the launch.
    bf16x2: bf16, 7, 127, crate::mma::pair_of_bf16, "fma.rn.bf16x2", [cuda_arch_at_least = "80"],
        "arithmetic of bf16x2 needs compute_80";
}

/// `a * b + c`, of which the product is exact. If the sum is not, it is the one of its two
/// neighbours whose last bit is set: so rounding it to fewer bits rounds as the exact sum would.
#[cfg(not(cuda_device))]
fn fused(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    let of_c = sum - product;
    let error = (product - (sum - of_c)) + (c - of_c);
    if !sum.is_finite() || error == 0.0 || sum.to_bits() & 1 == 1 {
        sum
    } else if (error > 0.0) == (sum > 0.0) {
        f64::from_bits(sum.to_bits() + 1)
    } else {
        f64::from_bits(sum.to_bits() - 1)
    }
}

/// The bits of the nearest float of 16 bits with `fraction` bits of fraction.
#[cfg(not(cuda_device))]
fn nearest(value: f64, fraction: i32, bias: i32) -> u16 {
    if value.is_nan() {
        return 0x7fff;
    }
    let (sign, magnitude) = ((value.to_bits() >> 48) as u16 & 0x8000, value.abs());
    // Exponents of the last place: of the smallest floats, and of this one.
    let smallest = 1 - bias - fraction;
    let last = ((magnitude.to_bits() >> 52) as i32 - 1023 - fraction).max(smallest);
    let places = (magnitude * 2_f64.powi(-last)).round_ties_even() as u64;
    // The first bit of `places`, which a subnormal number lacks, is the lowest of the exponent.
    let bits = (((last - smallest) as u64) << fraction).saturating_add(places);
    let infinity = 0x7fff >> fraction << fraction;
    sign | bits.min(infinity) as u16
}
