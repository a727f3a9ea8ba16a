//! The device's heap, and how much shared memory there is.
//!
//! A kernel can use `alloc`'s `Box`, `Vec` and `Rc`, which [`prelude`](crate::prelude) has. Their
//! memory comes from the device's `malloc`: slow, from a heap of 8 MiB unless the host sets
//! another size (`cuCtxSetLimit`, `CU_LIMIT_MALLOC_HEAP_SIZE`). What one thread allocates any
//! thread may use and free, also one of a later launch. If the heap is exhausted, the launch
//! fails. In the simulator the heap is the host's.

use crate::by_architecture::gpu_or_simulated;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

unsafe extern "C" {
    /// Allocates this many bytes, at a multiple of 16; null if there is no room.
    pub safe fn malloc(size: usize) -> *mut c_void;
    /// Frees what [`malloc`] has given, if it is not null.
    ///
    /// # Safety
    ///
    /// Nobody uses the memory from now on.
    pub fn free(ptr: *mut c_void);
}

/// What `malloc` aligns to.
const MALLOC_ALIGN: usize = 16;

/// The allocator over [`malloc`] and [`free`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CUDAAllocator;

/// The allocator of device code. The simulator's `Box` is that of the host's program, which may
/// have an allocator of its own.
#[cfg_attr(cuda_device, global_allocator)]
pub static GLOBAL_ALLOCATOR: CUDAAllocator = CUDAAllocator;

// SAFETY: `malloc` gives memory that nobody else has. For a larger alignment, the start of the
// allocation is stored in the 8 bytes before the address that is given out:
//
//     malloc's            given out
//     |......|start of it|..........|
unsafe impl GlobalAlloc for CUDAAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            return malloc(layout.size()).cast();
        }
        let start = malloc(layout.size() + layout.align()).cast::<u8>();
        if start.is_null() {
            return start;
        }
        // Both are multiples of 16, so at least 16 bytes are left out.
        let offset = layout.align() - start.addr() % layout.align();
        // SAFETY: within the allocation, as said.
        unsafe {
            let given = start.add(offset);
            given.cast::<*mut u8>().sub(1).write(start);
            given
        }
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: given out by `alloc` for this layout.
        unsafe {
            let start = match layout.align() <= MALLOC_ALIGN {
                true => ptr,
                false => ptr.cast::<*mut u8>().sub(1).read(),
            };
            free(start.cast());
        }
    }
}

/// The bytes of dynamic shared memory that the launch has requested for each block.
#[inline(always)]
pub fn dynamic_smem_size() -> u32 {
    gpu_or_simulated!(
        crate::device::__nvvm_dynamic_smem_size(),
        crate::simulator::dynamic_shared_bytes()
    )
}

/// The bytes of shared memory that each block takes, arrays and dynamic: on a GPU a multiple of
/// its unit of allocation (128 bytes from compute capability 8.0 on, 256 before), which may
/// include some that the driver keeps for itself.
///
/// The simulator knows an array when a thread of the block first names it.
#[inline(always)]
pub fn total_smem_size() -> u32 {
    gpu_or_simulated!(
        crate::device::__nvvm_total_smem_size(),
        crate::simulator::shared_bytes().next_multiple_of(128)
    )
}
