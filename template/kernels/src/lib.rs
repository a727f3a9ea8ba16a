//! The kernels. The build script compiles this crate for the GPU, with `--cfg cuda_device` and
//! without `std`; cargo compiles it for the CPU, where the simulator calls the same functions.

#![cfg_attr(cuda_device, no_std)]

use cuda_std::prelude::*;

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
