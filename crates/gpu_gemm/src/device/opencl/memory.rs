//! Memory that kernels and the host know by the same addresses: shared virtual memory (SVM) of
//! OpenCL 2.0. A launch list has addresses, with offsets; a buffer of OpenCL 1.2 has none.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use opencl3::memory::{CL_MEM_READ_WRITE, svm_alloc, svm_free};
use opencl3::types::CL_BLOCKING;

use super::device::{OpenClDevice, Session};
use crate::device::error::DeviceError;
use crate::launch::Plain;

/// Bytes that every buffer starts at a multiple of at least: the widest vector of OpenCL C.
const ALIGNMENT: u32 = 128;

/// Elements in a device's memory.
pub struct OpenClBuffer<T> {
    session: Arc<Session>,
    start: NonNull<T>,
    length: usize,
}

// SAFETY: it owns its memory, and OpenCL lets any thread use a context and a queue.
unsafe impl<T: Send> Send for OpenClBuffer<T> {}

// SAFETY: as above; a shared buffer is only read.
unsafe impl<T: Sync> Sync for OpenClBuffer<T> {}

impl<T: Plain + Default> OpenClBuffer<T> {
    /// Room for so many elements, whose values are left open.
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    pub fn allocate(device: &OpenClDevice, length: usize) -> Result<OpenClBuffer<T>, DeviceError> {
        let bytes = length.saturating_mul(size_of::<T>());
        let out_of_memory = || device.out_of_memory(bytes);
        if bytes > device.properties().memory_bytes {
            return Err(out_of_memory());
        }
        // No allocation of OpenCL is empty.
        let bytes = bytes.max(size_of::<T>());
        // SAFETY: the flags are those of plain SVM, which the device has: it would not have been
        // opened otherwise.
        let start = unsafe {
            let context = device.session().context();
            svm_alloc(context, CL_MEM_READ_WRITE, bytes, ALIGNMENT)
        };
        let start = start.ok().and_then(|start| NonNull::new(start.cast()));
        Ok(OpenClBuffer {
            session: device.session().clone(),
            start: start.ok_or_else(out_of_memory)?,
            length,
        })
    }

    /// A copy of these elements.
    ///
    /// # Errors
    ///
    /// There is no memory for them, or the device fails.
    pub fn upload(device: &OpenClDevice, elements: &[T]) -> Result<OpenClBuffer<T>, DeviceError> {
        let buffer = OpenClBuffer::allocate(device, elements.len())?;
        buffer.write(elements)?;
        Ok(buffer)
    }

    /// Writes all elements.
    ///
    /// # Errors
    ///
    /// The device fails.
    ///
    /// # Panics
    ///
    /// There are more or fewer of them than it was allocated for.
    pub fn write(&self, elements: &[T]) -> Result<(), DeviceError> {
        assert_eq!(elements.len(), self.length);
        let to = self.start.as_ptr().cast();
        let from = elements.as_ptr().cast();
        self.copy(to, from, "Copying to the OpenCL device")
    }

    /// All elements.
    ///
    /// # Errors
    ///
    /// The device fails.
    pub fn download(&self) -> Result<Vec<T>, DeviceError> {
        let mut elements = vec![T::default(); self.length];
        let to = elements.as_mut_ptr().cast();
        let from = self.start.as_ptr().cast_const().cast();
        self.copy(to, from, "Copying from the OpenCL device")?;
        Ok(elements)
    }

    fn copy(
        &self,
        to: *mut c_void,
        from: *const c_void,
        doing: &'static str,
    ) -> Result<(), DeviceError> {
        let bytes = self.length * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: one side is this buffer, the other has as many elements, of which every pattern
        // of bits is one; the call returns when the copy has been made.
        let copied = unsafe {
            self.session
                .queue()
                .enqueue_svm_mem_cpy(CL_BLOCKING, to, from, bytes, &[])
        };
        copied
            .map(drop)
            .map_err(|error| DeviceError::opencl(doing, error))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The address of the first element, for a launch.
    pub fn start(&self) -> *mut T {
        self.start.as_ptr()
    }
}

impl<T> Drop for OpenClBuffer<T> {
    fn drop(&mut self) {
        // If the device fails, there is nobody to tell.
        let _ = self.session.queue().finish();
        let context = self.session.context();
        // SAFETY: it was allocated in this context, and nothing that was started uses it any
        // longer.
        let _ = unsafe { svm_free(context, self.start.as_ptr().cast()) };
    }
}
