//! Elements of 16 bits, which tensor cores multiply at full speed, with sums in f32.

use cuda_std::mma;
use cuda_std::wgmma::{self, Descriptor, Major};

use crate::element::{Element, Word};

/// A type of 16 bits. Kernels see only its bits.
pub trait Half: Copy {
    /// Two numbers, each rounded to nearest; `low` in the lower half.
    fn pair(low: f32, high: f32) -> u32;

    /// The number with these bits.
    fn value(bits: u16) -> f32;

    /// `A * B + C` by a warp, 16 x 16 by 16 x 8.
    ///
    /// # Safety
    ///
    /// As [`mma::m16n8k16_bf16`].
    unsafe fn multiply_8(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
}

/// Elements that Hopper's tensor cores multiply, in tiles of these layouts, 32 bytes deep.
pub trait Wgmma<A: Major, B: Major>: Copy {
    /// The type of sums.
    type Sum: Word;
    /// Elements of 128 bytes: the depth of a tile.
    const BK: usize;

    /// `sums = A * B`, or `sums += A * B` if it `adds`, for 64 rows of A and 64 columns of B.
    ///
    /// # Safety
    ///
    /// As [`wgmma::m64n64k16_bf16`].
    unsafe fn multiply_64(
        sums: &mut [Self::Sum; 32],
        a: Descriptor<A>,
        b: Descriptor<B>,
        adds: bool,
    );

    /// The same for 128 columns.
    ///
    /// # Safety
    ///
    /// As [`wgmma::m64n128k16_bf16`].
    unsafe fn multiply_128(
        sums: &mut [Self::Sum; 64],
        a: Descriptor<A>,
        b: Descriptor<B>,
        adds: bool,
    );

    /// The same for 256 columns.
    ///
    /// # Safety
    ///
    /// As [`wgmma::m64n256k16_bf16`].
    unsafe fn multiply_256(
        sums: &mut [Self::Sum; 128],
        a: Descriptor<A>,
        b: Descriptor<B>,
        adds: bool,
    );
}

/// A thread's accumulators for 64 rows of C, two for each four columns.
pub trait Sums {
    /// The type of one.
    type Sum: Word;

    /// Uninitialised sums, for a first product that does not add.
    fn unset() -> Self;

    /// Starts `self = A * B`, or `self += A * B` if `adds`, 32 bytes deep.
    ///
    /// # Safety
    ///
    /// As [`wgmma::m64n256k16_bf16`].
    unsafe fn multiply<T: Wgmma<A, B, Sum = Self::Sum>, A: Major, B: Major>(
        &mut self,
        a: Descriptor<A>,
        b: Descriptor<B>,
        adds: bool,
    );

    /// Waits until all groups of products except the newest `GROUPS` have been added.
    ///
    /// # Safety
    ///
    /// As [`wgmma::wait_128`].
    unsafe fn wait<const GROUPS: u32>(&mut self);
}

macro_rules! sums {
    ($($count:literal of $sum:ident, $unset:ident, $multiply:ident, $wait:ident;)*) => {
        $(
            impl Sums for [$sum; $count] {
                type Sum = $sum;

                #[inline(always)]
                fn unset() -> Self {
                    wgmma::$unset()
                }

                #[inline(always)]
                #[cfg_attr(not(cuda_device), track_caller)]
                unsafe fn multiply<T: Wgmma<A, B, Sum = Self::Sum>, A: Major, B: Major>(
                    &mut self,
                    a: Descriptor<A>,
                    b: Descriptor<B>,
                    adds: bool,
                ) {
                    T::$multiply(self, a, b, adds);
                }

                #[inline(always)]
                #[cfg_attr(not(cuda_device), track_caller)]
                unsafe fn wait<const GROUPS: u32>(&mut self) {
                    wgmma::$wait::<GROUPS>(self);
                }
            }
        )*
    };
}

sums! {
    32 of f32, unset_32, multiply_64, wait_32;
    64 of f32, unset_64, multiply_128, wait_64;
    128 of f32, unset_128, multiply_256, wait_128;
    32 of i32, unset_32_s32, multiply_64, wait_32_s32;
    64 of i32, unset_64_s32, multiply_128, wait_64_s32;
    128 of i32, unset_128_s32, multiply_256, wait_128_s32;
}

/// `*c = finished(alpha * sum + beta * *c)`, rounded once; `beta == 0` does not read it.
///
/// # Safety
///
/// `c` is valid for reading and writing, and no other thread touches it.
#[inline(always)]
pub unsafe fn update<T: Half>(
    c: *mut u16,
    (alpha, beta): (f32, f32),
    sum: f32,
    finished: impl Fn(f32) -> f32,
) {
    let old = if beta == 0.0 { 0 } else { *c };
    let value = finished(updated::<T>(old, alpha, beta, sum));
    *c = T::pair(value, 0.0) as u16;
}

/// `alpha * sum + beta * old`, before it is rounded to the type of `old`, which is ignored if
/// `beta` is 0.
#[inline(always)]
pub fn updated<T: Half>(old: u16, alpha: f32, beta: f32, sum: f32) -> f32 {
    let product = alpha * sum;
    if beta == 0.0 {
        product
    } else {
        beta.times_plus(T::value(old), product)
    }
}

/// f32 without its lower 16 bits: the same range, 8 bits of precision.
#[derive(Clone, Copy)]
pub struct Bf16;

/// IEEE binary16: 11 bits of precision, up to 65504.
#[derive(Clone, Copy)]
pub struct F16;

macro_rules! half {
    ($($type:ident, $pair:ident, $value:ident, $multiply_8:ident, $multiply_64:ident, $multiply_128:ident, $multiply_256:ident;)*) => {
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
                unsafe fn multiply_8(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
                    mma::$multiply_8(a, b, c)
                }
            }

            impl<A: Major, B: Major> Wgmma<A, B> for $type {
                type Sum = f32;
                const BK: usize = 64;

                #[inline(always)]
                #[cfg_attr(not(cuda_device), track_caller)]
                unsafe fn multiply_64(
                    sums: &mut [f32; 32],
                    a: Descriptor<A>,
                    b: Descriptor<B>,
                    adds: bool,
                ) {
                    wgmma::$multiply_64(sums, a, b, adds)
                }

                #[inline(always)]
                #[cfg_attr(not(cuda_device), track_caller)]
                unsafe fn multiply_128(
                    sums: &mut [f32; 64],
                    a: Descriptor<A>,
                    b: Descriptor<B>,
                    adds: bool,
                ) {
                    wgmma::$multiply_128(sums, a, b, adds)
                }

                #[inline(always)]
                #[cfg_attr(not(cuda_device), track_caller)]
                unsafe fn multiply_256(
                    sums: &mut [f32; 128],
                    a: Descriptor<A>,
                    b: Descriptor<B>,
                    adds: bool,
                ) {
                    wgmma::$multiply_256(sums, a, b, adds)
                }
            }
        )*
    };
}

half! {
    Bf16, pair_of_bf16, of_bf16, m16n8k16_bf16, m64n64k16_bf16, m64n128k16_bf16, m64n256k16_bf16;
    F16, pair_of_f16, of_f16, m16n8k16_f16, m64n64k16_f16, m64n128k16_f16, m64n256k16_f16;
}
