//! What the 32 threads of a warp can do together without shared memory.
//!
//! A warp is 32 threads of a block that are neighbours in the order x, then y, then z; a thread's
//! place in it is its lane. Every function takes a mask of the participating lanes, bit i for
//! lane i, and returns once all of them have reached it: they must reach the same call with the
//! same mask. A lane in the mask that has returned, or that the block is too small to have, is
//! missing: this is undefined on a GPU and a fault in the simulator.

use crate::by_architecture::gpu_or_simulated;
#[cfg(not(cuda_device))]
use crate::simulator::{CallSite, WarpOperation};

/// Waits until all lanes of `mask` have arrived; afterwards all of them see what each wrote
/// before.
///
/// # Safety
///
/// The calling lane is in `mask`, and every lane of `mask` reaches this call.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn sync_warp(mask: u32) {
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for the lanes.
    unsafe {
        crate::device::__nvvm_warp_sync(mask);
    }
    #[cfg(not(cuda_device))]
    crate::simulator::warp_exchange(CallSite::here("sync_warp"), WarpOperation::Sync, mask, 0);
}

/// This thread's lane in its warp, 0 to 31.
#[inline(always)]
pub fn lane_id() -> u32 {
    gpu_or_simulated!(crate::device::__nvvm_lane_id(), crate::simulator::lane())
}

/// A mask of lanes that execute this call together at this moment, including the calling lane.
/// Nothing more is guaranteed.
///
/// The simulator runs one thread at a time, so there the mask is the calling lane alone: a result
/// that a GPU may give too.
#[inline(always)]
pub fn activemask() -> u32 {
    gpu_or_simulated!(
        crate::device::__nvvm_active_mask(),
        1 << crate::simulator::lane()
    )
}

/// Defines a vote: a function of every lane's predicate.
macro_rules! votes {
    ($($(#[$doc:meta])* $name:ident -> $result:ty = $intrinsic:ident, $operation:ident, |$value:ident| $convert:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// The calling lane is in `mask`, and every lane of `mask` reaches this call.
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub unsafe fn $name(mask: u32, predicate: bool) -> $result {
                #[cfg(cuda_device)]
                // SAFETY: the caller vouches for the lanes.
                let $value = unsafe { crate::device::$intrinsic(mask, u32::from(predicate)) };
                #[cfg(not(cuda_device))]
                let $value = crate::simulator::warp_exchange(
                    CallSite::here(stringify!($name)),
                    WarpOperation::$operation,
                    mask,
                    u32::from(predicate),
                );
                $convert
            }
        )*
    };
}

votes! {
    /// Whether `predicate` is true in all lanes of `mask`.
    warp_vote_all -> bool = __nvvm_warp_vote_all, VoteAll, |value| value != 0;
    /// Whether `predicate` is true in any lane of `mask`.
    warp_vote_any -> bool = __nvvm_warp_vote_any, VoteAny, |value| value != 0;
    /// The lanes of `mask` in which `predicate` is true, bit i for lane i.
    warp_vote_ballot -> u32 = __nvvm_warp_ballot, Ballot, |value| value;
}

/// Defines a shuffle: each lane passes a value and gets another lane's.
macro_rules! shuffles {
    ($($(#[$doc:meta])* $name:ident($argument:ident) = $intrinsic:ident, $kind:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// The warp is split into segments of `width` lanes, a power of two up to 32, and a
            /// lane reads from its own segment. The `bool` says whether the requested lane can be
            /// read; if not, the value is the lane's own.
            ///
            /// # Panics
            ///
            /// If `width` is not a power of two, or above 32.
            ///
            /// # Safety
            ///
            /// The calling lane and the requested lane are in `mask`, and every lane of `mask`
            /// reaches this call.
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub unsafe fn $name<T: WarpShuffleValue>(
                mask: u32,
                value: T,
                $argument: u32,
                width: u32,
            ) -> (T, bool) {
                #[cfg(cuda_device)]
                // SAFETY: the caller vouches for the lanes.
                unsafe {
                    let result = shuffle_by(
                        Shuffle::$kind,
                        value,
                        $argument,
                        width,
                        #[inline(always)]
                        |word, segments| crate::device::$intrinsic(mask, word, $argument, segments),
                    );
                    // It is here so that rustc's jump threading sees it: that pass does not look
                    // into called functions.
                    crate::device::stand_together!();
                    result
                }
                #[cfg(not(cuda_device))]
                {
                    let site = CallSite::here(stringify!($name));
                    shuffle_by(Shuffle::$kind, value, $argument, width, |word, segments| {
                        crate::simulator::warp_exchange(
                            site,
                            WarpOperation::Shuffle(Shuffle::$kind, $argument, segments),
                            mask,
                            word,
                        )
                    })
                }
            }
        )*
    };
}

shuffles! {
    /// Gets the value of the lane that is `delta` (up to 31) below.
    warp_shuffle_up(delta) = __nvvm_warp_shfl_up_i32, Up;
    /// Gets the value of the lane that is `delta` (up to 31) above.
    warp_shuffle_down(delta) = __nvvm_warp_shfl_down_i32, Down;
    /// Gets the value of lane `lane` of the segment, modulo `width`.
    warp_shuffle_idx(lane) = __nvvm_warp_shfl_idx_i32, Idx;
    /// Gets the value of the lane whose number differs from this one's in the bits of `lane_mask`
    /// (up to 31). It may be in a lower segment.
    warp_shuffle_xor(lane_mask) = __nvvm_warp_shfl_bfly_i32, Xor;
}

/// Sends `value` through `exchange`, which shuffles a word in segments of the warp, and says
/// whether the requested lane could be read.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
fn shuffle_by<T: WarpShuffleValue>(
    kind: Shuffle,
    value: T,
    argument: u32,
    width: u32,
    exchange: impl Fn(u32, u32) -> u32,
) -> (T, bool) {
    if !matches!(width, 1 | 2 | 4 | 8 | 16 | 32) {
        wrong_width();
    }
    let segments = kind.segments(width);
    let other = value.exchange(
        #[inline(always)]
        |word| exchange(word, segments),
    );
    (other, kind.source(lane_id(), argument, segments).is_some())
}

#[cold]
#[cfg_attr(not(cuda_device), track_caller)]
fn wrong_width() -> ! {
    panic!("a shuffle's width must be a power of two up to 32")
}

/// A value that lanes can shuffle: an integer of 8 to 128 bits or a float; see `values.rs`.
pub trait WarpShuffleValue: Copy + crate::sealed::Sealed {
    /// Sends each 32-bit word of the value through `shuffle`.
    #[doc(hidden)]
    fn exchange(self, shuffle: impl Fn(u32) -> u32) -> Self;
}

mod matching;
mod operation;
mod reduction;
mod values;

pub use matching::{WarpMatchValue, warp_match_all, warp_match_any};
pub(crate) use operation::Shuffle;
pub use operation::WarpReductionOp;
pub use reduction::{WarpReduceValue, warp_reduce};
