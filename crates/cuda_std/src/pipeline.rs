//! Asynchronous copies from global to shared memory: the thread continues while they run.
//!
//! A thread issues copies, closes a group of them with [`commit`], and waits with [`wait_prior`]
//! until all but its newest groups have arrived:
//!
//! ```text
//!   issue tile 0, commit     ====================>|
//!   issue tile 1, commit            ====================>|
//!   wait_prior::<1>() ............................| tile 0 has arrived, tile 1 is on its way
//!   sync_threads()                                ... so have all other threads' parts of tile 0
//! ```
//!
//! A wait covers only the calling thread's own copies, and afterwards only that thread sees the
//! copied data: a [`sync_threads`](crate::thread::sync_threads) after the wait makes them visible
//! to the other threads of the block. Nothing prevents a copy from writing to a buffer that
//! another thread still reads: that requires a barrier before the copy.
//!
//! The copies are PTX's `cp.async`, which requires `compute_80`. Compiled for an older
//! architecture, a copy is a load and a store that complete when it is issued, and there is
//! nothing to wait for.
//!
//! The simulator performs a copy as late as allowed: it fills the target with the byte 0xFF (a
//! NaN in every float format) when the copy is issued, and reads and writes the data when a
//! [`wait_prior`] covers its group, or never. So a missing or insufficient wait becomes visible.
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

/// The instruction for the size of `$ty`, with another operand or without.
#[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
macro_rules! copy_instruction {
    ($ty:ty, $shared:ident, $global:ident, $text:literal, $($operand:tt)*) => {{
        let shared = crate::device::shared_address($shared);
        match size_of::<$ty>() {
            4 => copy_instruction!(@ "ca", "4", shared, $global, $text, $($operand)*),
            8 => copy_instruction!(@ "ca", "8", shared, $global, $text, $($operand)*),
            _ => copy_instruction!(@ "cg", "16", shared, $global, $text, $($operand)*),
        }
    }};
    (@ $cache:literal, $bytes:literal, $shared:ident, $global:ident, $text:literal, $($operand:tt)*) => {
        asm!(
            concat!("cp.async.", $cache, ".shared.global [{:e}], [{}], ", $bytes, $text, ";"),
            in(reg) $shared, in(reg) $global, $($operand)* options(nostack, preserves_flags)
        )
    };
}

/// Starts an asynchronous copy of a value of 4, 8 or 16 bytes from `global` to `shared`.
///
/// Copies of 16 bytes bypass the L1 cache; copies of 4 and 8 bytes go through it. Other sizes do
/// not compile:
///
/// ```compile_fail,E0080
/// # let (shared, global) = (core::ptr::null_mut::<u16>(), core::ptr::null());
/// unsafe { cuda_std::pipeline::memcpy_async(shared, global) }; // 2 bytes
/// ```
///
/// # Safety
///
/// `shared` points into this block's shared memory and `global` into global memory, both aligned
/// to the size of the value, not only to its type's alignment. Until a [`wait_prior`] has covered
/// the copy, no thread writes what `global` points to, and no thread reads or writes what
/// `shared` points to.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn memcpy_async<T: Copy>(shared: *mut T, global: *const T) {
    const { assert_size::<T>() }
    #[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
    // SAFETY: the caller vouches for both pointers.
    unsafe {
        copy_instruction!(T, shared, global, "",);
    }
    #[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
    // SAFETY: as above.
    unsafe {
        shared.write(global.read());
    }
    #[cfg(not(cuda_device))]
    crate::simulator::copy_async(shared, global, size_of::<T>() as u32);
}

/// [`memcpy_async`] of only the first `valid_bytes` bytes of the value; the remaining bytes of
/// `shared` are zero-filled.
///
/// # Safety
///
/// As for [`memcpy_async`], but only `valid_bytes` bytes, at most the size of the value, must be
/// readable at `global`; if `valid_bytes` is 0, `global` may point anywhere.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn memcpy_async_zfill<T: Copy>(shared: *mut T, global: *const T, valid_bytes: u32) {
    const { assert_size::<T>() }
    #[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
    // SAFETY: the caller vouches for both pointers and for the number of bytes.
    unsafe {
        copy_instruction!(T, shared, global, ", {:e}", in(reg) valid_bytes,);
    }
    #[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
    // SAFETY: as above.
    unsafe {
        if valid_bytes as usize == size_of::<T>() {
            shared.write(global.read());
        } else {
            // Byte by byte, and not through an array: an array that is indexed by a variable is
            // in local memory.
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

/// Puts the copies that this thread has issued since its last `commit` into a group; an empty
/// group counts as well.
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

/// Waits until all of this thread's groups but the `GROUPS` newest have arrived; with 0, all of
/// them.
///
/// This thread can read what has arrived; before other threads read it, each thread must wait for
/// its own copies and then pass a [`sync_threads`](crate::thread::sync_threads). Copies that no
/// [`commit`] has put into a group are not waited for.
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

/// Defines prefetches.
macro_rules! prefetches {
    ($($name:ident = $instruction:literal, $cache:literal;)*) => {$(
        #[doc = concat!("Prefetches the cache line that `global` points into to the ", $cache)]
        /// cache, so that a later access finds it there.
        ///
        /// It is a hint: in the simulator it does nothing.
        ///
        /// # Safety
        ///
        /// `global` points into global memory.
        #[inline(always)]
        pub unsafe fn $name<T>(global: *const T) {
            #[cfg(cuda_device)]
            // SAFETY: the caller vouches for the pointer; nothing is written.
            unsafe {
                core::arch::asm!(
                    concat!($instruction, " [{}];"),
                    in(reg) global,
                    options(nostack, preserves_flags)
                );
            }
            #[cfg(not(cuda_device))]
            let _ = global;
        }
    )*};
}

prefetches! {
    prefetch_l1 = "prefetch.global.L1", "L1";
    prefetch_l2 = "prefetch.global.L2", "L2";
}
