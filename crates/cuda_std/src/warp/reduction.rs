//! One value of the values of all lanes.

use super::sealed::Sealed;

/// How [`warp_reduce`] combines two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpReductionOp {
    /// Their sum, modulo 2^32.
    Add,
    /// The lesser one.
    Min,
    /// The greater one.
    Max,
    /// Bitwise "and".
    And,
    /// Bitwise "or".
    Or,
    /// Bitwise "exclusive or".
    Xor,
}

impl WarpReductionOp {
    /// Combines two words, which stand for signed integers or not.
    #[cfg(not(all(cuda_device, cuda_arch_at_least = "80")))]
    #[inline(always)]
    pub(crate) fn combine(self, is_signed: bool, left: u32, right: u32) -> u32 {
        let (is_less, is_greater) = match is_signed {
            true => (
                left.cast_signed() < right.cast_signed(),
                left.cast_signed() > right.cast_signed(),
            ),
            false => (left < right, left > right),
        };
        match self {
            Self::Add => left.wrapping_add(right),
            Self::Min => {
                if is_less {
                    left
                } else {
                    right
                }
            }
            Self::Max => {
                if is_greater {
                    left
                } else {
                    right
                }
            }
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
        }
    }
}

/// The values of all lanes of `mask`, combined; every lane gets the result.
///
/// From `compute_80` on this is one instruction, PTX's `redux.sync`. Compiled for an older
/// architecture, it is a shuffle for each lane of the mask.
///
/// # Safety
///
/// The calling lane is in `mask`, and every lane of `mask` reaches this call, with the same `op`.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn warp_reduce<T: WarpReduceValue>(mask: u32, value: T, op: WarpReductionOp) -> T {
    let word = value.to_word();
    #[cfg(not(cuda_device))]
    let result = crate::simulator::warp_exchange(
        core::panic::Location::caller(),
        crate::simulator::WarpOperation::Reduce(op, T::IS_SIGNED),
        mask,
        word,
    );
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for the lanes.
    let result = unsafe {
        let result = reduce(mask, word, op, T::IS_SIGNED);
        crate::device::stand_together!();
        result
    };
    T::from_word(result)
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

/// A value that lanes can combine: `u32` or `i32`.
pub trait WarpReduceValue: Copy + Sealed {
    #[doc(hidden)]
    const IS_SIGNED: bool;
    #[doc(hidden)]
    fn to_word(self) -> u32;
    #[doc(hidden)]
    fn from_word(word: u32) -> Self;
}

impl WarpReduceValue for u32 {
    const IS_SIGNED: bool = false;

    #[inline(always)]
    fn to_word(self) -> u32 {
        self
    }

    #[inline(always)]
    fn from_word(word: u32) -> Self {
        word
    }
}

impl WarpReduceValue for i32 {
    const IS_SIGNED: bool = true;

    #[inline(always)]
    fn to_word(self) -> u32 {
        self.cast_unsigned()
    }

    #[inline(always)]
    fn from_word(word: u32) -> Self {
        word.cast_signed()
    }
}
