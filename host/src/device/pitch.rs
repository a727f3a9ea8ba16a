//! Pitched memory: the driver says how far apart rows should begin (`cuMemAllocPitch`), and copies rectangles between
//! it and the host (`cuMemcpy2D`). `cust` has neither, so this calls the driver itself.

use std::marker::PhantomData;

use cust::error::CudaError;
use cust::memory::DevicePointer;
use cust::sys::{
    CUDA_MEMCPY2D_st, CUdeviceptr, CUmemorytype_enum as MemoryType, cuMemAllocPitch_v2,
    cuMemFree_v2, cuMemcpy2D_v2, cudaError_enum as Status,
};

use super::cuda::{CudaDevice, during};
use super::error::DeviceError;
use crate::element::Element;
use crate::problem::Matrix;

/// Rows of the GPU's memory, each at the pitch that the driver chose.
pub(crate) struct Rows<T> {
    start: CUdeviceptr,
    count: usize,
    pitch_bytes: usize,
    elements: PhantomData<T>,
}

impl<T: Element> Rows<T> {
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
        // The driver takes 4, 8 and 16 for the size of an access; smaller elements are read several at a time.
        let access = size_of::<T>().max(4) as u32;
        // SAFETY: both targets live until the call returns.
        let status =
            unsafe { cuMemAllocPitch_v2(&mut start, &mut pitch_bytes, width, count, access) };
        match status {
            Status::CUDA_SUCCESS => Ok(Rows {
                start,
                count,
                pitch_bytes,
                elements: PhantomData,
            }),
            Status::CUDA_ERROR_OUT_OF_MEMORY => {
                Err(device.out_of_memory(width.saturating_mul(count)))
            }
            status => Err(failure("Allocating pitched memory on the GPU", status)),
        }
    }

    /// The first element of the first row.
    pub fn start(&self) -> DevicePointer<T> {
        DevicePointer::from_raw(self.start)
    }

    /// Elements from the start of a row to the start of the next: the pitch is a multiple of 512 bytes on every GPU so far.
    pub fn pitch(&self) -> usize {
        self.pitch_bytes / size_of::<T>()
    }

    /// Writes `element` everywhere, between the rows too.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn fill(&self, element: T) -> Result<(), DeviceError> {
        let row = vec![element; self.pitch()];
        for index in 0..self.count {
            let from = Side::Host(row.as_ptr().cast_mut().cast(), self.pitch_bytes);
            // SAFETY: `row` is a whole row, and there is a row `index`.
            unsafe { copy(from, self.side(index), self.pitch_bytes, 1)? };
        }
        Ok(())
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
        // SAFETY: `elements` reaches from the first element of the matrix to its last, and the rows have been checked.
        unsafe { copy(from, self.side(first), width_bytes(matrix), matrix.rows()) }
    }

    /// Reads the rows of `matrix`, from row `first` on; what lies between its rows stays.
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

    /// All elements, those between the rows too.
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
        // SAFETY: it was allocated, and nothing uses it any more. There is nothing to do if the driver fails.
        let _ = unsafe { cuMemFree_v2(self.start) };
    }
}

/// One side of a copy: where its first row begins, and the bytes from there to the next.
#[derive(Clone, Copy)]
enum Side {
    Host(*mut u8, usize),
    Device(CUdeviceptr, usize),
}

impl Side {
    fn memory(self) -> MemoryType {
        match self {
            Side::Host(..) => MemoryType::CU_MEMORYTYPE_HOST,
            Side::Device(..) => MemoryType::CU_MEMORYTYPE_DEVICE,
        }
    }

    fn host(self) -> *mut u8 {
        match self {
            Side::Host(start, _) => start,
            Side::Device(..) => std::ptr::null_mut(),
        }
    }

    fn device(self) -> CUdeviceptr {
        match self {
            Side::Host(..) => 0,
            Side::Device(start, _) => start,
        }
    }

    fn pitch(self) -> usize {
        match self {
            Side::Host(_, pitch) | Side::Device(_, pitch) => pitch,
        }
    }
}

fn width_bytes<T: Element>(matrix: &Matrix<T>) -> usize {
    matrix.columns() * size_of::<T>()
}

/// Copies `height` rows of `width` bytes.
///
/// # Safety
///
/// Both sides have that much.
unsafe fn copy(from: Side, to: Side, width: usize, height: usize) -> Result<(), DeviceError> {
    if width == 0 || height == 0 {
        return Ok(());
    }
    let rectangle = CUDA_MEMCPY2D_st {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: from.memory(),
        srcHost: from.host().cast(),
        srcDevice: from.device(),
        srcArray: std::ptr::null_mut(),
        srcPitch: from.pitch(),
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: to.memory(),
        dstHost: to.host().cast(),
        dstDevice: to.device(),
        dstArray: std::ptr::null_mut(),
        dstPitch: to.pitch(),
        WidthInBytes: width,
        Height: height,
    };
    // SAFETY: the caller vouches for both sides.
    match unsafe { cuMemcpy2D_v2(&rectangle) } {
        Status::CUDA_SUCCESS => Ok(()),
        status => Err(failure("Copying rows to or from the GPU", status)),
    }
}

/// `cust` keeps its translation of the driver's numbers to itself; these two are all that a copy or an allocation gives
/// before a kernel has crashed, which every other call then reports, too.
fn failure(doing: &'static str, status: Status) -> DeviceError {
    during(doing)(match status {
        Status::CUDA_ERROR_INVALID_VALUE => CudaError::InvalidValue,
        _ => CudaError::UnknownError,
    })
}
