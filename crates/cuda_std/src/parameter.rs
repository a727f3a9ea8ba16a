//! What a kernel may take as a parameter.

#[cfg(cuda_device)]
pub mod passing;

/// A type that a launch can pass to a kernel: any `Copy` type.
///
/// | type | what a launch passes |
/// | --- | --- |
/// | an integer of up to 64 bits, `f32`, `f64`, `bool`, `char` | the number |
/// | `&T`, `*const T`, `*mut T` | the pointer |
/// | `&[T]`, `*const [T]`, `*mut [T]` | two parameters: the pointer and the length, a `u64` |
/// | a type without a size, such as `()` | nothing |
/// | any other: structs, arrays, tuples, 128-bit integers, `Option<..>` | the value |
///
/// As in CUDA, the driver takes the address of each parameter on the host, and copies as many
/// bytes from there as the kernel's PTX says. So host and kernel must agree on the layout. A
/// struct needs `#[repr(C)]` or `#[repr(transparent)]` for that: Rust promises the layout of
/// others, tuples included, only within one compilation, and device code is compiled apart from
/// the host's. (They agree in fact where the same rustc compiles both for the same type of
/// machine, as `cuda_builder` does.)
///
/// A parameter can have at most 32764 bytes, as can all parameters of a kernel together, and an
/// alignment of at most 128.
///
/// The launch must guarantee that pointers, wherever they are in the value, are valid
/// on the device.
///
/// ```
/// # use cuda_std::{prelude::*, simulator::Launch};
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Shape {
///     rows: u32,
///     cols: u32,
/// }
///
/// /// One element of a matrix and its neighbours along a row, weighted.
/// ///
/// /// # Safety
/// ///
/// /// One block of as many threads as there are elements, and room for them at `to`.
/// #[kernel(instantiate(filter_f32 = filter::<f32>, filter_f64 = filter::<f64>))]
/// unsafe fn filter<T: Copy + Into<f64>>(
///     shape: Shape,
///     #[grid_constant] weights: &[f64; 3],
///     from: &[T],
///     to: *mut f64,
/// ) {
///     let i = thread::thread_idx_x() as usize;
///     let (row, col) = (i / shape.cols as usize, i % shape.cols as usize);
///     let at = |col: usize| match col < shape.cols as usize {
///         true => from[row * shape.cols as usize + col].into(),
///         false => 0.0,
///     };
///     let sides = at(col.wrapping_sub(1)) * weights[0] + at(col + 1) * weights[2];
///     unsafe { *to.add(i) = sides + at(col) * weights[1] };
/// }
///
/// let shape = Shape { rows: 1, cols: 3 };
/// # assert_eq!(shape.rows, 1);
/// let (from, mut to) = ([1.0_f32, 2.0, 3.0], [0.0; 3]);
/// let out = std::sync::atomic::AtomicPtr::new(to.as_mut_ptr());
/// Launch::new(1, 3).run(|| unsafe {
///     filter_f32(shape, &[0.5, 1.0, 0.5], &from, out.load(std::sync::atomic::Ordering::Relaxed));
/// })?;
/// assert_eq!(to, [2.0, 4.0, 4.0]);
/// # Ok::<(), cuda_std::simulator::Fault>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a kernel's parameter",
    label = "a launch cannot pass this",
    note = "a kernel takes whatever is `Copy`: numbers, pointers, `&T`, `&[T]`, arrays, tuples, and structs that derive `Copy`",
    note = "instead of `&mut [T]`, which every thread would hold at once, take a `*mut T`"
)]
pub trait KernelParameter: Copy {}

#[diagnostic::do_not_recommend]
impl<T: Copy> KernelParameter for T {}

/// ```compile_fail,E0080
/// cuda_std::__check_kernel_parameter(&[0_u8; 32765]); // more than a launch can pass
/// ```
#[doc(hidden)]
#[inline(always)]
pub const fn __check_kernel_parameter<T>(_: &T)
where
    (T,): PassedByLaunch,
{
    __check_kernel_parameter_type::<T>();
}

#[doc(hidden)]
#[inline(always)]
pub const fn __check_kernel_parameter_type<T>()
where
    (T,): PassedByLaunch,
{
    const {
        assert!(
            size_of::<T>() <= 32764,
            "a kernel can have at most 32764 bytes of parameters; pass a pointer"
        );
        assert!(
            align_of::<T>() <= 128,
            "a kernel's parameter can be aligned to at most 128 bytes"
        );
    }
}

/// An indirection to [`KernelParameter`]. With a direct bound, rustc suggests borrowing the
/// value.
#[doc(hidden)]
pub trait PassedByLaunch {}

impl<T: KernelParameter> PassedByLaunch for (T,) {}

/// A `#[grid_constant]` parameter: the launch passes the value itself, which all threads read in
/// place.
#[doc(hidden)]
#[inline(always)]
pub fn __grid_constant<T>(parameter: &T)
where
    (T,): PassedByLaunch,
{
    __check_kernel_parameter(parameter);
    const { assert!(size_of::<T>() > 0, "a grid constant must have a size") }
    #[cfg(cuda_device)]
    crate::device::__nvvm_grid_constant(
        (&raw const *parameter).cast(),
        size_of::<T>() as u64,
        align_of::<T>() as u64,
    );
}
