//! Atomic integers.

use core::cell::UnsafeCell;

use super::Ordering;
use super::operations::{Block, Device, Integer, System};

/// Defines an atomic integer of each type for one scope. The operations of a scope that leaves
/// threads out are unsafe.
macro_rules! atomic_integers {
    (
        $scope:ident, $threads:literal, $safety:tt,
        $($name:ident: $integer:ty, $align:literal;)*
    ) => {
        $(atomic_integers!(@one $scope, $threads, $safety, $name, $integer, $align);)*
    };
    (
        @one $scope:ident, $threads:literal, [$($unsafe:ident $safety:literal)?],
        $name:ident, $integer:ty, $align:literal
    ) => {
        #[doc = concat!(
            "An `", stringify!($integer), "` that is atomic for the threads of ", $threads, "."
        )]
        ///
        /// It lies in memory as the integer does, aligned to its size.
        #[repr(C, align($align))]
        #[derive(Debug, Default)]
        pub struct $name {
            value: UnsafeCell<$integer>,
        }

        // SAFETY: shared, it is accessed by atomic operations only; where their scope leaves
        // threads out, the caller vouches for those.
        unsafe impl Sync for $name {}

        impl $name {
            /// An atomic that holds `value`.
            #[inline(always)]
            pub const fn new(value: $integer) -> Self {
                Self { value: UnsafeCell::new(value) }
            }

            /// The integer at `pointer` as an atomic.
            ///
            /// # Safety
            ///
            /// The pointer is valid for reads and writes, and aligned to the integer's size,
            /// as long as the reference is used; meanwhile all accesses are atomic ones.
            #[inline(always)]
            pub const unsafe fn from_ptr<'a>(pointer: *mut $integer) -> &'a Self {
                // SAFETY: the representations are the same; the caller vouches for the rest.
                unsafe { &*pointer.cast::<Self>() }
            }

            /// A pointer to the integer.
            #[inline(always)]
            pub const fn as_ptr(&self) -> *mut $integer {
                self.value.get()
            }

            /// The integer, of which there is no other reference.
            #[inline(always)]
            pub fn get_mut(&mut self) -> &mut $integer {
                self.value.get_mut()
            }

            /// The integer.
            #[inline(always)]
            pub fn into_inner(self) -> $integer {
                self.value.into_inner()
            }

            /// Reads the integer.
            ///
            /// # Panics
            ///
            /// If `order` is `Release` or `AcqRel`.
            $(#[doc = $safety])?
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub $($unsafe)? fn load(&self, order: Ordering) -> $integer {
                // SAFETY: the pointer is to `self`; see `Sync` for other threads.
                unsafe { <$scope as Integer<$integer>>::load(self.as_ptr(), order) }
            }

            /// Writes the integer.
            ///
            /// # Panics
            ///
            /// If `order` is `Acquire` or `AcqRel`.
            $(#[doc = $safety])?
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub $($unsafe)? fn store(&self, value: $integer, order: Ordering) {
                // SAFETY: as for `load`.
                unsafe { <$scope as Integer<$integer>>::store(self.as_ptr(), value, order) }
            }

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

            /// Subtracts, modulo 2 to the power of the integer's bits; returns the integer
            /// before that.
            $(#[doc = $safety])?
            #[inline(always)]
            pub $($unsafe)? fn fetch_sub(&self, value: $integer, order: Ordering) -> $integer {
                let value = value.wrapping_neg();
                // SAFETY: as for `load`.
                unsafe { <$scope as Integer<$integer>>::add(self.as_ptr(), value, order) }
            }

            atomic_integers! {
                @updates $scope, $integer, [$($unsafe $safety)?],
                "Stores `value`; returns the integer before that.",
                swap = swap;
                "Adds, modulo 2 to the power of the integer's bits; returns the integer before that.",
                fetch_add = add;
                "Bitwise \"and\"; returns the integer before that.",
                fetch_and = and;
                "Bitwise \"or\"; returns the integer before that.",
                fetch_or = or;
                "Bitwise \"exclusive or\"; returns the integer before that.",
                fetch_xor = xor;
                "Stores the lesser of the two; returns the integer before that.",
                fetch_min = min;
                "Stores the greater of the two; returns the integer before that.",
                fetch_max = max;
            }
        }
    };
    (@updates $scope:ident, $integer:ty, [], $($doc:literal, $name:ident = $operation:ident;)*) => {
        $(
            #[doc = $doc]
            #[inline(always)]
            pub fn $name(&self, value: $integer, order: Ordering) -> $integer {
                // SAFETY: as for `load`.
                unsafe { <$scope as Integer<$integer>>::$operation(self.as_ptr(), value, order) }
            }
        )*
    };
    (
        @updates $scope:ident, $integer:ty, [unsafe $safety:literal],
        $($doc:literal, $name:ident = $operation:ident;)*
    ) => {
        $(
            #[doc = $doc]
            #[doc = $safety]
            #[inline(always)]
            pub unsafe fn $name(&self, value: $integer, order: Ordering) -> $integer {
                // SAFETY: as for `load`.
                unsafe { <$scope as Integer<$integer>>::$operation(self.as_ptr(), value, order) }
            }
        )*
    };
}

atomic_integers! {
    Block, "one block",
    [unsafe "\n# Safety\n\nWhile another thread may access the integer, it is one of the same block."],
    BlockAtomicU32: u32, 4;
    BlockAtomicI32: i32, 4;
    BlockAtomicU64: u64, 8;
    BlockAtomicI64: i64, 8;
}

atomic_integers! {
    Device, "one GPU", [],
    AtomicU32: u32, 4;
    AtomicI32: i32, 4;
    AtomicU64: u64, 8;
    AtomicI64: i64, 8;
}

atomic_integers! {
    System, "all GPUs and of the host", [],
    SystemAtomicU32: u32, 4;
    SystemAtomicI32: i32, 4;
    SystemAtomicU64: u64, 8;
    SystemAtomicI64: i64, 8;
}
