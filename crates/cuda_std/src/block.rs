//! What the threads of a block compute together.

use crate::shared_array;
use crate::thread::{block_dim, sync_threads, thread_idx};
use crate::warp::{WarpReduceValue, WarpReductionOp, lane_id, warp_reduce};

/// The values of all threads of the block, combined; every thread gets the result, with the same
/// bits.
///
/// Each warp combines its own by [`warp_reduce`]. The results go through 256 bytes of shared
/// memory, which all calls in a kernel share, and every thread combines them in the order of the
/// warps. One barrier separates writing from reading; a second one at the end keeps the next call,
/// if it comes at once, from writing what a slow warp has still to read. What threads wrote before
/// the call, all threads see after it, as after any
/// [`sync_threads`].
///
/// A block may have any shape and any number of threads.
///
/// # Panics
///
/// If `op` is bitwise and `T` a float.
///
/// # Safety
///
/// Every thread of the block reaches this call, with the same `op`.
///
/// ```
/// use cuda_std::block::block_reduce;
/// use cuda_std::prelude::*;
/// use cuda_std::warp::WarpReductionOp;
///
/// /// The sum of each block's elements, an element a thread.
/// ///
/// /// # Safety
/// ///
/// /// `sums` has an element for each block.
/// #[kernel]
/// pub unsafe fn sums_of_blocks(x: &[f32], sums: *mut f32) {
///     let own = x.get(thread::index_1d() as usize).copied().unwrap_or(0.0);
///     let sum = unsafe { block_reduce(own, WarpReductionOp::Add) };
///     if thread::thread_idx_x() == 0 {
///         unsafe { *sums.add(thread::block_idx_x() as usize) = sum };
///     }
/// }
/// # let mut sums = [0.0; 2];
/// # let to = std::sync::atomic::AtomicPtr::new(sums.as_mut_ptr());
/// # cuda_std::simulator::Launch::new(2, 48)
/// #     .run(|| unsafe { sums_of_blocks(&[1.0; 90], to.load(std::sync::atomic::Ordering::Relaxed)) })?;
/// # assert_eq!(sums, [48.0, 42.0]);
/// # Ok::<(), cuda_std::simulator::Fault>(())
/// ```
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn block_reduce<T: WarpReduceValue>(value: T, op: WarpReductionOp) -> T {
    const { assert!(size_of::<T>() <= size_of::<u64>()) }
    let of_warps = shared_array![u64; 32].cast::<T>();
    let (at, size) = (thread_idx(), block_dim());
    let warp = (at.x + size.x * (at.y + size.y * at.z)) / 32;
    let threads = size.x * size.y * size.z;
    // The last warp may have fewer lanes.
    let lanes = (threads - 32 * warp).min(32);
    // SAFETY: these are the lanes that the warp has, and all of them are here. A block has at most
    // 32 warps, and each of them writes its own element before others read it.
    unsafe {
        let of_warp = warp_reduce(u32::MAX >> (32 - lanes), value, op);
        if lane_id() == 0 {
            *of_warps.add(warp as usize) = of_warp;
        }
        sync_threads(); // every warp's result is written
        let mut result = *of_warps;
        for other in 1..threads.div_ceil(32) {
            result = result.combine(*of_warps.add(other as usize), op);
        }
        sync_threads(); // every thread has finished reading the results
        result
    }
}
