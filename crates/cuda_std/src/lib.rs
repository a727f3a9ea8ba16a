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
//!   wrapper around a GPU instruction that `device_codegen` fills in;
//! * without it: ordinary Rust for this machine, where the `simulator` module runs a launch
//!   thread by thread.
//!
//! Names and meanings are those of rust-cuda's `cuda_std` 0.2, so that a kernel written for one
//! compiles with the other: [`atomic`], [`cfg`](mod@cfg), [`GpuFloat`] and [`FloatExt`],
//! [`intrinsics`], [`io`], [`mem`], [`misc`], [`ptr`], [`shared`], [`thread`] and [`warp`]. In
//! addition to 0.2 there are atomic integers, launch bounds, clusters and instances of generic
//! kernels as arguments of [`#[kernel]`](kernel), [`unroll`](fn@unroll), shuffles, votes, matches
//! and reductions of a warp, reductions of a block ([`block`]), tensor cores ([`mma`],
//! [`wgmma`]), asynchronous copies ([`pipeline`], [`tma`]), barriers for them ([`mbarrier`]),
//! 16-byte accesses and read-only loads ([`global`]), and kernels that begin before the previous
//! kernel has ended ([`grid_dependency`]).
//!
//! What `cuda_std` 0.2.2 has and this crate has not, or has otherwise:
//!
//! | name | here | why |
//! | --- | --- | --- |
//! | `vek`, and its vectors as indices | [`Vec2`] and [`Vec3`], which turn `into` `glam`'s | later versions have replaced it by `glam` |
//! | `half`, `f16`, `bf16` | with the feature `half` | most kernels do not need the dependency |
//! | `glam` (later versions) | with the feature `glam` | the same |
//! | `prelude::assert_eq`, `prelude::assert_ne` | [`assert_eq!`] and [`assert_ne!`], imported by name | `core` has macros of these names in scope: a glob import is ambiguous |
//! | `prelude::print`, `prelude::println` | on a GPU only | the same, for `std` in the simulator |
//! | `prelude::format` | [`print!`] formats at compile time | the code of `core::fmt` is not available on the device, so `to_string` of numbers is not either |
//! | `atomic::intrinsics`, and `atomic_*` of `atomic::mid` | methods of the types in [`atomic`] | one function for each operation, type, scope and ordering: what the methods are made of |
//! | `intrinsics::float2half_rn`, `intrinsics::half2float` | `half::f16` | they take the bits as `i16` |
//! | `intrinsics::nan`, `intrinsics::nanf` | `f64::from_bits` | they read a text on the device |
//! | `#[address_space(local)]` | variables | a static cannot be in the memory of one thread |
//! | `mem::GLOBAL_ALLOCATOR` | in the simulator, not the allocator of `Box` | the host's program has its own |
//!
//! # Features
//!
//! `half` adds the 16-bit floats `f16` and `bf16` and shuffles of them (the `f16` of Rust itself
//! needs a nightly compiler), and pairs, `f16x2` and `bf16x2`, that one instruction multiplies and
//! adds. On a GPU its f16 is converted, added, subtracted and multiplied by the hardware, and
//! `bf16::from_f32` is one instruction from compute capability 8.0 on. Results are rounded as IEEE
//! 754 says, subnormal ones too; which NaN comes out is not promised. `f16::from_f64` rounds to f32
//! first, as it does on x86 processors with F16C. `bf16::from_f64` ignores the lower 32 bits, as no
//! instruction does, so it is as long as on a CPU. A bf16 becomes an f32 by a shift. `glam` adds
//! vectors and matrices, without SIMD as a GPU has none. Neither is on by default.

#![cfg_attr(cuda_device, no_std)]

extern crate alloc;
// The macros refer to this crate by name, also in its own tests.
extern crate self as cuda_std;

pub mod approx;
pub mod atomic;
pub mod block;
mod by_architecture;
pub mod cfg;
pub mod cluster;
mod device_only;
mod entry_point;
pub mod float;
mod float_ext;
pub mod global;
pub mod grid_dependency;
pub mod intrinsics;
pub mod io;
pub mod mbarrier;
pub mod mem;
pub mod misc;
pub mod mma;
#[cfg(feature = "half")]
mod pair;
#[cfg(not(cuda_device))]
pub mod panic_record;
mod parameter;
pub mod pipeline;
pub mod ptr;
pub mod shared;
pub mod thread;
pub mod tma;
mod unroll;
mod vector;
pub mod warp;
pub mod wgmma;

/// Restricts traits to the types for which this crate implements them.
mod sealed {
    pub trait Sealed {}

    macro_rules! seal {
        ($($ty:ty)*) => { $(impl Sealed for $ty {})* };
    }
    seal!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 bool &str);
    #[cfg(feature = "half")]
    seal!(half::f16 half::bf16 crate::f16x2 crate::bf16x2);
}

#[cfg(cuda_device)]
mod device;
#[cfg(not(cuda_device))]
pub mod simulator;

pub use cuda_std_macros::{address_space, externally_visible, gpu_only, kernel, print, println};
pub use entry_point::launch_bounds;
#[doc(hidden)]
pub use entry_point::{__assert_constant, __cluster_dim, __max_registers};
pub use float::GpuFloat;
pub use float_ext::FloatExt;
#[cfg(feature = "glam")]
pub use glam;
#[cfg(feature = "half")]
pub use half::{self, bf16, f16};
#[cfg(feature = "half")]
pub use pair::{bf16x2, f16x2};
pub use parameter::KernelParameter;
#[cfg(cuda_device)]
#[doc(hidden)]
pub use parameter::passing::{ByValue as __ByValue, Pass as __Pass, Way as __Way};
#[doc(hidden)]
pub use parameter::{__check_kernel_parameter, __check_kernel_parameter_type, __grid_constant};
pub use unroll::{Unroll, unroll, unroll_u32};
pub use vector::{Vec2, Vec3};

/// The items that nearly every kernel uses.
///
/// On a GPU that includes [`print!`] and [`println!`]. On a CPU the `print!` and `println!` of
/// `std` are in scope already, and a second pair would be ambiguous. Import `cuda_std::println`
/// by name if the simulator is to print exactly what a GPU prints, and the compiler is to reject
/// what a GPU cannot print.
pub mod prelude {
    #[cfg(feature = "half")]
    pub use crate::f16;
    pub use crate::{kernel, thread};
    #[cfg(cuda_device)]
    pub use crate::{print, println};
    pub use alloc::{
        borrow::ToOwned,
        boxed::Box,
        rc::Rc,
        string::{String, ToString},
        vec::Vec,
    };
}
