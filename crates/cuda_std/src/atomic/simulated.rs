//! Atomic operations of the simulator: the CPU's, which every scope includes.

use std::sync::atomic::{self, AtomicI32, AtomicI64, AtomicU32, AtomicU64};

use super::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use super::operations::{Block, Device, Fence, Float, Integer, System};

/// A scope.
trait Scope {}
impl Scope for Block {}
impl Scope for Device {}
impl Scope for System {}

impl<S: Scope> Fence for S {
    fn fence(order: Ordering) {
        if order != Relaxed {
            atomic::fence(order);
        }
    }
}

macro_rules! integers {
    ($($ty:ty = $atomic:ident;)*) => {
        $(
            impl<S: Scope> Integer<$ty> for S {
                #[track_caller]
                unsafe fn load(pointer: *mut $ty, order: Ordering) -> $ty {
                    // SAFETY: the caller vouches for the pointer.
                    unsafe { $atomic::from_ptr(pointer) }.load(order)
                }

                #[track_caller]
                unsafe fn store(pointer: *mut $ty, value: $ty, order: Ordering) {
                    // SAFETY: as above.
                    unsafe { $atomic::from_ptr(pointer) }.store(value, order);
                }

                #[track_caller]
                unsafe fn compare_exchange(
                    pointer: *mut $ty,
                    expected: $ty,
                    new: $ty,
                    success: Ordering,
                    failure: Ordering,
                ) -> $ty {
                    // SAFETY: as above.
                    let number = unsafe { $atomic::from_ptr(pointer) };
                    let (Ok(old) | Err(old)) =
                        number.compare_exchange(expected, new, success, failure);
                    old
                }

                integers!(@update $ty, $atomic, swap = swap);
                integers!(@update $ty, $atomic, add = fetch_add);
                integers!(@update $ty, $atomic, and = fetch_and);
                integers!(@update $ty, $atomic, or = fetch_or);
                integers!(@update $ty, $atomic, xor = fetch_xor);
                integers!(@update $ty, $atomic, min = fetch_min);
                integers!(@update $ty, $atomic, max = fetch_max);
            }
        )*
    };
    (@update $ty:ty, $atomic:ident, $name:ident = $of_std:ident) => {
        unsafe fn $name(pointer: *mut $ty, value: $ty, order: Ordering) -> $ty {
            // SAFETY: as above.
            unsafe { $atomic::from_ptr(pointer) }.$of_std(value, order)
        }
    };
}

integers! {
    u32 = AtomicU32;
    i32 = AtomicI32;
    u64 = AtomicU64;
    i64 = AtomicI64;
}

macro_rules! floats {
    ($($ty:ty = $atomic:ident;)*) => {
        $(
            impl<S: Scope> Float<$ty> for S {
                unsafe fn add(pointer: *mut $ty, value: $ty, order: Ordering) -> $ty {
                    // SAFETY: as above; a float is aligned as its bits are.
                    let bits = unsafe { $atomic::from_ptr(pointer.cast()) };
                    let sum = |old| Some((<$ty>::from_bits(old) + value).to_bits());
                    let (Ok(old) | Err(old)) = bits.fetch_update(order, of_the_load(order), sum);
                    <$ty>::from_bits(old)
                }
            }
        )*
    };
}

floats! {
    f32 = AtomicU32;
    f64 = AtomicU64;
}

/// The ordering of the load that belongs to an operation of this ordering.
fn of_the_load(order: Ordering) -> Ordering {
    match order {
        Acquire | AcqRel => Acquire,
        SeqCst => SeqCst,
        Relaxed | Release | _ => Relaxed,
    }
}
