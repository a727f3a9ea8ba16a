//! What the compiler back end `nvvm_codegen` provides: each declaration here is an instruction, or a libdevice
//! function.
//!
//! Masks name lanes of a warp, bit i for lane i. Predicates are 0 or 1.

use core::ffi::c_void;

unsafe extern "C" {
    pub safe fn __nvvm_thread_idx_x() -> u32;
    pub safe fn __nvvm_thread_idx_y() -> u32;
    pub safe fn __nvvm_thread_idx_z() -> u32;
    pub safe fn __nvvm_block_idx_x() -> u32;
    pub safe fn __nvvm_block_idx_y() -> u32;
    pub safe fn __nvvm_block_idx_z() -> u32;
    pub safe fn __nvvm_block_dim_x() -> u32;
    pub safe fn __nvvm_block_dim_y() -> u32;
    pub safe fn __nvvm_block_dim_z() -> u32;
    pub safe fn __nvvm_grid_dim_x() -> u32;
    pub safe fn __nvvm_grid_dim_y() -> u32;
    pub safe fn __nvvm_grid_dim_z() -> u32;
    pub safe fn __nvvm_warp_size() -> u32;
    pub safe fn __nvvm_lane_id() -> u32;

    pub safe fn __nvvm_block_barrier();
    pub safe fn __nvvm_block_barrier_count(predicate: u32) -> u32;
    pub safe fn __nvvm_block_barrier_and(predicate: u32) -> u32;
    pub safe fn __nvvm_block_barrier_or(predicate: u32) -> u32;

    pub safe fn __nvvm_block_fence();
    pub safe fn __nvvm_grid_fence();
    pub safe fn __nvvm_device_fence();
    pub safe fn __nvvm_system_fence();
    pub safe fn __nvvm_nanosleep(nanoseconds: u32);

    pub fn __nvvm_warp_shfl_idx_i32(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    pub fn __nvvm_warp_shfl_up_i32(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    pub fn __nvvm_warp_shfl_down_i32(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    pub fn __nvvm_warp_shfl_bfly_i32(mask: u32, value: u32, lane_mask: u32, clamp: u32) -> u32;
    pub fn __nvvm_warp_vote_all(mask: u32, predicate: u32) -> u32;
    pub fn __nvvm_warp_vote_any(mask: u32, predicate: u32) -> u32;
    pub fn __nvvm_warp_ballot(mask: u32, predicate: u32) -> u32;
    pub fn __nvvm_warp_sync(mask: u32);
    pub safe fn __nvvm_active_mask() -> u32;

    pub safe fn __nvvm_dynamic_shared() -> *mut u8;
    /// The address in shared memory of what `pointer` points to there.
    #[cfg(cuda_arch_at_least = "80")]
    pub fn __nvvm_shared_address(pointer: *const u8) -> u32;
    pub safe fn __nvvm_launch_bounds(max_threads: u32, min_blocks: u32);
    pub safe fn __nvvm_unroll(count: u32);
    pub safe fn __nvvm_opaque_u32(value: u32) -> u32;
    pub safe fn __nvvm_opaque_u64(value: u64) -> u64;

    /// Prints C's `format` with the values that `arguments` points to, each at its natural alignment.
    pub fn vprintf(format: *const u8, arguments: *const c_void) -> i32;
}
