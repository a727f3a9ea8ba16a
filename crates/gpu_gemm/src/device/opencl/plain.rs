//! Memory as other libraries of OpenCL take it: a `cl_mem`, which has no address.

use std::ffi::c_void;

use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::types::CL_BLOCKING;

use super::device::OpenClDevice;
use crate::device::error::DeviceError;
use crate::launch::Plain;

/// Elements in a device's memory, for another library.
pub struct OpenClMemory<'device, T> {
    device: &'device OpenClDevice,
    buffer: Buffer<T>,
    length: usize,
}

impl<'device, T: Plain + Default> OpenClMemory<'device, T> {
    /// A copy of these elements.
    ///
    /// # Errors
    ///
    /// There is no memory for them, or the device fails.
    pub fn upload(device: &'device OpenClDevice, elements: &[T]) -> Result<Self, DeviceError> {
        // No allocation of OpenCL is empty.
        let length = elements.len().max(1);
        let context = device.session().opened();
        // SAFETY: without CL_MEM_USE_HOST_PTR and its like the pointer is not used.
        let buffer =
            unsafe { Buffer::create(context, CL_MEM_READ_WRITE, length, std::ptr::null_mut()) };
        let buffer = buffer.map_err(|_| device.out_of_memory(length * size_of::<T>()))?;
        let mut memory = OpenClMemory {
            device,
            buffer,
            length: elements.len(),
        };
        memory.write(elements)?;
        Ok(memory)
    }

    /// Writes the first elements, as many as are given.
    ///
    /// # Errors
    ///
    /// The device fails, or has no room for so many.
    pub fn write(&mut self, elements: &[T]) -> Result<(), DeviceError> {
        if elements.is_empty() {
            return Ok(());
        }
        let queue = self.device.queue();
        // SAFETY: the call returns when the elements have been copied; OpenCL refuses more than the
        // buffer has room for.
        let written =
            unsafe { queue.enqueue_write_buffer(&mut self.buffer, CL_BLOCKING, 0, elements, &[]) };
        let doing = "Copying to the OpenCL device";
        written
            .map(drop)
            .map_err(|error| DeviceError::opencl(doing, error))
    }

    /// All elements.
    ///
    /// # Errors
    ///
    /// The device fails.
    pub fn download(&self) -> Result<Vec<T>, DeviceError> {
        let mut elements = vec![T::default(); self.length];
        if elements.is_empty() {
            return Ok(elements);
        }
        let queue = self.device.queue();
        // SAFETY: the call returns when the elements, of which every pattern of bits is one, have
        // been copied.
        let read =
            unsafe { queue.enqueue_read_buffer(&self.buffer, CL_BLOCKING, 0, &mut elements, &[]) };
        let doing = "Copying from the OpenCL device";
        read.map_err(|error| DeviceError::opencl(doing, error))?;
        Ok(elements)
    }

    /// The `cl_mem`, which lives as long as this.
    pub fn handle(&self) -> *mut c_void {
        self.buffer.get()
    }
}
