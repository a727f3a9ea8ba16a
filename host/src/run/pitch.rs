//! Pitched memory: the driver says how far apart rows should begin (`cuMemAllocPitch`), and
//! rectangles are copied between it and the host. `cust` does not have it, so this calls the driver
//! itself.

use std::marker::PhantomData;

use cust::error::CudaError;
use cust::memory::DevicePointer;
use cust::sys::{CUdeviceptr, cuMemAllocPitch_v2, cuMemFree_v2};

use gpu_gemm::device::cuda::rectangle::{Side, copy};
use gpu_gemm::device::cuda::status::{checked, during};
use gpu_gemm::{CudaDevice, DeviceError};

use super::layout::Placed;
use crate::data::{Matrix, Number};

/// Rows of the GPU's memory, each at the pitch that the driver chose.
pub(crate) struct Rows<T> {
    start: CUdeviceptr,
    count: usize,
    pitch_bytes: usize,
    elements: PhantomData<T>,
}

impl<T: Number> Rows<T> {
    /// Allocates `count` rows for `columns` elements each; neither may be 0.
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    pub fn allocate(
        device: &CudaDevice,
        count: usize,
        columns: usize,
    ) -> Result<Self, DeviceError> {
        let (mut start, mut pitch_bytes) = (0, 0);
        let width = columns.saturating_mul(size_of::<T>());
        // The driver accepts access sizes of 4, 8 and 16; smaller elements are read several at a
        // time.
        let access = size_of::<T>().max(4) as u32;
        // SAFETY: both targets live until the call returns.
        let status =
            unsafe { cuMemAllocPitch_v2(&mut start, &mut pitch_bytes, width, count, access) };
        checked(status as u32).map_err(|error| match error {
            CudaError::OutOfMemory => device.out_of_memory(width.saturating_mul(count)),
            error => during("Allocating pitched memory on the GPU")(error),
        })?;
        Ok(Rows {
            start,
            count,
            pitch_bytes,
            elements: PhantomData,
        })
    }

    /// The first element of the first row.
    pub fn start(&self) -> DevicePointer<T> {
        DevicePointer::from_raw(self.start)
    }

    /// Elements from the start of a row to the start of the next: the pitch is a multiple of 512
    /// bytes on every GPU so far.
    pub fn pitch(&self) -> usize {
        self.pitch_bytes / size_of::<T>()
    }

    /// The first row and its pitch, for a kernel.
    pub fn placed(&self) -> Placed {
        Placed {
            start: self.start().as_ptr().cast_mut().cast(),
            leading: self.pitch(),
        }
    }

    /// Writes `element` everywhere, including between the rows: one row from the host, and then as
    /// many as are written already, again and again.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn fill(&self, element: T) -> Result<(), DeviceError> {
        let row = vec![element; self.pitch()];
        let from = Side::Host(row.as_ptr().cast_mut().cast(), self.pitch_bytes);
        // SAFETY: `row` is a full row, and there is a first one.
        unsafe { copy(from, self.side(0), self.pitch_bytes, 1)? };
        let mut written = 1;
        while written < self.count {
            let height = written.min(self.count - written);
            // SAFETY: that many rows are there at both places, which do not overlap.
            unsafe { copy(self.side(0), self.side(written), self.pitch_bytes, height)? };
            written += height;
        }
        Ok(())
    }

    /// Copies all of `other`, which has the same rows.
    ///
    /// # Errors
    ///
    /// The driver fails.
    ///
    /// # Panics
    ///
    /// If it has others.
    pub fn copy_from(&self, other: &Rows<T>) -> Result<(), DeviceError> {
        let of = |rows: &Rows<T>| (rows.count, rows.pitch_bytes);
        assert_eq!(of(self), of(other));
        // SAFETY: both have that much.
        unsafe { copy(other.side(0), self.side(0), self.pitch_bytes, self.count) }
    }

    /// Writes the rows of `matrix`, from row `first` on.
    ///
    /// # Errors
    ///
    /// The driver fails.
    ///
    /// # Panics
    ///
    /// If they do not fit.
    pub fn write(&self, first: usize, matrix: &Matrix<T>) -> Result<(), DeviceError> {
        self.check(first, matrix);
        let from = matrix.elements().as_ptr().cast_mut();
        let from = Side::Host(from.cast(), matrix.leading() * size_of::<T>());
        // SAFETY: `elements` reaches from the first element of the matrix to its last, and the
        // rows have been checked.
        unsafe { copy(from, self.side(first), width_bytes(matrix), matrix.rows()) }
    }

    /// Reads the rows of `matrix`, from row `first` on; what lies between its rows does not
    /// change.
    ///
    /// # Errors
    ///
    /// The driver fails.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn read_into(&self, first: usize, matrix: &mut Matrix<T>) -> Result<(), DeviceError> {
        self.check(first, matrix);
        let (width, rows) = (width_bytes(matrix), matrix.rows());
        let pitch = matrix.leading() * size_of::<T>();
        let to = Side::Host(matrix.elements_mut().as_mut_ptr().cast(), pitch);
        // SAFETY: as in `write`.
        unsafe { copy(self.side(first), to, width, rows) }
    }

    /// All elements, including those between the rows.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn read(&self) -> Result<Vec<T>, DeviceError> {
        let mut elements = vec![T::default(); self.count * self.pitch()];
        let to = Side::Host(elements.as_mut_ptr().cast(), self.pitch_bytes);
        // SAFETY: `elements` has room for all rows.
        unsafe { copy(self.side(0), to, self.pitch_bytes, self.count)? };
        Ok(elements)
    }

    fn check(&self, first: usize, matrix: &Matrix<T>) {
        assert!(first + matrix.rows() <= self.count && matrix.columns() <= self.pitch());
    }

    fn side(&self, row: usize) -> Side {
        let start = self.start + (row * self.pitch_bytes) as u64;
        Side::Device(start, self.pitch_bytes)
    }
}

impl<T> Drop for Rows<T> {
    fn drop(&mut self) {
        // SAFETY: it was allocated, and nothing uses it any longer. If the driver fails, nothing
        // can be done.
        let _ = unsafe { cuMemFree_v2(self.start) };
    }
}

fn width_bytes<T: Number>(matrix: &Matrix<T>) -> usize {
    matrix.columns() * size_of::<T>()
}
