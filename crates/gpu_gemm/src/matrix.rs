//! Matrices as callers of [`gemm`](crate::gemm) pass them, and their errors.

use std::marker::PhantomData;

use cust::memory::{DeviceBuffer, DeviceCopy, DeviceSlice};
use gpu_kernels::spec::{DataType, ElementType};
use thiserror::Error;

use crate::backend::Space;
use crate::buffer::Buffer;
use crate::call::{MatrixLayout, Transpose};
use crate::error::DeviceError;
use crate::launch::Element;
use crate::plan::PlanError;
use crate::text::plural;

/// A or B, row-major, of elements of type `T`: a [`Buffer`] of the context; on a GPU also a
/// [`DeviceBuffer`], a [`DeviceSlice`] or a part of one (of elements that `cust` knows: not of 16
/// bits), or any address; on the simulator also a slice. It also says whether the matrix is
/// multiplied as stored or transposed.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a, T: Element = f32> {
    pub(crate) span: Span,
    pub(crate) transpose: Transpose,
    memory: PhantomData<&'a [T]>,
}

/// Elements in one device's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub start: *mut u8,
    pub length: usize,
    pub element: ElementType,
    pub space: Space,
}

impl Span {
    fn new<T: Element>(start: *mut T, length: usize, space: Space) -> Span {
        Span {
            start: start.cast(),
            length,
            element: T::TYPE,
            space,
        }
    }

    fn starting_at(self, elements: usize) -> Span {
        assert!(elements <= self.length);
        Span {
            start: self.start.wrapping_add(elements * self.element.bytes()),
            length: self.length - elements,
            ..self
        }
    }
}

impl<T: Element> Input<'_, T> {
    fn new(start: *const T, length: usize, space: Space) -> Self {
        Input {
            span: Span::new(start.cast_mut(), length, space),
            transpose: Transpose::No,
            memory: PhantomData,
        }
    }

    /// The matrix that begins with the first of `length` elements at an address in a GPU's memory:
    /// a `CUdeviceptr`, as in [`DevicePointer::as_raw`](cust::memory::DevicePointer::as_raw), or a
    /// pointer's.
    pub fn at(address: u64, length: usize) -> Input<'static, T> {
        Input::new(address as *const T, length, Space::Gpu)
    }

    /// The part of the matrix that begins this many elements further on, with the same leading
    /// dimension.
    ///
    /// # Panics
    ///
    /// If the matrix has fewer elements.
    pub fn starting_at(self, elements: usize) -> Self {
        let span = self.span.starting_at(elements);
        Input { span, ..self }
    }

    /// The same matrix, multiplied as its transpose (applied twice: as stored).
    pub fn transposed(self) -> Self {
        self.with(self.transpose.other())
    }

    /// The same matrix, transposed or not.
    pub fn with(self, transpose: Transpose) -> Self {
        Input { transpose, ..self }
    }
}

/// C, row-major, with elements of type `T`, in the same kinds of memory as an [`Input`].
#[derive(Debug)]
pub struct Output<'a, T: Element = f32> {
    pub(crate) span: Span,
    memory: PhantomData<&'a mut [T]>,
}

impl<T: Element> Output<'_, T> {
    fn new(start: *mut T, length: usize, space: Space) -> Self {
        Output {
            span: Span::new(start, length, space),
            memory: PhantomData,
        }
    }

    /// The matrix that begins with the first of `length` elements at an address in a GPU's memory.
    pub fn at(address: u64, length: usize) -> Output<'static, T> {
        Output::new(address as *mut T, length, Space::Gpu)
    }

    /// The part of the matrix that begins this many elements further on, with the same leading
    /// dimension.
    ///
    /// # Panics
    ///
    /// If the matrix has fewer elements.
    pub fn starting_at(self, elements: usize) -> Self {
        let span = self.span.starting_at(elements);
        Output { span, ..self }
    }
}

/// Conversions to an [`Input`] and, from exclusive references, to an [`Output`].
macro_rules! memories {
    ($($memory:ident: $element:ident, |$of:ident| $start:expr, $space:expr;)*) => {
        $(
            impl<'a, T: Element + $element> From<&'a $memory<T>> for Input<'a, T> {
                fn from($of: &'a $memory<T>) -> Self {
                    Input::new($start, $of.len(), $space)
                }
            }

            impl<'a, T: Element + $element> From<&'a mut $memory<T>> for Output<'a, T> {
                fn from($of: &'a mut $memory<T>) -> Self {
                    Output::new($start.cast_mut(), $of.len(), $space)
                }
            }
        )*
    };
}

