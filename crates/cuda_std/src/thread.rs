//! Which thread this is, and waiting for the others.
//!
//! A launch is a grid of blocks, a block is a box of up to 1024 threads:
//!
//! ```text
//!   grid_dim = (3, 2, 1)                    block_dim = (4, 2, 1)
//!   +-------+-------+-------+               +---+---+---+---+
//!   | (0,0) | (1,0) | (2,0) |   block (1,1) |0,0|1,0|2,0|3,0|   thread_idx_x grows along a row,
//!   +-------+-------+-------+  -----------> +---+---+---+---+   32 neighbours make a warp
//!   | (0,1) | (1,1) | (2,1) |               |0,1|1,1|2,1|3,1|
//!   +-------+-------+-------+               +---+---+---+---+
//! ```
//!
//! On a CPU these functions work only within a launch of the simulator; elsewhere they panic with
//! a message.

use crate::by_architecture::gpu_or_simulated;
use crate::vector::{Vec2, Vec3};

/// Defines a function that reads one component of a thread's position in the launch.
macro_rules! special_registers {
    ($($(#[$doc:meta])* $name:ident => $intrinsic:ident, $place:ident.$component:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name() -> u32 {
                gpu_or_simulated!(crate::device::$intrinsic(), crate::simulator::$place().$component)
            }
        )*
    };
}

special_registers! {
    /// This thread's x in its block.
    thread_idx_x => __nvvm_thread_idx_x, thread_index.x;
    /// This thread's y in its block.
    thread_idx_y => __nvvm_thread_idx_y, thread_index.y;
    /// This thread's z in its block.
    thread_idx_z => __nvvm_thread_idx_z, thread_index.z;
    /// The block's x in the grid.
    block_idx_x => __nvvm_block_idx_x, block_index.x;
    /// The block's y in the grid.
    block_idx_y => __nvvm_block_idx_y, block_index.y;
    /// The block's z in the grid.
    block_idx_z => __nvvm_block_idx_z, block_index.z;
    /// Threads of a block along x.
    block_dim_x => __nvvm_block_dim_x, block_size.x;
    /// Threads of a block along y.
    block_dim_y => __nvvm_block_dim_y, block_size.y;
    /// Threads of a block along z.
    block_dim_z => __nvvm_block_dim_z, block_size.z;
    /// Blocks of the grid along x.
    grid_dim_x => __nvvm_grid_dim_x, grid_size.x;
    /// Blocks of the grid along y.
    grid_dim_y => __nvvm_grid_dim_y, grid_size.y;
    /// Blocks of the grid along z.
    grid_dim_z => __nvvm_grid_dim_z, grid_size.z;
}

/// This thread's position in its block.
#[inline(always)]
pub fn thread_idx() -> Vec3<u32> {
    Vec3::new(thread_idx_x(), thread_idx_y(), thread_idx_z())
}

/// The block's position in the grid.
#[inline(always)]
pub fn block_idx() -> Vec3<u32> {
    Vec3::new(block_idx_x(), block_idx_y(), block_idx_z())
}

/// Threads of a block along each axis.
#[inline(always)]
pub fn block_dim() -> Vec3<u32> {
    Vec3::new(block_dim_x(), block_dim_y(), block_dim_z())
}

/// Blocks of the grid along each axis.
#[inline(always)]
pub fn grid_dim() -> Vec3<u32> {
    Vec3::new(grid_dim_x(), grid_dim_y(), grid_dim_z())
}

/// A number that no other thread of the launch has, counted along x, then y, then z, block after
/// block; modulo 2^32.
#[inline(always)]
pub fn index() -> u32 {
    let (grid, block) = (grid_dim(), block_dim());
    let (block_at, thread_at) = (block_idx(), thread_idx());
    let block_number = (block_at.z.wrapping_mul(grid.y).wrapping_add(block_at.y))
        .wrapping_mul(grid.x)
        .wrapping_add(block_at.x);
    let thread_number = (thread_at.z * block.y + thread_at.y) * block.x + thread_at.x;
    block_number
        .wrapping_mul(block.x * block.y * block.z)
        .wrapping_add(thread_number)
}

/// The position along one axis of the grid.
#[inline(always)]
fn in_grid(block: u32, block_size: u32, thread: u32) -> u32 {
    block.wrapping_mul(block_size).wrapping_add(thread)
}

/// This thread's x in the grid.
#[inline(always)]
pub fn index_1d() -> u32 {
    in_grid(block_idx_x(), block_dim_x(), thread_idx_x())
}

