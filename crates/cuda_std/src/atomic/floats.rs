//! Atomic floats. All but sums are operations on the float's bits.

use core::cell::UnsafeCell;

use super::Ordering;
use super::operations::{Block, Device, Float, Integer, System};

/// Defines an atomic float of each type for one scope. The operations of a scope that leaves
/// threads out are unsafe.
macro_rules! atomic_floats {
    (
        $scope:ident, $threads:literal, $safety:tt,
        $($name:ident: $float:ty, $bits:ty, $align:literal;)*
    ) => {
        $(atomic_floats!(@one $scope, $threads, $safety, $name, $float, $bits, $align);)*
    };
    (
        @one $scope:ident, $threads:literal, [$($unsafe:ident $safety:literal)?],
        $name:ident, $float:ty, $bits:ty, $align:literal
    ) => {
        #[doc = concat!(
            "An `", stringify!($float), "` that is atomic for the threads of ", $threads, "."
        )]
        ///
        /// It lies in memory as the float does, aligned to its size.
        #[repr(C, align($align))]
        #[derive(Debug, Default)]
        pub struct $name {
            value: UnsafeCell<$float>,
        }

        // SAFETY: shared, it is accessed by atomic operations only; where their scope leaves
        // threads out, the caller vouches for those.
        unsafe impl Sync for $name {}

        impl $name {
            /// An atomic that holds `value`.
            #[inline(always)]
            pub const fn new(value: $float) -> Self {
                Self { value: UnsafeCell::new(value) }
            }

            /// The float at `pointer` as an atomic.
            ///
            /// # Safety
            ///
            /// The pointer is valid for reads and writes, and aligned to the float's size, as
            /// long as the reference is used; meanwhile all accesses are atomic ones.
            #[inline(always)]
            pub const unsafe fn from_ptr<'a>(pointer: *mut $float) -> &'a Self {
                // SAFETY: the representations are the same; the caller vouches for the rest.
                unsafe { &*pointer.cast::<Self>() }
            }

            /// A pointer to the float.
            #[inline(always)]
            pub const fn as_ptr(&self) -> *mut $float {
                self.value.get()
            }

            /// The float, of which there is no other reference.
            #[inline(always)]
            pub fn get_mut(&mut self) -> &mut $float {
                self.value.get_mut()
            }

            /// The float.
            #[inline(always)]
            pub fn into_inner(self) -> $float {
                self.value.into_inner()
            }

            /// Reads the float.
            ///
            /// # Panics
            ///
            /// If `order` is `Release` or `AcqRel`.
            $(#[doc = $safety])?
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub $($unsafe)? fn load(&self, order: Ordering) -> $float {
                // SAFETY: the pointer is to `self`; see `Sync` for other threads.
                let bits = unsafe {
                    <$scope as Integer<$bits>>::load(self.as_ptr().cast(), order)
                };
                <$float>::from_bits(bits)
            }

            /// Writes the float.
            ///
            /// # Panics
            ///
            /// If `order` is `Acquire` or `AcqRel`.
            $(#[doc = $safety])?
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub $($unsafe)? fn store(&self, value: $float, order: Ordering) {
                let bits = value.to_bits();
                // SAFETY: as for `load`.
                unsafe {
                    <$scope as Integer<$bits>>::store(self.as_ptr().cast(), bits, order)
                }
            }

            /// Adds, rounding to nearest; returns the float before that.
            $(#[doc = $safety])?
            #[inline(always)]
            pub $($unsafe)? fn fetch_add(&self, value: $float, order: Ordering) -> $float {
                // SAFETY: as for `load`.
                unsafe { <$scope as Float<$float>>::add(self.as_ptr(), value, order) }
            }

            /// Subtracts, rounding to nearest; returns the float before that.
            $(#[doc = $safety])?
            #[inline(always)]
            pub $($unsafe)? fn fetch_sub(&self, value: $float, order: Ordering) -> $float {
                // SAFETY: as for `load`.
                unsafe { <$scope as Float<$float>>::add(self.as_ptr(), -value, order) }
            }

            atomic_floats! {
                @updates $scope, $float, $bits, [$($unsafe $safety)?],
                "Stores `value`; returns the float before that.",
                swap = swap;
                "Bitwise \"and\" of the bits of the floats; returns the float before that.",
                fetch_and = and;
                "Bitwise \"or\" of the bits of the floats; returns the float before that.",
                fetch_or = or;
                "Bitwise \"exclusive or\" of the bits of the floats; returns the float before that.",
                fetch_xor = xor;
            }
        }
    };
    (
        @updates $scope:ident, $float:ty, $bits:ty, [],
        $($doc:literal, $name:ident = $operation:ident;)*
    ) => {
        $(
            #[doc = $doc]
            #[inline(always)]
            pub fn $name(&self, value: $float, order: Ordering) -> $float {
                let (pointer, bits) = (self.as_ptr().cast(), value.to_bits());
                // SAFETY: as for `load`.
                let old = unsafe { <$scope as Integer<$bits>>::$operation(pointer, bits, order) };
                <$float>::from_bits(old)
            }
        )*
    };
    (
        @updates $scope:ident, $float:ty, $bits:ty, [unsafe $safety:literal],
        $($doc:literal, $name:ident = $operation:ident;)*
    ) => {
        $(
            #[doc = $doc]
            #[doc = $safety]
            #[inline(always)]
            pub unsafe fn $name(&self, value: $float, order: Ordering) -> $float {
                let (pointer, bits) = (self.as_ptr().cast(), value.to_bits());
                // SAFETY: as for `load`.
                let old = unsafe { <$scope as Integer<$bits>>::$operation(pointer, bits, order) };
                <$float>::from_bits(old)
            }
        )*
    };
}

atomic_floats! {
    Block, "one block",
    [unsafe "\n# Safety\n\nWhile another thread may access the float, it is one of the same block."],
    BlockAtomicF32: f32, u32, 4;
    BlockAtomicF64: f64, u64, 8;
}

atomic_floats! {
    Device, "one GPU", [],
    AtomicF32: f32, u32, 4;
    AtomicF64: f64, u64, 8;
}

atomic_floats! {
    System, "all GPUs and of the host", [],
    SystemAtomicF32: f32, u32, 4;
    SystemAtomicF64: f64, u64, 8;
}