memories! {
    Buffer: Element, |buffer| buffer.start().cast_const(), buffer.space();
    DeviceSlice: DeviceCopy, |slice| slice.as_device_ptr().as_ptr(), Space::Gpu;
    DeviceBuffer: DeviceCopy, |buffer| buffer.as_device_ptr().as_ptr(), Space::Gpu;
}

impl<'a, T: Element> From<&'a [T]> for Input<'a, T> {
    fn from(slice: &'a [T]) -> Self {
        Input::new(slice.as_ptr(), slice.len(), Space::Host)
    }
}

impl<'a, T: Element> From<&'a mut [T]> for Output<'a, T> {
    fn from(slice: &'a mut [T]) -> Self {
        Output::new(slice.as_mut_ptr(), slice.len(), Space::Host)
    }
}

/// A matrix by its letter in the formula, and its layout.
fn described(name: char, layout: &MatrixLayout) -> String {
    let letter = name.to_ascii_lowercase();
    let MatrixLayout {
        rows,
        columns,
        leading,
        count,
        stride,
        outer_count,
        outer_stride,
    } = layout;
    let stored = format!("stored as {rows} x {columns} with ld{letter} = {leading}");
    match (outer_count, count) {
        (1, 1) => format!("{name}, {stored}"),
        (1, _) => {
            format!("{name}, {count} matrices {stored} and stride_{letter} = {stride}")
        }
        _ => format!(
            "{name}, {outer_count} x {count} matrices {stored} and stride_{letter} = \
             ({outer_stride}, {stride})"
        ),
    }
}

/// Why a product was not launched.
#[derive(Debug, Error)]
pub enum GemmError {
    #[error(
        "ld{} is {}, shorter than the rows of {} that it must hold: {matrix} is stored as {} x {columns}.",
        .matrix.to_ascii_lowercase(), .layout.leading, plural(.layout.columns, "element"),
        .layout.rows,
        columns = .layout.columns
    )]
    ShortLeadingDimension { matrix: char, layout: MatrixLayout },
    #[error(
        "{}, takes {}, but its memory has only {length}.",
        described(*.matrix, .layout),
        plural(.needed, "element")
    )]
    ShortBuffer {
        matrix: char,
        layout: MatrixLayout,
        needed: usize,
        length: usize,
    },
    #[error("{}, has more elements than can be addressed.", described(*.matrix, .layout))]
    Overflow { matrix: char, layout: MatrixLayout },
    #[error(
        "{}, overlaps itself: its matrices must be {} or more apart, or side by side within the \
         leading dimension{}.",
        described('C', .layout),
        plural(.layout.extent_of_one(), "element"),
        match .layout.outer_count {
            1 => "",
            _ => ", and the larger stride past all matrices of the smaller one",
        }
    )]
    Overlap { layout: MatrixLayout },
    #[error(
        "{matrix} is in {} memory, but this context multiplies in {}.",
        .found.name(),
        .expected.name()
    )]
    #[allow(private_interfaces)] // only for the message
    WrongMemory {
        matrix: char,
        found: Space,
        expected: Space,
    },
    #[error(
        "This product of {data_type} takes {} of workspace or more, and there are {available}. Create the context with more.",
        plural(.needed, "byte")
    )]
    Workspace {
        data_type: DataType,
        needed: usize,
        available: usize,
    },
    #[error(
        "{kernels} has no kernel that multiplies {data_type} on this device. Name a base of that type that it runs \
         (`rust-gemm --list`) in `fused!`."
    )]
    NoFusedKernel {
        /// The name of the kernels with the epilogue.
        kernels: &'static str,
        data_type: DataType,
    },
    #[error(
        "No kernel multiplies these groups in {data_type}: A, B and C must be of bf16 or f16, A not transposed, the rows of \
         A and B at multiples of 16 bytes, and C of fewer than 2^31 tiles."
    )]
    NoGroupedKernel { data_type: DataType },
    #[error(
        "No kernel multiplies these groups along K in {data_type}: A and B must be of bf16 or f16, A transposed and B not, \
         the rows of both at multiples of 16 bytes, C of the same type or f32, and of fewer than 2^31 tiles."
    )]
    NoGroupedKernelAlongK { data_type: DataType },
    #[error(
        "No kernel of {kernels} computes this gated product in {data_type}: A, B and C must be of bf16 or f16, A not \
         transposed, the rows of A and B and the second matrix at multiples of 16 bytes, and C of fewer than 2^31 \
         tiles. Name a base for the layout of B in `fused!`, such as `gated::{{gated_bf16, gated_nt_bf16}}`."
    )]
    NoGatedKernel {
        /// The name of the kernels with the gate.
        kernels: &'static str,
        data_type: DataType,
    },
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<PlanError> for GemmError {
    fn from(error: PlanError) -> Self {
        GemmError::Device(error.into())
    }
}

