//! Elements in the memory of a device: of a GPU, of an OpenCL device, or of the host for the
//! simulator.

use std::marker::PhantomData;

use crate::backend::{Allocated, Backend, Space, Way};
use crate::error::DeviceError;
use crate::launch::Element;

/// Elements in the memory of the device that allocated it.
pub struct Buffer<T: Element> {
    memory: Allocated,
    length: usize,
    space: Space,
    elements: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Memory for `length` elements with unspecified values. A GPU's context is current.
    ///
    /// # Errors
    ///
    /// There is not enough memory for them.
    pub fn new(backend: &dyn Backend, length: usize) -> Result<Buffer<T>, DeviceError> {
        Ok(Buffer {
            memory: backend.allocate(length.saturating_mul(size_of::<T>()))?,
            length,
            space: backend.space(),
            elements: PhantomData,
        })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The address of the first element, in the device's memory.
    pub fn start(&self) -> *mut T {
        self.memory.start().cast()
    }

    /// Copies elements to the buffer, from index `first` on. `backend` allocated the buffer, a
    /// GPU's context is current, and no running launch uses the buffer.
    ///
    /// # Errors
    ///
    /// The device fails.
    ///
    /// # Panics
    ///
    /// If the buffer is shorter, or belongs to a device of another [`Space`].
    pub fn write(
        &mut self,
        backend: &dyn Backend,
        first: usize,
        elements: &[T],
    ) -> Result<(), DeviceError> {
        self.check(backend, first, elements.len());
        let to = self.start().wrapping_add(first).cast();
        // SAFETY: both sides are as long as `elements`, and any bits are valid elements.
        unsafe {
            backend.copy(
                elements.as_ptr().cast(),
                to,
                size_of_val(elements),
                Way::ToDevice,
            )
        }
    }

    /// Copies its elements from index `first` on, on the same conditions.
    ///
    /// # Errors
    ///
    /// The device fails.
    ///
    /// # Panics
    ///
    /// As for [`Buffer::write`].
    pub fn read(
        &self,
        backend: &dyn Backend,
        first: usize,
        length: usize,
    ) -> Result<Vec<T>, DeviceError> {
        let mut elements = vec![T::default(); length];
        self.read_into(backend, first, &mut elements)?;
        Ok(elements)
    }

    /// [`Buffer::read`] into memory of the caller.
    ///
    /// # Errors
    ///
    /// The device fails.
    ///
    /// # Panics
    ///
    /// As for [`Buffer::write`].
    pub fn read_into(
        &self,
        backend: &dyn Backend,
        first: usize,
        elements: &mut [T],
    ) -> Result<(), DeviceError> {
        self.check(backend, first, elements.len());
        let from = self.start().wrapping_add(first).cast_const().cast();
        let (to, bytes) = (elements.as_mut_ptr().cast(), size_of_val(elements));
        // SAFETY: as above.
        unsafe { backend.copy(from, to, bytes, Way::ToHost) }
    }

    /// A copy in new memory, on the same conditions.
    ///
    /// # Errors
    ///
    /// There is not enough memory for it, or the device fails.
    ///
    /// # Panics
    ///
    /// As for [`Buffer::write`].
    pub fn duplicate(&self, backend: &dyn Backend) -> Result<Buffer<T>, DeviceError> {
        let copy = Buffer::new(backend, self.length)?;
        self.check(backend, 0, self.length);
        let bytes = self.length * size_of::<T>();
        // SAFETY: both have `length` elements.
        unsafe {
            backend.copy(self.memory.start(), copy.memory.start(), bytes, Way::Within)?;
        }
        Ok(copy)
    }

    fn check(&self, backend: &dyn Backend, first: usize, length: usize) {
        assert!(backend.space() == self.space && first.saturating_add(length) <= self.length);
    }

    pub(crate) fn space(&self) -> Space {
        self.space
    }
}
