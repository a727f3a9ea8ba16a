//! Elements in the memory of a context: a GPU's, that of a device of OpenCL, or the host's for the
//! simulator.

use cust::memory::DeviceBuffer;

use crate::device::opencl::OpenClBuffer;
use crate::launch::Element;

/// The device that a matrix's memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Gpu,
    OpenCl,
    Host,
}

impl Space {
    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            Space::Gpu => "the GPU's",
            Space::OpenCl => "the OpenCL device's",
            Space::Host => "the host's",
        }
    }
}

/// Elements in the memory of the context that made it.
pub struct Buffer<T: Element>(Elements<T>);

enum Elements<T: Element> {
    Gpu(DeviceBuffer<T>),
    OpenCl(OpenClBuffer<T>),
    /// It begins at a multiple of 256 bytes, as a GPU's allocations do, because kernels are
    /// chosen by alignment.
    Host {
        storage: Vec<T>,
        first: usize,
        length: usize,
    },
}

/// The alignment of every allocation, in bytes.
const ALIGNMENT: usize = 256;

impl<T: Element> Buffer<T> {
    pub(crate) fn on_gpu(buffer: DeviceBuffer<T>) -> Self {
        Buffer(Elements::Gpu(buffer))
    }

    pub(crate) fn on_opencl(buffer: OpenClBuffer<T>) -> Self {
        Buffer(Elements::OpenCl(buffer))
    }

    pub(crate) fn on_host(elements: &[T]) -> Self {
        let slack = ALIGNMENT / size_of::<T>();
        let mut storage = vec![T::default(); elements.len() + slack];
        let first = storage.as_ptr().align_offset(ALIGNMENT).min(slack);
        storage[first..first + elements.len()].copy_from_slice(elements);
        Buffer(Elements::Host {
            storage,
            first,
            length: elements.len(),
        })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match &self.0 {
            Elements::Gpu(buffer) => buffer.len(),
            Elements::OpenCl(buffer) => buffer.len(),
            Elements::Host { length, .. } => *length,
        }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The GPU's memory, if the elements lie there.
    pub fn as_device_buffer(&self) -> Option<&DeviceBuffer<T>> {
        match &self.0 {
            Elements::Gpu(buffer) => Some(buffer),
            Elements::OpenCl(_) | Elements::Host { .. } => None,
        }
    }

    /// The memory of a device of OpenCL, if the elements lie there.
    pub fn as_opencl_buffer(&self) -> Option<&OpenClBuffer<T>> {
        match &self.0 {
            Elements::OpenCl(buffer) => Some(buffer),
            Elements::Gpu(_) | Elements::Host { .. } => None,
        }
    }

    /// The elements, if they lie in host memory.
    pub fn as_slice(&self) -> Option<&[T]> {
        match &self.0 {
            Elements::Gpu(_) | Elements::OpenCl(_) => None,
            Elements::Host {
                storage,
                first,
                length,
            } => Some(&storage[*first..*first + *length]),
        }
    }

    pub(crate) fn space(&self) -> Space {
        match &self.0 {
            Elements::Gpu(_) => Space::Gpu,
            Elements::OpenCl(_) => Space::OpenCl,
            Elements::Host { .. } => Space::Host,
        }
    }

    pub(crate) fn start(&self) -> *const T {
        match &self.0 {
            Elements::Gpu(buffer) => buffer.as_device_ptr().as_ptr(),
            Elements::OpenCl(buffer) => buffer.start(),
            Elements::Host { storage, first, .. } => storage[*first..].as_ptr(),
        }
    }

    pub(crate) fn start_mut(&mut self) -> *mut T {
        match &mut self.0 {
            Elements::Gpu(buffer) => buffer.as_device_ptr().as_ptr().cast_mut(),
            Elements::OpenCl(buffer) => buffer.start(),
            Elements::Host { storage, first, .. } => storage[*first..].as_mut_ptr(),
        }
    }
}
