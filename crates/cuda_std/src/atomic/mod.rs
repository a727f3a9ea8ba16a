//! Numbers that several threads may change at the same time.
//!
//! An atomic has a scope: the threads that its operations are atomic and ordered for. A smaller
//! scope is cheaper. Fences of the three scopes are in [`mid`].
//!
//! | scope | those threads | integers | floats |
//! | --- | --- | --- | --- |
//! | block | of the thread block | [`BlockAtomicU32`], [`BlockAtomicI32`], [`BlockAtomicU64`], [`BlockAtomicI64`] | [`BlockAtomicF32`], [`BlockAtomicF64`] |
//! | device | of the GPU | [`AtomicU32`], [`AtomicI32`], [`AtomicU64`], [`AtomicI64`] | [`AtomicF32`], [`AtomicF64`] |
//! | system | of all GPUs, and the host's | [`SystemAtomicU32`], [`SystemAtomicI32`], [`SystemAtomicU64`], [`SystemAtomicI64`] | [`SystemAtomicF32`], [`SystemAtomicF64`] |
//!
//! Operations take an [`Ordering`], which means what it means in `std`, among the threads of the
//! scope. `core`'s own atomics can be used on a GPU too: integers of system scope.
//!
//! A read-modify-write is one instruction on the GPU, PTX's `atom`. In global memory
//! `atom.add.f32` flushes subnormal numbers to zero; in shared memory it does not, nor does the
//! simulator. Of sums of floats, remember that their result depends on the order of the threads.
//!
//! In the simulator these are the CPU's atomics, whatever the scope: blocks run on several OS
//! threads at the same time. The threads of one block take turns, though: a thread that waits in
//! a loop for another thread of its block must let it run, with
//! [`nanosleep`](crate::thread::nanosleep).
//!
//! ```
//! use cuda_std::atomic::{AtomicF32, Ordering};
//! use cuda_std::prelude::*;
//!
//! /// Adds the elements of `values` to `sum`.
//! ///
//! /// # Safety
//! ///
//! /// `sum` points to a float that nothing else accesses during the launch.
//! #[kernel]
//! pub unsafe fn add_up(values: &[f32], sum: *mut f32) {
//!     let sum = unsafe { AtomicF32::from_ptr(sum) };
//!     if let Some(&value) = values.get(thread::index_1d() as usize) {
//!         sum.fetch_add(value, Ordering::Relaxed);
//!     }
//! }
//! ```

pub mod mid;

#[cfg(cuda_device)]
mod device;
mod operations;
#[cfg(not(cuda_device))]
mod simulated;
mod types;

pub use core::sync::atomic::Ordering;
pub use types::{
    AtomicF32, AtomicF64, AtomicI32, AtomicI64, AtomicU32, AtomicU64, BlockAtomicF32,
    BlockAtomicF64, BlockAtomicI32, BlockAtomicI64, BlockAtomicU32, BlockAtomicU64,
    SystemAtomicF32, SystemAtomicF64, SystemAtomicI32, SystemAtomicI64, SystemAtomicU32,
    SystemAtomicU64,
};
