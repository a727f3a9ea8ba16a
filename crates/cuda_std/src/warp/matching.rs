//! Which lanes of a warp have the same value.

use crate::by_architecture::gpu_or_simulated;
#[cfg(not(cuda_device))]
use crate::simulator::{CallSite, WarpOperation, warp_exchange};

/// The lanes of `mask` that have the same `value` as this one, bit i for lane i. Floats are
/// compared by their bits.
///
/// # Safety
///
/// The calling lane is in `mask`, and every lane of `mask` reaches this call.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn warp_match_any<T: WarpMatchValue>(mask: u32, value: T) -> u32 {
    // SAFETY: the caller vouches for the lanes.
    let lanes = unsafe { value.matching(mask, false) };
    #[cfg(cuda_device)]
    // SAFETY: the assembly does nothing.
    unsafe {
        crate::device::stand_together!();
    }
    lanes
}

/// `Some(mask)` if `value` is the same in all lanes of `mask`. Floats are compared by their bits.
///
/// # Safety
///
/// The calling lane is in `mask`, and every lane of `mask` reaches this call.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn warp_match_all<T: WarpMatchValue>(mask: u32, value: T) -> Option<u32> {
    // SAFETY: the caller vouches for the lanes.
    let lanes = unsafe { value.matching(mask, true) };
    #[cfg(cuda_device)]
    // SAFETY: the assembly does nothing.
    unsafe {
        crate::device::stand_together!();
    }
    (lanes != 0).then_some(lanes)
}

/// A value that lanes can compare: an integer or float of 32 or 64 bits.
pub trait WarpMatchValue: Copy + crate::sealed::Sealed {
    /// The lanes of `mask` that have this value; if `all` of them must have it, 0 if one has not.
    ///
    /// # Safety
    ///
    /// That of [`warp_match_any`].
    #[doc(hidden)]
    #[cfg_attr(not(cuda_device), track_caller)]
    unsafe fn matching(self, mask: u32, all: bool) -> u32;
}

/// Implements the trait for integers of one width, on the device by an instruction and in the
/// simulator word by word.
macro_rules! of_bits {
    ($bits:ty, $any:ident, $all:ident, |$value:ident| [$($word:expr),*]) => {
        impl WarpMatchValue for $bits {
            #[inline(always)]
            unsafe fn matching(self, mask: u32, all: bool) -> u32 {
                let $value = self;
                gpu_or_simulated!(
                    // SAFETY: the caller vouches for the lanes.
                    unsafe {
                        match all {
                            true => crate::device::$all(mask, $value),
                            false => crate::device::$any(mask, $value),
                        }
                    },
                    exchange(all, mask, &[$($word),*])
                )
            }
        }
    };
}
of_bits!(
    u32,
    __nvvm_warp_match_any_b32,
    __nvvm_warp_match_all_b32,
    |value| [value]
);
of_bits!(
    u64,
    __nvvm_warp_match_any_b64,
    __nvvm_warp_match_all_b64,
    |value| [value as u32, (value >> 32) as u32]
);

/// The lanes in which all words match.
#[cfg(not(cuda_device))]
#[track_caller]
fn exchange(all: bool, mask: u32, words: &[u32]) -> u32 {
    let (function, operation) = match all {
        true => ("warp_match_all", WarpOperation::MatchAll),
        false => ("warp_match_any", WarpOperation::MatchAny),
    };
    let site = CallSite::here(function);
    let lanes = words
        .iter()
        .map(|&word| warp_exchange(site, operation, mask, word));
    lanes.fold(mask, |lanes, more| lanes & more)
}

macro_rules! by_bits {
    ($($ty:ty = $to_bits:expr;)*) => {
        $(
            impl WarpMatchValue for $ty {
                #[inline(always)]
                unsafe fn matching(self, mask: u32, all: bool) -> u32 {
                    // SAFETY: the caller vouches for the lanes.
                    unsafe { $to_bits(self).matching(mask, all) }
                }
            }
        )*
    };
}
by_bits! {
    i32 = i32::cast_unsigned;
    f32 = f32::to_bits;
    i64 = i64::cast_unsigned;
    f64 = f64::to_bits;
}
