//! What `#[kernel]` and `#[address_space]` expand to, and what a kernel may take as a parameter.

/// A type that a launch can pass to a kernel: an integer of up to 64 bits, `f32`, `f64`, `bool`,
/// a raw pointer, `&T` or `&[T]`.
///
/// A slice takes two launch parameters: its pointer, then its length in elements as a `u64`.
///
/// # Safety
///
/// rustc hands an implementor to a function as one scalar (or, as a slice, as pointer and
/// length), and every value that the host may write into a launch parameter of that scalar's type
/// is a valid one. A `#[repr(transparent)]` struct around an implementor qualifies.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a kernel's parameter",
    label = "a launch cannot pass this",
    note = "a kernel takes integers up to 64 bits, f32, f64, bool, raw pointers, `&T` and `&[T]`",
    note = "instead of `&mut [T]`, which every thread would hold at once, take a `*mut T`; take a struct field by field or behind a pointer"
)]
pub unsafe trait KernelParameter: Copy {}

macro_rules! scalar_parameters {
    ($($scalar:ty),*) => {
        // SAFETY: one scalar.
        $(unsafe impl KernelParameter for $scalar {})*
    };
}
scalar_parameters!(
    i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, bool
);

// SAFETY: a thin pointer is one scalar.
unsafe impl<T> KernelParameter for *const T {}
// SAFETY: as above.
unsafe impl<T> KernelParameter for *mut T {}
// SAFETY: a thin pointer is one scalar; the launch, which is unsafe, vouches for what it points
// to.
unsafe impl<T> KernelParameter for &T {}
// SAFETY: pointer and length; the launch vouches for both.
unsafe impl<T> KernelParameter for &[T] {}

#[doc(hidden)]
#[inline(always)]
pub const fn __check_kernel_parameter<T>(_: &T)
where
    (T,): PassedByLaunch,
{
}

#[doc(hidden)]
pub const fn __check_kernel_parameter_type<T>()
where
    (T,): PassedByLaunch,
{
}

/// An indirection to [`KernelParameter`]. With a direct bound, rustc suggests borrowing the
/// value.
#[doc(hidden)]
pub trait PassedByLaunch {}

impl<T: KernelParameter> PassedByLaunch for (T,) {}

/// Promises that no launch of the calling kernel has more than `MAX_THREADS` threads a block, and
/// requests that the compiler use few enough registers for `MIN_BLOCKS` blocks to fit on a
/// streaming multiprocessor (SM) at a time. 0 leaves either bound open.
///
/// `#[kernel(max_threads = .., min_blocks = ..)]` expands to a call of this. Call it yourself,
/// first thing in the kernel, where the source must also compile with rust-cuda's `cuda_std`,
/// whose `#[kernel]` takes no such arguments.
///
/// A launch that breaks the promise is refused by the driver, and in the simulator is a fault. A
/// bound beyond what any GPU allows does not compile:
///
/// ```compile_fail,E0080
/// cuda_std::launch_bounds::<2048, 0>(); // a block has at most 1024 threads
/// ```
#[inline(always)]
pub fn launch_bounds<const MAX_THREADS: u32, const MIN_BLOCKS: u32>() {
    const {
        assert!(
            MAX_THREADS <= 1024,
            "max_threads is above 1024, the most threads that a block can have"
        );
        assert!(
            MIN_BLOCKS <= 32,
            "min_blocks is above 32, the most blocks that a multiprocessor holds at a time"
        );
    }
    #[cfg(cuda_device)]
    crate::device::__nvvm_launch_bounds(MAX_THREADS, MIN_BLOCKS);
    #[cfg(not(cuda_device))]
    crate::simulator::check_launch_bounds(MAX_THREADS);
}

/// A kernel's function, where `cuda_std` is compiled for a GPU.
#[cfg(cuda_device)]
#[doc(hidden)]
#[macro_export]
macro_rules! __entry_point {
    ($function:item) => {
        #[unsafe(no_mangle)]
        #[unsafe(link_section = ".nvvm.kernel")]
        $function
    };
}

/// A kernel's function, where `cuda_std` is compiled for a CPU.
#[cfg(not(cuda_device))]
#[doc(hidden)]
#[macro_export]
macro_rules! __entry_point {
    ($function:item) => {
        $function
    };
}

/// A static in an address space of the GPU.
#[cfg(cuda_device)]
#[doc(hidden)]
#[macro_export]
macro_rules! __static_in {
    (global, [$($head:tt)*], $name:ident, $ty:ty, $initial:expr) => {
        #[unsafe(link_section = ".nvvm.addrspace.1")]
        $($head)* $name: $ty = $initial;
    };
    (shared, [$($head:tt)*], $name:ident, $ty:ty, $initial:expr) => {
        #[unsafe(link_section = ".nvvm.addrspace.3")]
        $($head)* $name: $ty = $initial;
    };
    (constant, [$($head:tt)*], $name:ident, $ty:ty, $initial:expr) => {
        #[unsafe(link_section = ".nvvm.addrspace.4")]
        $($head)* $name: $ty = $initial;
    };
}

/// A static that would be in an address space of the GPU.
#[cfg(not(cuda_device))]
#[doc(hidden)]
#[macro_export]
macro_rules! __static_in {
    (shared, [$($head:tt)*], $name:ident, $ty:ty, $initial:expr) => {
        $($head)* $name: $crate::simulator::SharedStatic<$ty> =
            $crate::simulator::SharedStatic::replacing($initial);
    };
    ($space:ident, [$($head:tt)*], $name:ident, $ty:ty, $initial:expr) => {
        $($head)* $name: $ty = $initial;
    };
}
