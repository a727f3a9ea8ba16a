//! Memory that kernels and the host know by the same addresses: shared virtual memory (SVM) of
//! OpenCL 2.0. A launch list has addresses, with offsets; a buffer of OpenCL 1.2 has none.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use opencl3::memory::{CL_MEM_READ_WRITE, svm_alloc, svm_free};

use super::device::{OpenClDevice, Session};
use crate::backend::Allocated;
use crate::error::DeviceError;

/// Bytes that every allocation starts at a multiple of at least: the widest vector of OpenCL C.
const ALIGNMENT: u32 = 128;

/// Memory of a device.
struct Shared {
    /// Memory may outlive the device.
    session: Arc<Session>,
    start: NonNull<c_void>,
}

// SAFETY: it owns its memory, and OpenCL lets any thread use a context and a queue.
unsafe impl Send for Shared {}
// SAFETY: as above; nothing is done through a shared one.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // If the device fails, there is nobody to tell.
        let _ = self.session.queue().finish();
        let context = self.session.context();
        // SAFETY: it was allocated in this context, and nothing that was started uses it any
        // longer.
        let _ = unsafe { svm_free(context, self.start.as_ptr()) };
    }
}

impl OpenClDevice {
    /// So many bytes, whose values are left open.
    pub(super) fn room(&self, bytes: usize) -> Result<Allocated, DeviceError> {
        let out_of_memory = || DeviceError::OpenClOutOfMemory {
            bytes,
            total: self.properties().memory_bytes,
        };
        if bytes > self.properties().memory_bytes {
            return Err(out_of_memory());
        }
        // No allocation of OpenCL is empty. SAFETY: the flags are those of plain SVM, which the
        // device has: it would not have been opened otherwise.
        let start = unsafe {
            let context = self.session().context();
            svm_alloc(context, CL_MEM_READ_WRITE, bytes.max(1), ALIGNMENT)
        };
        let start = start.ok().and_then(NonNull::new);
        let shared = Shared {
            session: self.session().clone(),
            start: start.ok_or_else(out_of_memory)?,
        };
        Ok(Allocated::new(shared.start.as_ptr().cast(), shared))
    }
}
