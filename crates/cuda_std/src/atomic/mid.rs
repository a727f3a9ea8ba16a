//! Fences: orders accesses of a thread as the threads of a scope see them.
//!
//! They mean what [`core::sync::atomic::fence`] means, with one difference: `Relaxed` does
//! nothing.

use super::Ordering;
use super::operations::{Block, Device, Fence, System};

/// A fence as seen by the threads of the block.
#[inline(always)]
pub fn block_thread_fence(ordering: Ordering) {
    Block::fence(ordering);
}

/// A fence as seen by the threads of the GPU.
#[inline(always)]
pub fn device_thread_fence(ordering: Ordering) {
    Device::fence(ordering);
}

/// A fence as seen by the threads of all GPUs and of the host.
#[inline(always)]
pub fn system_thread_fence(ordering: Ordering) {
    System::fence(ordering);
}
