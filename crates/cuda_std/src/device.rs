//! What the compiler back end `device_codegen` provides: each declaration here is an instruction,
//! or a libdevice function.
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

    pub safe fn __nvvm_block_fence();
    pub safe fn __nvvm_grid_fence();
    pub safe fn __nvvm_device_fence();
    pub safe fn __nvvm_system_fence();
    pub safe fn __nvvm_nanosleep(nanoseconds: u32);

    pub safe fn __nvvm_active_mask() -> u32;

    /// The start of dynamic shared memory, at a multiple of `alignment`, a constant.
    pub safe fn __nvvm_dynamic_shared(alignment: u32) -> *mut u8;
    /// The address, within shared memory, of what `pointer` points to.
    #[cfg(cuda_arch_at_least = "80")]
    pub fn __nvvm_shared_address(pointer: *const u8) -> u32;
    pub safe fn __nvvm_launch_bounds(max_threads: u32, min_blocks: u32);
    pub safe fn __nvvm_max_registers(registers: u32);
    pub safe fn __nvvm_cluster_dim(x: u32, y: u32, z: u32);
    /// The launch passes the value that `parameter`, a parameter of the kernel, points to.
    pub safe fn __nvvm_by_value(parameter: *const u8, bytes: u64, alignment: u64);
    /// The same, and the value has an address that all threads may use.
    pub safe fn __nvvm_grid_constant(parameter: *const u8, bytes: u64, alignment: u64);
    /// The same pointer, to memory that nothing writes while the kernel runs.
    pub safe fn __nvvm_read_only(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_unroll(count: u32);
    pub safe fn __nvvm_opaque_u32(value: u32) -> u32;
    pub safe fn __nvvm_opaque_u64(value: u64) -> u64;

    /// Prints C's `format` with the values that `arguments` points to, each at its natural
    /// alignment.
    pub fn vprintf(format: *const u8, arguments: *const c_void) -> i32;
    /// Prints the texts, with line, block and thread, and ends the launch.
    pub fn __assertfail(
        message: *const u8,
        file: *const u8,
        line: u32,
        function: *const u8,
        char_size: usize,
    );

    pub safe fn __nvvm_breakpoint();
    pub safe fn __nvvm_clock() -> u64;
    pub safe fn __nvvm_dynamic_smem_size() -> u32;
    pub safe fn __nvvm_total_smem_size() -> u32;

    pub safe fn __nvvm_is_global(pointer: *const u8) -> u32;
    pub safe fn __nvvm_is_shared(pointer: *const u8) -> u32;
    pub safe fn __nvvm_is_constant(pointer: *const u8) -> u32;
    pub safe fn __nvvm_is_local(pointer: *const u8) -> u32;

    pub safe fn __nvvm_to_global(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_to_shared(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_to_constant(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_to_local(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_from_global(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_from_shared(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_from_constant(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_from_local(pointer: *const u8) -> *const u8;
}

/// The address, within shared memory, of what `pointer` points to.
///
/// # Safety
///
/// That is shared memory of this block.
#[cfg(cuda_arch_at_least = "80")]
#[inline(always)]
pub unsafe fn shared_address<T>(pointer: *const T) -> u32 {
    // SAFETY: as the caller vouches.
    unsafe { __nvvm_shared_address(pointer.cast()) }
}

/// An empty `asm!`, placed after an operation that the threads of a warp or a block execute
/// together, so that the operation stays where the source has it.
///
/// If a flag is set before a block and tested after it, rustc's jump threading copies the block
/// into two branches, but it never copies a block that ends in `asm!`. Without the `asm!` one
/// barrier would become two, and threads waiting at one would never meet those at the other.
/// `device_codegen` drops the empty text.
macro_rules! stand_together {
    () => {
        core::arch::asm!("", options(nomem, nostack, preserves_flags))
    };
}
pub(crate) use stand_together;

/// Ends the launch: what calls it has no meaning on this architecture.
#[cfg(not(target_feature = "compute_90a"))]
macro_rules! needs_architecture {
    ($why:literal $(, $unused:expr)*) => {{
        $(let _ = $unused;)*
        // SAFETY: it ends the launch.
        unsafe {
            core::arch::asm!(concat!("trap; // ", $why), options(nostack, preserves_flags))
        }
    }};
}
#[cfg(not(target_feature = "compute_90a"))]
pub(crate) use needs_architecture;

/// Declares functions for operations that threads execute together.
macro_rules! convergent {
    ($($([$unsafe:tt])? fn $name:ident($($argument:ident: $ty:ty),*) $(-> $result:ty)?;)*) => {
        mod declared {
            unsafe extern "C" {
                $(pub fn $name($($argument: $ty),*) $(-> $result)?;)*
            }
        }
        $(
            #[inline(always)]
            #[allow(dead_code)] // reductions, where an architecture has none
            pub $($unsafe)? fn $name($($argument: $ty),*) $(-> $result)? {
                // SAFETY: the caller vouches for the lanes, if there are any to name; the text
                // does nothing.
                unsafe {
                    let result = declared::$name($($argument),*);
                    stand_together!();
                    result
                }
            }
        )*
    };
}

convergent! {
    fn __nvvm_block_barrier();
    fn __nvvm_block_barrier_count(predicate: u32) -> u32;
    fn __nvvm_block_barrier_and(predicate: u32) -> u32;
    fn __nvvm_block_barrier_or(predicate: u32) -> u32;

    [unsafe] fn __nvvm_warp_sync(mask: u32);
    [unsafe] fn __nvvm_warp_shfl_idx_i32(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    [unsafe] fn __nvvm_warp_shfl_up_i32(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    [unsafe] fn __nvvm_warp_shfl_down_i32(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    [unsafe] fn __nvvm_warp_shfl_bfly_i32(mask: u32, value: u32, lane_mask: u32, clamp: u32) -> u32;
    [unsafe] fn __nvvm_warp_vote_all(mask: u32, predicate: u32) -> u32;
    [unsafe] fn __nvvm_warp_vote_any(mask: u32, predicate: u32) -> u32;
    [unsafe] fn __nvvm_warp_ballot(mask: u32, predicate: u32) -> u32;
    [unsafe] fn __nvvm_warp_match_any_b32(mask: u32, value: u32) -> u32;
    [unsafe] fn __nvvm_warp_match_any_b64(mask: u32, value: u64) -> u32;
    [unsafe] fn __nvvm_warp_match_all_b32(mask: u32, value: u32) -> u32;
    [unsafe] fn __nvvm_warp_match_all_b64(mask: u32, value: u64) -> u32;
    [unsafe] fn __nvvm_warp_reduce_add(mask: u32, value: u32) -> u32;
    [unsafe] fn __nvvm_warp_reduce_min_u32(mask: u32, value: u32) -> u32;
    [unsafe] fn __nvvm_warp_reduce_max_u32(mask: u32, value: u32) -> u32;
    [unsafe] fn __nvvm_warp_reduce_min_i32(mask: u32, value: u32) -> u32;
    [unsafe] fn __nvvm_warp_reduce_max_i32(mask: u32, value: u32) -> u32;
    [unsafe] fn __nvvm_warp_reduce_and(mask: u32, value: u32) -> u32;
    [unsafe] fn __nvvm_warp_reduce_or(mask: u32, value: u32) -> u32;
    [unsafe] fn __nvvm_warp_reduce_xor(mask: u32, value: u32) -> u32;
}