impl Span {
    /// Checks that these are elements of the expected device, enough for a matrix of this name, and
    /// returns how many it has from the first to the last: 0 if there are none.
    pub(crate) fn check(
        self,
        matrix: char,
        layout: MatrixLayout,
        expected: Space,
    ) -> Result<usize, GemmError> {
        let (found, length) = (self.space, self.length);
        if found != expected {
            return Err(GemmError::WrongMemory {
                matrix,
                found,
                expected,
            });
        }
        // As in BLAS, this applies even if there are no rows.
        if layout.leading < layout.columns {
            return Err(GemmError::ShortLeadingDimension { matrix, layout });
        }
        let needed = layout.extent();
        if needed.checked_mul(self.element.bytes()).is_none() {
            return Err(GemmError::Overflow { matrix, layout });
        }
        match needed > length {
            true => Err(GemmError::ShortBuffer {
                matrix,
                layout,
                needed,
                length,
            }),
            false => Ok(needed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements from the first to the last, or the error, for matrices in memory of f32.
    fn said(
        name: char,
        sizes: (usize, usize, usize),
        stride: Option<usize>,
        length: usize,
    ) -> String {
        let (rows, columns, leading) = sizes;
        let one = MatrixLayout::one((rows, columns), leading);
        let layout = stride.map_or(one, |stride| one.batched(3, stride));
        let memory = Span::new::<f32>(std::ptr::null_mut(), length, Space::Host);
        let checked = memory.check(name, layout, Space::Host);
        match checked {
            Ok(_) if layout.overlaps() => GemmError::Overlap { layout }.to_string(),
            Ok(extent) => extent.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_matrix_needs_no_padding_after_its_last_row_and_what_is_wrong_is_named() {
        let one =
            |rows, columns, leading, length| said('A', (rows, columns, leading), None, length);
        assert_eq!(one(3, 5, 8, 21), "21");
        assert_eq!(one(0, 5, 5, 0), "0");
        assert_eq!((one(3, 0, 1, 0), one(3, 0, 0, 0)), ("0".into(), "0".into()));
        assert_eq!(
            one(3, 5, 4, 100),
            "lda is 4, shorter than the rows of 5 elements that it must hold: A is stored as 3 x 5."
        );
        assert_eq!(
            one(3, 5, 8, 20),
            "A, stored as 3 x 5 with lda = 8, takes 21 elements, but its memory has only 20."
        );
        let overflow = one(usize::MAX, 5, 8, 20);
        assert!(overflow.ends_with("has more elements than can be addressed."));
    }

    #[test]
    fn matrices_of_a_batch_may_lie_side_by_side_but_not_overlap() {
        let batched = |stride, length| said('C', (2, 5, 8), Some(stride), length);
        assert_eq!(
            (batched(13, 39), batched(20, 53)),
            ("39".into(), "53".into())
        );
        assert_eq!(
            batched(20, 52),
            "C, 3 matrices stored as 2 x 5 with ldc = 8 and stride_c = 20, takes 53 elements, but \
             its memory has only 52."
        );
        let overflow = batched(usize::MAX / 2, 100);
        assert!(overflow.ends_with("more elements than can be addressed."));
        for stride in [0, 1, 4, 5, 12] {
            let overlap = batched(stride, 100);
            assert!(overlap.contains("overlaps itself"), "{overlap}");
        }
        let beside = |leading, stride| {
            let extent = said('C', (2, 5, leading), Some(stride), 100);
            extent.parse::<usize>().is_ok()
        };
        assert!(beside(15, 5) && beside(17, 6));
        assert!(!beside(15, 4) && !beside(14, 5) && !beside(16, 6));
    }
}
