//! Atomic operations as PTX: `atom`, `ld` and `st` with an ordering and a scope.
//!
//! PTX has no ordering like `SeqCst`. As in CUDA C++, such an access is one that acquires or
//! releases, behind a `fence.sc`.

use core::arch::asm;

use super::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use super::operations::{Block, Device, Fence, Float, Integer, System};

/// Defines everything for one scope, which PTX calls `$scope`.
macro_rules! scope {
    ($name:ident, $scope:literal) => {
        impl Fence for $name {
            #[inline(always)]
            fn fence(order: Ordering) {
                // SAFETY: it touches nothing.
                unsafe {
                    match order {
                        Relaxed => {}
                        SeqCst => asm!(
                            concat!("fence.sc.", $scope, ";"),
                            options(nostack, preserves_flags)
                        ),
                        _ => asm!(
                            concat!("fence.acq_rel.", $scope, ";"),
                            options(nostack, preserves_flags)
                        ),
                    }
                }
            }
        }

        integer!($name, $scope, u32, ":e", "b32", "u32", "u32");
        integer!($name, $scope, i32, ":e", "b32", "s32", "s32");
        integer!($name, $scope, u64, ":r", "b64", "u64", "u64");
        integer!($name, $scope, i64, ":r", "b64", "u64", "s64");
        float!($name, $scope, f32, "f32");
        float!($name, $scope, f64, "f64");
    };
}

/// Implements the operations on one type of integer. `$register` names its part of a register of
/// the host, which rustc requires; PTX calls the type `$bits`, in a sum `$sum`, in a comparison
/// `$number`.
macro_rules! integer {
    (
        $name:ident, $scope:literal, $ty:ty,
        $register:literal, $bits:literal, $sum:literal, $number:literal
    ) => {
        impl Integer<$ty> for $name {
            #[inline(always)]
            unsafe fn load(pointer: *mut $ty, order: Ordering) -> $ty {
                if order == SeqCst {
                    Self::fence(SeqCst);
                }
                // SAFETY: the caller vouches for the pointer.
                unsafe {
                    match order {
                        Relaxed => load!("relaxed", $scope, $bits, $register, pointer),
                        Acquire | SeqCst => load!("acquire", $scope, $bits, $register, pointer),
                        _ => panic!("a load cannot release"),
                    }
                }
            }

            #[inline(always)]
            unsafe fn store(pointer: *mut $ty, value: $ty, order: Ordering) {
                if order == SeqCst {
                    Self::fence(SeqCst);
                }
                // SAFETY: the caller vouches for the pointer.
                unsafe {
                    match order {
                        Relaxed => store!("relaxed", $scope, $bits, $register, pointer, value),
                        Release | SeqCst => {
                            store!("release", $scope, $bits, $register, pointer, value)
                        }
                        _ => panic!("a store cannot acquire"),
                    }
                }
            }

            #[inline(always)]
            unsafe fn compare_exchange(
                pointer: *mut $ty,
                expected: $ty,
                new: $ty,
                success: Ordering,
                failure: Ordering,
            ) -> $ty {
                let order = match (success, failure) {
                    (_, SeqCst) => SeqCst,
                    (Relaxed, Acquire) => Acquire,
                    (Release, Acquire) => AcqRel,
                    _ => success,
                };
                // SAFETY: the caller vouches for the pointer.
                unsafe {
                    atom!(
                        order,
                        $name,
                        $scope,
                        concat!("cas.", $bits),
                        reg,
                        $register,
                        pointer,
                        expected,
                        new
                    )
                }
            }

            updates! {
                $name, $scope, $ty, reg, $register,
                swap = "exch.", $bits;
                add = "add.", $sum;
                and = "and.", $bits;
                or = "or.", $bits;
                xor = "xor.", $bits;
                min = "min.", $number;
                max = "max.", $number;
            }
        }
    };
}

macro_rules! float {
    ($name:ident, $scope:literal, $ty:ty, $number:literal) => {
        impl Float<$ty> for $name {
            updates! { $name, $scope, $ty, xmm_reg, "", add = "add.", $number; }
        }
    };
}

/// Defines read-modify-writes with one operand: PTX's operation, and how it calls the type.
macro_rules! updates {
    (
        $name:ident, $scope:literal, $ty:ty, $class:ident, $register:literal,
        $($function:ident = $operation:literal, $type:literal;)*
    ) => {
        $(
            #[inline(always)]
            unsafe fn $function(pointer: *mut $ty, value: $ty, order: Ordering) -> $ty {
                // SAFETY: the caller vouches for the pointer.
                unsafe {
                    atom!(
                        order, $name, $scope, concat!($operation, $type), $class, $register,
                        pointer, value
                    )
                }
            }
        )*
    };
}

/// An `atom` under an ordering that is known once the function is inlined. The four texts differ,
/// so that `device_codegen` does not take them for copies of one.
macro_rules! atom {
    ($order:expr, $name:ident, $($what:tt)*) => {{
        if $order == SeqCst {
            $name::fence(SeqCst);
        }
        match $order {
            Relaxed => atom_of!("relaxed", $($what)*),
            Acquire => atom_of!("acquire", $($what)*),
            Release => atom_of!("release", $($what)*),
            _ => atom_of!("acq_rel", $($what)*),
        }
    }};
}

macro_rules! atom_of {
    (
        $order:literal, $scope:literal, $operation:expr, $class:ident, $register:literal,
        $pointer:ident, $($value:ident),*
    ) => {{
        let old;
        asm!(
            concat!(
                "atom.", $order, ".", $scope, ".", $operation, " {old", $register, "}, [{pointer}]",
                $(", {", stringify!($value), $register, "}",)* ";"
            ),
            old = out($class) old, pointer = in(reg) $pointer, $($value = in($class) $value,)*
            options(nostack, preserves_flags)
        );
        old
    }};
}

macro_rules! load {
    ($order:literal, $scope:literal, $bits:literal, $register:literal, $pointer:ident) => {{
        let value;
        asm!(
            concat!("ld.", $order, ".", $scope, ".", $bits, " {value", $register, "}, [{pointer}];"),
            value = out(reg) value, pointer = in(reg) $pointer,
            options(nostack, preserves_flags)
        );
        value
    }};
}

macro_rules! store {
    (
        $order:literal, $scope:literal, $bits:literal, $register:literal,
        $pointer:ident, $value:ident
    ) => {
        asm!(
            concat!("st.", $order, ".", $scope, ".", $bits, " [{pointer}], {value", $register, "};"),
            pointer = in(reg) $pointer, value = in(reg) $value,
            options(nostack, preserves_flags)
        )
    };
}

scope!(Block, "cta");
scope!(Device, "gpu");
scope!(System, "sys");
