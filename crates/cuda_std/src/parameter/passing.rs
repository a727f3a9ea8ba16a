//! How a kernel's entry point on a GPU receives its parameters.
//!
//! The entry point is an ordinary Rust function, and rustc decides how its parameters look in
//! LLVM IR: as a number or a pointer, if that is what they are, and otherwise in ways that suit a
//! CPU. So a parameter of any other type is declared as a reference, and a mark tells
//! `device_codegen` that the launch passes what it refers to.

use core::marker::PhantomData;

/// Tells how a launch passes a `T`: `<Way<T>>::AS_ITSELF`, with [`ByValue`] in scope, is the
/// constant of the `impl` below if it applies, and that of the trait otherwise.
pub struct Way<T>(PhantomData<T>);

pub trait ByValue {
    const AS_ITSELF: bool;
}

impl<T> ByValue for Way<T> {
    /// What has no size is no parameter at all.
    const AS_ITSELF: bool = size_of::<T>() == 0;
}

impl<T: AsItself> Way<T> {
    pub const AS_ITSELF: bool = true;
}

/// What rustc passes as one number or pointer, or as a pointer and a length.
pub trait AsItself {}

macro_rules! as_itself {
    ($($scalar:ty),*) => {
        $(impl AsItself for $scalar {})*
    };
}
as_itself!(
    i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, bool, char
);

impl<T: ?Sized> AsItself for *const T {}
impl<T: ?Sized> AsItself for *mut T {}
impl<T: ?Sized> AsItself for &T {}

/// A type as a parameter of an entry point, and back.
pub trait Pass<const AS_ITSELF: bool>: Sized {
    type Passed<'launch>
    where
        Self: 'launch;

    fn receive<'launch>(passed: Self::Passed<'launch>) -> Self
    where
        Self: 'launch;
}

impl<T> Pass<true> for T {
    type Passed<'launch>
        = T
    where
        T: 'launch;

    #[inline(always)]
    fn receive<'launch>(passed: T) -> T
    where
        T: 'launch,
    {
        passed
    }
}

/// rustc knows of a parameter behind a reference that nobody writes it, so that it reads elements
/// of an array in place, without a copy of the array.
impl<T: Copy> Pass<false> for T {
    type Passed<'launch>
        = &'launch T
    where
        T: 'launch;

    #[inline(always)]
    fn receive<'launch>(passed: &'launch T) -> T
    where
        T: 'launch,
    {
        crate::device::__nvvm_by_value(
            (&raw const *passed).cast(),
            size_of::<T>() as u64,
            align_of::<T>() as u64,
        );
        // SAFETY: a reference is valid to read, and the type is `Copy`.
        unsafe { core::ptr::read(passed) }
    }
}
