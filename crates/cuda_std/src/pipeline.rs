//! Copies from global to shared memory that run while the thread goes on.
//!
//! A thread issues copies, closes a group of them with [`commit`], and waits with [`wait_prior`] until all but its newest
//! groups have arrived:
//!
//! ```text
//!   issue tile 0, commit     ====================>|
//!   issue tile 1, commit            ====================>|
//!   wait_prior::<1>() ............................| tile 0 has arrived, tile 1 is on its way
//!   sync_threads()                                  ... and so has every other thread's part of tile 0
//! ```
//!
//! A wait is about the calling thread's own copies, and what it copied only that thread then sees: a
//! [`sync_threads`](crate::thread::sync_threads) after it lets the others of the block see it too. Nor does anything
//! keep a copy from landing in a buffer that another thread still reads: that, too, takes a barrier, before the copy.
//!
//! The copies are those of PTX's `cp.async`, which begins at `compute_80`. Compiled for less, a copy is a load and a
//! store, done when it is issued, and there is nothing to wait for.
//!
//! The simulator makes a copy as late as it may: it fills the target with the byte 0xFF (a NaN in every float format)
//! when the copy is issued, and reads and writes when a [`wait_prior`] makes sure of its group, or never. So a wait
//! that is missing, or too weak, is seen.
//!
//! ```
//! # use cuda_std::{pipeline, prelude::*, shared_array};
//! /// Reverses each group of 64 elements.
//! ///
//! /// # Safety
//! ///
//! /// A launch of 64 threads a block, and 64 elements at `input` and at `output` for each block.
//! #[kernel(max_threads = 64)]
//! pub unsafe fn reverse(input: *const f32, output: *mut f32) {
//!     let staged = shared_array![f32; 64];
//!     let i = thread::thread_idx_x() as usize;
//!     let first = 64 * thread::block_idx_x() as usize;
//!     unsafe { pipeline::memcpy_async(staged.add(i), input.add(first + i)) };
//!     pipeline::commit();
//!     pipeline::wait_prior::<0>(); // this thread's element has arrived
//!     thread::sync_threads(); // every thread's has
//!     unsafe { *output.add(first + i) = *staged.add(63 - i) };
//! }
//! ```

#[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
use core::arch::asm;
#[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
use core::mem::MaybeUninit;

/// Begins to copy a value of 4, 8 or 16 bytes from `global` to `shared`.
///
/// 16 bytes go past the L1 cache, 4 and 8 through it. Other sizes do not compile:
///
/// ```compile_fail,E0080
/// # let (shared, global) = (core::ptr::null_mut::<u16>(), core::ptr::null());
/// unsafe { cuda_std::pipeline::memcpy_async(shared, global) }; // 2 bytes
/// ```
///
/// # Safety
///
/// `shared` points into this block's shared memory and `global` into global memory, both aligned to the size of the
/// value, not only to its type's alignment. Until a [`wait_prior`] has made sure of the copy nobody writes what `global`
/// points to, and nobody reads or writes what `shared` points to.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn memcpy_async<T: Copy>(shared: *mut T, global: *const T) {
    const { assert_size::<T>() }
    #[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
    // SAFETY: the caller vouches for both places.
    unsafe {
        let shared = crate::device::__nvvm_shared_address(shared.cast());
        match size_of::<T>() {
            4 => asm!(
                "cp.async.ca.shared.global [{:e}], [{}], 4;",
                in(reg) shared, in(reg) global, options(nostack, preserves_flags)
            ),
            8 => asm!(
                "cp.async.ca.shared.global [{:e}], [{}], 8;",
                in(reg) shared, in(reg) global, options(nostack, preserves_flags)
            ),
            _ => asm!(
                "cp.async.cg.shared.global [{:e}], [{}], 16;",
                in(reg) shared, in(reg) global, options(nostack, preserves_flags)
            ),
        }
    }
    #[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
    // SAFETY: as above.
    unsafe {
        copy_words(shared.cast(), global.cast(), size_of::<T>() / 4);
    }
    #[cfg(not(cuda_device))]
    crate::simulator::copy_async(shared, global, size_of::<T>() as u32);
}

/// 16 bytes at a multiple of 16.
#[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
#[repr(C, align(16))]
struct Words([u32; 4]);

