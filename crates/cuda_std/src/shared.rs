//! Memory that the threads of one block share.
//!
//! It is fast, small (48 KiB of arrays a block, more if dynamic), uninitialized when a block
//! starts and gone when it ends. A thread sees what another wrote only after both have passed a
//! [`sync_threads`](crate::thread::sync_threads). The simulator fills it with the byte 0xFF
//! before each block: an `f32` read before it is written is NaN.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// Declares an array in shared memory and gives a pointer to its first element:
/// `shared_array![f32; 16 * 16]` is a `*mut f32`.
///
/// Each occurrence in the source is one array: the same for every thread of the block, and the
/// same each time it is reached. The array starts at a multiple of 16 bytes. Element type and
/// length are constants that cannot name a generic parameter of the function around them, because
/// a `static` cannot.
///
/// # Safety
///
/// Obtaining the pointer is safe. A caller who reads through it vouches that the element was
/// written, by this thread or by another before a barrier that both have passed, and that no
/// thread writes it meanwhile.
///
/// ```
/// # use cuda_std::{prelude::*, shared_array};
/// /// Reverses each group of 64 elements.
/// ///
/// /// # Safety
/// ///
/// /// A launch of 64 threads a block, and 64 elements at `data` for each block.
/// #[kernel(max_threads = 64)]
/// pub unsafe fn reverse(data: *mut i32) {
///     let staged = shared_array![i32; 64];
///     let i = thread::thread_idx_x() as usize;
///     let data = unsafe { data.add(64 * thread::block_idx_x() as usize) };
///     unsafe { *staged.add(i) = *data.add(i) };
///     thread::sync_threads(); // every element is staged
///     unsafe { *data.add(i) = *staged.add(63 - i) };
/// }
/// ```
#[macro_export]
macro_rules! shared_array {
    ($element:ty; $length:expr) => {{
        $crate::__static_in! {
            unnamed,
            ARRAY,
            $crate::shared::SharedArray<[$element; $length]>,
            $crate::shared::SharedArray::uninit()
        }
        ARRAY.as_mut_ptr().cast::<$element>()
    }};
}

/// What a `static` in shared memory may hold, unless it is `mut`. Safe code can read nothing of
/// it, as the memory is uninitialized when a block starts, and gone when it ends.
///
/// # Safety
///
/// No safe code reads or writes what is behind a shared reference to such a value.
///
/// ```compile_fail,E0277
/// #[cuda_std::address_space(shared)]
/// static FLAG: bool = false;
/// ```
///
/// ```compile_fail,E0277
/// #[cuda_std::address_space(shared)]
/// static COUNT: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a static in shared memory",
    note = "the memory is uninitialized when a block starts, so safe code must not read it: take `shared_array!`, \
            a `MaybeUninit`, or a type with an `unsafe impl cuda_std::shared::SharedContent`"
)]
pub unsafe trait SharedContent {}

// SAFETY: a pointer to the contents is all that it gives.
unsafe impl<T> SharedContent for SharedArray<T> {}

// SAFETY: reading it is unsafe.
unsafe impl<T> SharedContent for MaybeUninit<T> {}

// SAFETY: reading it is unsafe.
unsafe impl<T> SharedContent for UnsafeCell<T> {}

// SAFETY: it has nothing but the elements.
unsafe impl<T: SharedContent, const LENGTH: usize> SharedContent for [T; LENGTH] {}

#[doc(hidden)]
pub const fn __assert_content<T: SharedContent>() {}

/// The storage of a [`shared_array!`].
#[doc(hidden)]
#[repr(C, align(16))]
pub struct SharedArray<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: only a raw pointer to the contents is ever given out.
unsafe impl<T> Sync for SharedArray<T> {}

impl<T> SharedArray<T> {
    #[inline(always)]
    pub const fn uninit() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    #[inline(always)]
    pub const fn as_mut_ptr(&self) -> *mut T {
        self.0.get().cast()
    }
}

/// The start of the shared memory whose size the launch chose, the same for every thread of the
/// block and every call: a multiple of 16 bytes, and of the alignment of `T` if that is greater.
///
/// This memory is uninitialized when the block starts; only the launch knows its size.
///
/// ```compile_fail,E0080
/// #[repr(align(2048))]
/// struct Page([u8; 2048]);
/// cuda_std::shared::dynamic_shared_mem::<Page>(); // the limit is 1024
/// ```
#[inline(always)]
pub fn dynamic_shared_mem<T>() -> *mut T {
    dynamic_shared_mem_aligned::<T, 1>()
}

/// [`dynamic_shared_mem`] at a multiple of `ALIGNMENT` bytes, a power of two up to 1024, which is
/// what a tensor map's swizzled tiles need.
///
/// On a GPU, dynamic shared memory follows the block's arrays. All kernels that are compiled
/// together get the greatest alignment that any of them requires, and the bytes between count
/// towards the shared memory of a block.
///
/// ```
/// # use cuda_std::{prelude::*, shared};
/// #[kernel]
/// pub unsafe fn tile_begins_at_a_multiple_of_1024() {
///     let tile = shared::dynamic_shared_mem_aligned::<f32, 1024>();
///     assert!(tile.addr() % 1024 == 0);
/// }
/// # use cuda_std::simulator::Launch;
/// # Launch::new(1, 1)
/// #     .dynamic_shared_bytes(4096)
/// #     .run(|| unsafe { tile_begins_at_a_multiple_of_1024() })?;
/// # Ok::<(), cuda_std::simulator::Fault>(())
/// ```
#[inline(always)]
pub fn dynamic_shared_mem_aligned<T, const ALIGNMENT: usize>() -> *mut T {
    const {
        assert!(
            ALIGNMENT.is_power_of_two() && ALIGNMENT <= 1024 && align_of::<T>() <= 1024,
            "dynamic shared memory can be aligned to a power of two up to 1024 bytes"
        );
    }
    #[cfg(cuda_device)]
    let start = {
        let least = const {
            let (given, of_type) = (ALIGNMENT as u32, align_of::<T>() as u32);
            let most = if given > of_type { given } else { of_type };
            if most > 16 { most } else { 16 }
        };
        crate::device::__nvvm_dynamic_shared(least)
    };
    #[cfg(not(cuda_device))]
    let start = crate::simulator::dynamic_shared_memory();
    start.cast()
}
