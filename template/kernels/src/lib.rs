//! The kernels. The build script compiles this crate for the GPU, with `--cfg cuda_device` and
//! without `std`; cargo compiles it for the CPU, where the simulator calls the same functions.

#![cfg_attr(cuda_device, no_std)]

use cuda_std::block::block_reduce;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Threads in a block.
pub const BLOCK: u32 = 256;

/// y = factor * x + y: each thread computes one element.
///
/// # Safety
///
/// `y` has at least as many elements as `x`, and nothing else accesses them during the launch.
#[kernel]
pub unsafe fn saxpy(factor: f32, x: &[f32], y: *mut f32) {
    let i = thread::index_1d() as usize;
    if i < x.len() {
        // SAFETY: element i exists, and no other thread accesses it.
        unsafe { *y.add(i) += factor * x[i] };
    }
}

/// The sum of x, in parts: each block adds the elements of its threads.
///
/// # Safety
///
/// `sums` has an element for each block, and nothing else accesses them during the launch.
#[kernel]
pub unsafe fn sum(x: &[f32], sums: *mut f32) {
    // A thread without an element stays, since all threads of a block must add.
    let own = x.get(thread::index_1d() as usize).copied().unwrap_or(0.0);
    // SAFETY: every thread of the block gets here.
    let sum = unsafe { block_reduce(own, WarpReductionOp::Add) };
    if thread::thread_idx_x() == 0 {
        // SAFETY: the element exists, and it is this block's.
        unsafe { *sums.add(thread::block_idx_x() as usize) = sum };
    }
}
