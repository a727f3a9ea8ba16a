//! One value of the values of all lanes.

use super::{WarpReductionOp, WarpShuffleValue, warp_shuffle_idx, warp_shuffle_xor};
use crate::intrinsics::{dadd_rn, fadd_rn};

/// The values of all lanes of `mask`, combined; every lane gets the result, with the same bits.
///
/// Of integers this is one instruction from `compute_80` on, PTX's `redux.sync`. Compiled for an
/// older architecture, it is a shuffle for each lane of the mask. Of floats it is five shuffles for
/// a whole warp, which adds lanes 16 apart first, then 8, 4, 2 and 1, and a shuffle for each lane of
/// any other mask, in the order of the lanes. The simulator adds in the same order.
///
/// # Panics
///
/// If `op` is bitwise and `T` a float.
///
/// # Safety
///
/// The calling lane is in `mask`, and every lane of `mask` reaches this call, with the same `op`.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn warp_reduce<T: WarpReduceValue>(mask: u32, value: T, op: WarpReductionOp) -> T {
    // SAFETY: the caller vouches for the lanes.
    unsafe { value.reduce(mask, op) }
}

#[cfg(not(cuda_device))]
#[track_caller]
unsafe fn reduce(mask: u32, word: u32, op: WarpReductionOp, is_signed: bool) -> u32 {
    let site = crate::simulator::CallSite::here("warp_reduce");
    let operation = crate::simulator::WarpOperation::Reduce(op, is_signed);
    crate::simulator::warp_exchange(site, operation, mask, word)
}

#[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
#[inline(always)]
unsafe fn reduce(mask: u32, word: u32, op: WarpReductionOp, is_signed: bool) -> u32 {
    use crate::device::*;
    // SAFETY: the caller vouches for the lanes.
    unsafe {
        match op {
            WarpReductionOp::Add => __nvvm_warp_reduce_add(mask, word),
            WarpReductionOp::Min if is_signed => __nvvm_warp_reduce_min_i32(mask, word),
            WarpReductionOp::Min => __nvvm_warp_reduce_min_u32(mask, word),
            WarpReductionOp::Max if is_signed => __nvvm_warp_reduce_max_i32(mask, word),
            WarpReductionOp::Max => __nvvm_warp_reduce_max_u32(mask, word),
            WarpReductionOp::And => __nvvm_warp_reduce_and(mask, word),
            WarpReductionOp::Or => __nvvm_warp_reduce_or(mask, word),
            WarpReductionOp::Xor => __nvvm_warp_reduce_xor(mask, word),
        }
    }
}

#[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
#[inline(always)]
unsafe fn reduce(mask: u32, word: u32, op: WarpReductionOp, is_signed: bool) -> u32 {
    /// Any lane of the warp can be read.
    const WHOLE_WARP: u32 = 31;
    // SAFETY: the caller vouches for the lanes; only those of the mask are read.
    unsafe {
        let first = mask.trailing_zeros();
        let mut result = crate::device::__nvvm_warp_shfl_idx_i32(mask, word, first, WHOLE_WARP);
        let mut remaining = mask & mask.wrapping_sub(1);
        while remaining != 0 {
            let lane = remaining.trailing_zeros();
            let other = crate::device::__nvvm_warp_shfl_idx_i32(mask, word, lane, WHOLE_WARP);
            result = op.combine(is_signed, result, other);
            remaining &= remaining - 1;
        }
        result
    }
}

/// A value that lanes can combine: `u32`, `i32`, `f32` or `f64`.
pub trait WarpReduceValue: WarpShuffleValue {
    /// Combines two values.
    #[doc(hidden)]
    fn combine(self, other: Self, op: WarpReductionOp) -> Self;

    /// Combines those of all lanes of `mask`.
    ///
    /// # Safety
    ///
    /// As for [`warp_reduce`].
    #[doc(hidden)]
    unsafe fn reduce(self, mask: u32, op: WarpReductionOp) -> Self;
}

macro_rules! integers {
    ($($ty:ty: $is_signed:literal;)*) => {
        $(
            impl WarpReduceValue for $ty {
                #[inline(always)]
                fn combine(self, other: Self, op: WarpReductionOp) -> Self {
                    op.combine($is_signed, self as u32, other as u32) as $ty
                }

                #[inline(always)]
                #[cfg_attr(not(cuda_device), track_caller)]
                unsafe fn reduce(self, mask: u32, op: WarpReductionOp) -> Self {
                    // SAFETY: the caller vouches for the lanes.
                    let result = unsafe { reduce(mask, self as u32, op, $is_signed) };
                    #[cfg(cuda_device)]
                    // SAFETY: it does nothing.
                    unsafe {
                        crate::device::stand_together!();
                    }
                    result as $ty
                }
            }
        )*
    };
}

integers! {
    u32: false;
    i32: true;
}

/// `$add` is never fused with the multiplication that a value comes from: two lanes would round
/// differently.
macro_rules! floats {
    ($($ty:ty: $add:ident;)*) => {
        $(
            impl WarpReduceValue for $ty {
                #[inline(always)]
                #[cfg_attr(not(cuda_device), track_caller)]
                fn combine(self, other: Self, op: WarpReductionOp) -> Self {
                    match op {
                        WarpReductionOp::Add => $add(self, other),
                        WarpReductionOp::Min => self.min(other),
                        WarpReductionOp::Max => self.max(other),
                        _ => panic!("floats have no bitwise reduction"),
                    }
                }

                #[inline(always)]
                #[cfg_attr(not(cuda_device), track_caller)]
                unsafe fn reduce(self, mask: u32, op: WarpReductionOp) -> Self {
                    // SAFETY: the caller vouches for the lanes; only those of the mask are read.
                    unsafe {
                        if mask == u32::MAX {
                            let mut result = self;
                            for distance in [16, 8, 4, 2, 1] {
                                let (other, _) = warp_shuffle_xor(mask, result, distance, 32);
                                result = result.combine(other, op);
                            }
                            return result;
                        }
                        let (mut result, _) =
                            warp_shuffle_idx(mask, self, mask.trailing_zeros(), 32);
                        let mut remaining = mask & mask.wrapping_sub(1);
                        while remaining != 0 {
                            let lane = remaining.trailing_zeros();
                            let (other, _) = warp_shuffle_idx(mask, self, lane, 32);
                            result = result.combine(other, op);
                            remaining &= remaining - 1;
                        }
                        result
                    }
                }
            }
        )*
    };
}

floats! {
    f32: fadd_rn;
    f64: dadd_rn;
}
