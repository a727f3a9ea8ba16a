//! Elements of 16 bits: what tensor cores multiply at their full speed, with sums in f32.

use cuda_std::mma;
use cuda_std::wgmma::{self, Descriptor, Major};

/// A type of 16 bits. Kernels see only its bits.
pub trait Half: Copy {
    /// Two numbers, each rounded to nearest; `low` in the lower half.
    fn pair(low: f32, high: f32) -> u32;

    /// The number that these bits stand for.
    fn value(bits: u16) -> f32;

    /// `sums = A * B`, or `sums += A * B` if it `adds`: 64 x 16 by 16 x 256.
    ///
    /// # Safety
    ///
    /// As [`wgmma::m64n256k16_bf16`].
    unsafe fn multiply<A: Major, B: Major>(
        sums: &mut [f32; 128],
        a: Descriptor<A>,
        b: Descriptor<B>,
        adds: bool,
    );
}

/// f32 without its lower 16 bits: as wide a range, 8 bits of precision.
#[derive(Clone, Copy)]
pub struct Bf16;

/// IEEE binary16: 11 bits of precision, up to 65504.
#[derive(Clone, Copy)]
pub struct F16;

macro_rules! half {
    ($($type:ident, $pair:ident, $value:ident, $multiply:ident;)*) => {
        $(
            impl Half for $type {
                #[inline(always)]
                fn pair(low: f32, high: f32) -> u32 {
                    mma::$pair(low, high)
                }

                #[inline(always)]
                fn value(bits: u16) -> f32 {
                    mma::$value(bits)
                }

                #[inline(always)]
                #[cfg_attr(not(cuda_device), track_caller)]
                unsafe fn multiply<A: Major, B: Major>(
                    sums: &mut [f32; 128],
                    a: Descriptor<A>,
                    b: Descriptor<B>,
                    adds: bool,
                ) {
                    wgmma::$multiply(sums, a, b, adds)
                }
            }
        )*
    };
}

half! {
    Bf16, pair_of_bf16, of_bf16, m64n256k16_bf16;
    F16, pair_of_f16, of_f16, m64n256k16_f16;
}
