//! Device library for GPU kernels in Rust, and a simulator that runs them on a CPU.
//!
//! A kernel is a function marked [`#[kernel]`](kernel). It runs once for each thread of a launch;
//! [`thread`] tells a thread which one it is and makes the threads of a block wait for each
//! other, [`shared_array!`] gives a block memory that its threads share, [`warp`] lets the 32
//! threads of a warp exchange registers.
//!
//! ```
//! use cuda_std::prelude::*;
//!
//! /// y += factor * x
//! ///
//! /// # Safety
//! ///
//! /// `y` holds as many elements as `x`.
//! #[kernel]
//! pub unsafe fn axpy(factor: f32, x: &[f32], y: *mut f32) {
//!     let i = thread::index_1d() as usize;
//!     if i < x.len() {
//!         unsafe { *y.add(i) += factor * x[i] };
//!     }
//! }
//! ```
//!
//! The crate is compiled in one of two ways, with the same meaning:
//!
//! * with `--cfg cuda_device`, as `cuda_builder` does: `no_std`, where every function is a thin
//!   wrapper around a GPU instruction that `nvvm_codegen` fills in;
//! * without it: ordinary Rust for this machine, where the `simulator` module runs a launch
//!   thread by thread.
//!
//! Names and meanings are those of rust-cuda's `cuda_std` 0.2, so that a kernel written for one
//! compiles with the other. The differences: vectors of indices are this crate's own [`Vec2`] and
//! [`Vec3`] instead of the `vek` crate's, there is no allocator on the device, and [`print!`]
//! formats at compile time. In addition to 0.2 there are launch bounds, [`unroll`](fn@unroll),
//! shuffles and votes, asynchronous copies ([`pipeline`]), 16-byte accesses ([`global`]), and
//! kernels that begin before the previous kernel has ended ([`grid_dependency`]).

#![cfg_attr(cuda_device, no_std)]

// The macros refer to this crate by name, also in its own tests.
extern crate self as cuda_std;

mod entry_point;
mod float;
pub mod global;
pub mod grid_dependency;
pub mod io;
pub mod pipeline;
pub mod shared;
pub mod thread;
mod unroll;
mod vector;
pub mod warp;

#[cfg(cuda_device)]
mod device;
#[cfg(not(cuda_device))]
pub mod simulator;

pub use cuda_std_macros::{address_space, kernel, print, println};
#[doc(hidden)]
pub use entry_point::{__check_kernel_parameter, __check_kernel_parameter_type};
pub use entry_point::{KernelParameter, launch_bounds};
pub use float::GpuFloat;
pub use unroll::{Unroll, unroll, unroll_u32};
pub use vector::{Vec2, Vec3};

/// The items that nearly every kernel uses.
///
/// On a GPU that includes [`print!`] and [`println!`]. On a CPU the `print!` and `println!` of
/// `std` are in scope already, and a second pair would be ambiguous. Import `cuda_std::println`
/// by name if the simulator is to print exactly what a GPU prints, and the compiler is to reject
/// what a GPU cannot print.
pub mod prelude {
    pub use crate::{kernel, thread};
    #[cfg(cuda_device)]
    pub use crate::{print, println};
}