/// This thread's x and y in the grid.
#[inline(always)]
pub fn index_2d() -> Vec2<u32> {
    Vec2::new(
        index_1d(),
        in_grid(block_idx_y(), block_dim_y(), thread_idx_y()),
    )
}

/// This thread's x, y and z in the grid.
#[inline(always)]
pub fn index_3d() -> Vec3<u32> {
    let Vec2 { x, y } = index_2d();
    let z = in_grid(block_idx_z(), block_dim_z(), thread_idx_z());
    Vec3::new(x, y, z)
}

/// Whether this is thread (0, 0, 0) of block (0, 0, 0), which is true for exactly one thread of a
/// launch.
#[inline(always)]
pub fn first() -> bool {
    block_idx() == Vec3::default() && thread_idx() == Vec3::default()
}

/// Threads of a warp: 32.
#[inline(always)]
pub fn warp_size() -> u32 {
    gpu_or_simulated!(
        crate::device::__nvvm_warp_size(),
        crate::simulator::WARP_SIZE
    )
}

/// Waits until every thread of the block has arrived; afterwards all threads see what each wrote
/// before, to shared or global memory.
///
/// Every thread of the block must reach the same call, or none may. On a GPU anything else hangs
/// or gives wrong results; in the simulator it is a fault that names the block, the threads and
/// the calls.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub fn sync_threads() {
    #[cfg(cuda_device)]
    crate::device::__nvvm_block_barrier();
    #[cfg(not(cuda_device))]
    crate::simulator::barrier();
}

/// Waits until `threads` threads of the block have arrived at the barrier of this number: those of
/// some of its warps, while the others go on. Afterwards they see what each wrote before.
///
/// # Safety
///
/// `number` is from 1 to 15 (0 is that of [`sync_threads`]), `threads` a multiple of 32, the same
/// for all threads that meet there. All lanes of a warp arrive together.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn named_barrier(number: u32, threads: u32) {
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for the barrier.
    unsafe {
        core::arch::asm!(
            "bar.sync {:e}, {:e};",
            in(reg) number, in(reg) threads, options(nostack, preserves_flags)
        );
    }
    #[cfg(not(cuda_device))]
    crate::simulator::named_barrier(number, threads);
}

/// Defines a [`sync_threads`] that combines a predicate of all threads.
macro_rules! reducing_barriers {
    ($($(#[$doc:meta])* $name:ident => $intrinsic:ident, $simulated:ident;)*) => {
        $(
            /// [`sync_threads`] that also returns, to every thread,
            $(#[$doc])*
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub fn $name(predicate: u32) -> u32 {
                gpu_or_simulated!(
                    crate::device::$intrinsic(predicate),
                    crate::simulator::$simulated(predicate)
                )
            }
        )*
    };
}

reducing_barriers! {
    /// the number of the block's threads in which `predicate` is not 0.
    sync_threads_count => __nvvm_block_barrier_count, barrier_count;
    /// whether `predicate` is not 0 in all of the block's threads: not 0 if so.
    sync_threads_and => __nvvm_block_barrier_and, barrier_and;
    /// whether `predicate` is not 0 in any of the block's threads: not 0 if so.
    sync_threads_or => __nvvm_block_barrier_or, barrier_or;
}

/// Defines a memory fence of one scope.
macro_rules! fences {
    ($($(#[$doc:meta])* $name:ident => $intrinsic:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// Orders this thread's reads and writes around the fence. It does not wait for other
            /// threads.
            #[inline(always)]
            pub fn $name() {
                #[cfg(cuda_device)]
                crate::device::$intrinsic();
                #[cfg(not(cuda_device))]
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            }
        )*
    };
}

fences! {
    /// A memory fence as seen by the threads of the block.
    block_fence => __nvvm_block_fence;
    /// A memory fence as seen by the threads of the grid.
    grid_fence => __nvvm_grid_fence;
    /// A memory fence as seen by every thread on the device.
    device_fence => __nvvm_device_fence;
    /// A memory fence as seen by the device, the host and other devices.
    system_fence => __nvvm_system_fence;
}

/// Pauses the thread for about this many nanoseconds (needs an sm_70 GPU). In the simulator, lets
/// the block's other threads run.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub fn nanosleep(nanoseconds: u32) {
    #[cfg(cuda_device)]
    crate::device::__nvvm_nanosleep(nanoseconds);
    #[cfg(not(cuda_device))]
    {
        let _ = nanoseconds;
        crate::simulator::let_others_run();
    }
}
