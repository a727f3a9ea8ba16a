//! The functions of NVIDIA's libdevice, as they are: `__nv_cospif` is [`cospif`].
//!
//! Most are better called by the methods of `f32` and `f64` ([`GpuFloat`](crate::GpuFloat) and
//! [`FloatExt`](crate::FloatExt)) and of the integers. What only this module has are the fast
//! functions of a few bits less, operations that round in another way, and odd integer
//! operations. Their accuracy is in the CUDA C++ Programming Guide, "Mathematical Functions".
//!
//! Each row of the tables in this module's files is a function: on the device it is libdevice's,
//! in the simulator it has the body that the row shows. Names and types are libdevice's: `f` for
//! `f32`, `ll` for 64 bits, `u` for integers that are meant to be unsigned although their type is
//! not, `_rn`, `_rz`, `_ru` and `_rd` for rounding to nearest, toward zero, up and down.

/// Defines functions of libdevice. The body is what they mean in the simulator.
macro_rules! libdevice {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $ty:ty),*) -> $result:ty $body:block)*) => {
        $(
            #[cfg(cuda_device)]
            unsafe extern "C" {
                $(#[$doc])*
                #[link_name = concat!("__nv_", stringify!($name))]
                pub safe fn $name($($argument: $ty),*) -> $result;
            }

            #[cfg(not(cuda_device))]
            $(#[$doc])*
            #[inline]
            pub fn $name($($argument: $ty),*) -> $result $body
        )*
    };
}

/// Defines functions of libdevice for `f64` and for `f32`, which in the simulator is the first
/// one's result, rounded.
macro_rules! for_both_types {
    ($(
        $(#[$doc:meta])*
        $double:ident $single:ident($($argument:ident $(: $ty:ty)?),*) $body:block
    )*) => {
        libdevice! {
            $(
                $(#[$doc])*
                fn $double($($argument: for_both_types!(@ty f64 $($ty)?)),*) -> f64 $body

                $(#[$doc])*
                fn $single($($argument: for_both_types!(@ty f32 $($ty)?)),*) -> f32 {
                    $(let $argument = for_both_types!(@widen $argument $($ty)?);)*
                    let result: f64 = $body;
                    result as f32
                }
            )*
        }
    };
    (@ty $float:ty) => { $float };
    (@ty f64 $ty:ty) => { $ty };
    (@ty f32 $ty:ty) => { $ty };
    (@widen $argument:ident) => { f64::from($argument) };
    (@widen $argument:ident $ty:ty) => { $argument };
}

mod bits;
mod integers;
mod maths;
mod pointers;
mod rounded;
#[cfg(not(cuda_device))]
mod rounding;
#[cfg(not(cuda_device))]
mod simulated;

pub use bits::*;
pub use integers::*;
pub use maths::*;
pub use pointers::*;
pub use rounded::*;