/// Copies 1, 2 or 4 words one by one: what is copied as a whole may pass through memory on its way, while libNVVM makes one
/// access of four neighbours that it knows to be aligned.
#[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
#[inline(always)]
unsafe fn copy_words(shared: *mut u32, global: *const u32, count: usize) {
    // SAFETY: the caller of `memcpy_async` vouches for both places.
    unsafe {
        if count == 4 {
            let (shared, global) = (shared.cast::<Words>(), global.cast::<Words>());
            for word in 0..4 {
                (*shared).0[word] = (*global).0[word];
            }
        } else {
            for word in 0..count {
                *shared.add(word) = *global.add(word);
            }
        }
    }
}

/// [`memcpy_async`] of the first `valid_bytes` bytes of the value only; the rest of `shared` becomes zeros.
///
/// # Safety
///
/// As for [`memcpy_async`], but only `valid_bytes` bytes need be there at `global`, at most the size of the value; where
/// that is 0, `global` may point anywhere.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn memcpy_async_zfill<T: Copy>(shared: *mut T, global: *const T, valid_bytes: u32) {
    const { assert_size::<T>() }
    #[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
    // SAFETY: the caller vouches for both places and for the number of bytes.
    unsafe {
        let shared = crate::device::__nvvm_shared_address(shared.cast());
        match size_of::<T>() {
            4 => asm!(
                "cp.async.ca.shared.global [{:e}], [{}], 4, {:e};",
                in(reg) shared, in(reg) global, in(reg) valid_bytes, options(nostack, preserves_flags)
            ),
            8 => asm!(
                "cp.async.ca.shared.global [{:e}], [{}], 8, {:e};",
                in(reg) shared, in(reg) global, in(reg) valid_bytes, options(nostack, preserves_flags)
            ),
            _ => asm!(
                "cp.async.cg.shared.global [{:e}], [{}], 16, {:e};",
                in(reg) shared, in(reg) global, in(reg) valid_bytes, options(nostack, preserves_flags)
            ),
        }
    }
    #[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
    // SAFETY: as above.
    unsafe {
        if valid_bytes as usize == size_of::<T>() {
            shared.write(global.read());
        } else {
            // Byte for byte, and not through an array: one that is indexed by a variable lies in memory.
            let shared = shared.cast::<MaybeUninit<u8>>();
            let global = global.cast::<MaybeUninit<u8>>();
            for byte in 0..size_of::<T>() {
                shared.add(byte).write(match byte < valid_bytes as usize {
                    true => global.add(byte).read(),
                    false => MaybeUninit::new(0),
                });
            }
        }
    }
    #[cfg(not(cuda_device))]
    crate::simulator::copy_async(shared, global, valid_bytes);
}

/// What [`memcpy_async`] can copy.
const fn assert_size<T>() {
    assert!(
        matches!(size_of::<T>(), 4 | 8 | 16),
        "an asynchronous copy is one of 4, 8 or 16 bytes"
    );
}

/// Makes the copies that this thread has issued since its last `commit` a group; one without copies counts as well.
#[inline(always)]
pub fn commit() {
    #[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
    // SAFETY: it touches nothing.
    unsafe {
        asm!("cp.async.commit_group;", options(nostack, preserves_flags));
    }
    #[cfg(not(cuda_device))]
    crate::simulator::commit_copies();
}

/// Waits until all of this thread's groups but the `GROUPS` newest have arrived; with 0, all of them.
///
/// What has arrived this thread can read; for others to read it, each thread must wait for its own copies and then pass
/// a [`sync_threads`](crate::thread::sync_threads). Copies that no [`commit`] has put into a group are not waited for.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub fn wait_prior<const GROUPS: u32>() {
    #[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
    // SAFETY: it writes nothing but what the copies were issued to write.
    unsafe {
        asm!(
            "cp.async.wait_group {};",
            const GROUPS, options(nostack, preserves_flags)
        );
    }
    #[cfg(not(cuda_device))]
    crate::simulator::wait_for_copies(GROUPS as usize);
}

/// Begins to fetch the cache line of the L2 that `global` points into, for a later access to find it there.
///
/// It is a hint: in the simulator it does nothing.
///
/// # Safety
///
/// `global` points into global memory.
#[inline(always)]
pub unsafe fn prefetch_l2<T>(global: *const T) {
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for the place; nothing is written.
    unsafe {
        core::arch::asm!(
            "prefetch.global.L2 [{}];",
            in(reg) global, options(nostack, preserves_flags)
        );
    }
    #[cfg(not(cuda_device))]
    let _ = global;
}
