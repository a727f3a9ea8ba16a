//! Atomic integers and floats. All operations on a float but sums are operations on its bits.

use core::cell::UnsafeCell;
use core::convert::identity;
use core::ops::Neg;

use super::Ordering;
use super::operations::{Block, Device, Float, Integer, System};

/// Defines the atomic types of one scope. The operations of a scope that leaves threads out are
/// unsafe.
macro_rules! atomics {
    (
        $scope:ident, $threads:literal, $safety:tt,
        $($name:ident: $number:ident, $align:literal $(, $bits:ident)?;)*
    ) => {
        $(
            #[doc = concat!(
                "An `", stringify!($number), "` that is atomic for the threads of ", $threads, "."
            )]
            ///
            /// It has the number's layout in memory, aligned to its size.
            #[repr(C, align($align))]
            #[derive(Debug, Default)]
            pub struct $name {
                value: UnsafeCell<$number>,
            }

            // SAFETY: shared, it is accessed by atomic operations only; where their scope leaves
            // threads out, the caller vouches for those.
            unsafe impl Sync for $name {}

            atomics! { @kind $name, $scope, $safety, $number $(, $bits)? }
        )*
    };
    (@kind $name:ident, $scope:ident, $safety:tt, $integer:ident) => {
        atomics! {
            @common $name, $scope, $safety, $integer, $integer, identity, identity, Integer,
            $integer::wrapping_neg
        }
        atomics! { @integer $name, $scope, $safety, $integer }
    };
    (@kind $name:ident, $scope:ident, $safety:tt, $float:ident, $bits:ident) => {
        atomics! {
            @common $name, $scope, $safety, $float, $bits, $float::to_bits, $float::from_bits,
            Float, $float::neg
        }
    };
    (
        @common $name:ident, $scope:ident, [$($unsafe:ident $safety:literal)?], $number:ident,
        $bits:ident, $to_bits:expr, $from_bits:expr, $sum:ident, $negate:expr
    ) => {
        impl $name {
            /// An atomic that holds `value`.
            #[inline(always)]
            pub const fn new(value: $number) -> Self {
                Self { value: UnsafeCell::new(value) }
            }

            /// The number at `pointer` as an atomic.
            ///
            /// # Safety
            ///
            /// The pointer is valid for reads and writes, and aligned to the number's size, as
            /// long as the reference is used; meanwhile all accesses are atomic ones.
            #[inline(always)]
            pub const unsafe fn from_ptr<'a>(pointer: *mut $number) -> &'a Self {
                // SAFETY: the representations are the same; the caller vouches for the rest.
                unsafe { &*pointer.cast::<Self>() }
            }

            /// A pointer to the number.
            #[inline(always)]
            pub const fn as_ptr(&self) -> *mut $number {
                self.value.get()
            }

            /// The number, of which there is no other reference.
            #[inline(always)]
            pub fn get_mut(&mut self) -> &mut $number {
                self.value.get_mut()
            }

            /// The number.
            #[inline(always)]
            pub fn into_inner(self) -> $number {
                self.value.into_inner()
            }

            /// Reads the number.
            ///
            /// # Panics
            ///
            /// If `order` is `Release` or `AcqRel`.
            $(#[doc = $safety])?
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub $($unsafe)? fn load(&self, order: Ordering) -> $number {
                // SAFETY: the pointer is to `self`; see `Sync` for other threads.
                $from_bits(unsafe { <$scope as Integer<$bits>>::load(self.as_ptr().cast(), order) })
            }

            /// Writes the number.
            ///
            /// # Panics
            ///
            /// If `order` is `Acquire` or `AcqRel`.
            $(#[doc = $safety])?
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub $($unsafe)? fn store(&self, value: $number, order: Ordering) {
                let (pointer, bits) = (self.as_ptr().cast(), $to_bits(value));
                // SAFETY: as for `load`.
                unsafe { <$scope as Integer<$bits>>::store(pointer, bits, order) }
            }

            /// Adds, an integer modulo 2 to the power of its bits, a float rounding to nearest;
            /// returns the number before that.
            $(#[doc = $safety])?
            #[inline(always)]
            pub $($unsafe)? fn fetch_add(&self, value: $number, order: Ordering) -> $number {
                // SAFETY: as for `load`.
                unsafe { <$scope as $sum<$number>>::add(self.as_ptr(), value, order) }
            }

            /// Subtracts as [`Self::fetch_add`] adds; returns the number before that.
            $(#[doc = $safety])?
            #[inline(always)]
            pub $($unsafe)? fn fetch_sub(&self, value: $number, order: Ordering) -> $number {
                // SAFETY: as for `load`.
                unsafe { <$scope as $sum<$number>>::add(self.as_ptr(), $negate(value), order) }
            }
        }

        atomics! {
            @updates $name,
            [$scope, [$($unsafe $safety)?], $number, $bits, $to_bits, $from_bits],
            "Stores `value`; returns the number before that.", swap = swap;
            "Bitwise \"and\"; returns the number before that.", fetch_and = and;
            "Bitwise \"or\"; returns the number before that.", fetch_or = or;
            "Bitwise \"exclusive or\"; returns the number before that.", fetch_xor = xor;
        }
    };
    (@integer $name:ident, $scope:ident, [$($unsafe:ident $safety:literal)?], $integer:ident) => {
        impl $name {
            /// Stores `new` if the integer is `current`, and gives what it was: `Ok` if `new`
            /// was stored.
            ///
            /// # Panics
            ///
            /// If `failure` is `Release` or `AcqRel`.
            $(#[doc = $safety])?
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub $($unsafe)? fn compare_exchange(
                &self,
                current: $integer,
                new: $integer,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$integer, $integer> {
                // SAFETY: as for `load`.
                let old = unsafe {
                    <$scope as Integer<$integer>>::compare_exchange(
                        self.as_ptr(), current, new, success, failure,
                    )
                };
                if old == current { Ok(old) } else { Err(old) }
            }
        }

        atomics! {
            @updates $name,
            [$scope, [$($unsafe $safety)?], $integer, $integer, identity, identity],
            "Stores the lesser of the two; returns the integer before that.", fetch_min = min;
            "Stores the greater of the two; returns the integer before that.", fetch_max = max;
        }
    };
    (@updates $name:ident, $types:tt, $($doc:literal, $function:ident = $operation:ident;)*) => {
        impl $name {
            $(atomics! { @update $types, $doc, $function = $operation })*
        }
    };
    (
        @update [
            $scope:ident, [$($unsafe:ident $safety:literal)?], $number:ident, $bits:ident,
            $to_bits:expr, $from_bits:expr
        ],
        $doc:literal, $function:ident = $operation:ident
    ) => {
        #[doc = $doc]
        $(#[doc = $safety])?
        #[inline(always)]
        pub $($unsafe)? fn $function(&self, value: $number, order: Ordering) -> $number {
            let (pointer, bits) = (self.as_ptr().cast(), $to_bits(value));
            // SAFETY: as for `load`.
            $from_bits(unsafe { <$scope as Integer<$bits>>::$operation(pointer, bits, order) })
        }
    };
}

atomics! {
    Block, "one block",
    [unsafe "\n# Safety\n\nWhile another thread may access the number, it is one of the same block."],
    BlockAtomicU32: u32, 4;
    BlockAtomicI32: i32, 4;
    BlockAtomicU64: u64, 8;
    BlockAtomicI64: i64, 8;
    BlockAtomicF32: f32, 4, u32;
    BlockAtomicF64: f64, 8, u64;
}

atomics! {
    Device, "one GPU", [],
    AtomicU32: u32, 4;
    AtomicI32: i32, 4;
    AtomicU64: u64, 8;
    AtomicI64: i64, 8;
    AtomicF32: f32, 4, u32;
    AtomicF64: f64, 8, u64;
}

atomics! {
    System, "all GPUs and of the host", [],
    SystemAtomicU32: u32, 4;
    SystemAtomicI32: i32, 4;
    SystemAtomicU64: u64, 8;
    SystemAtomicI64: i64, 8;
    SystemAtomicF32: f32, 4, u32;
    SystemAtomicF64: f64, 8, u64;
}
