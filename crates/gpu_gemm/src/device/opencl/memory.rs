//! Memory with the same addresses in kernels and on the host: shared virtual memory (SVM) of
//! OpenCL 2.0. Launches need addresses with offsets; a buffer of OpenCL 1.2 has none.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use opencl3::memory::{CL_MEM_READ_WRITE, svm_alloc, svm_free};

use super::device::{OpenClDevice, Session};
use crate::backend::Allocated;
use crate::error::DeviceError;

/// The least alignment of allocations, in bytes: the widest vector of OpenCL C.
const ALIGNMENT: u32 = 128;

/// Memory of a device.
struct Shared {
    /// Memory may outlive the device.
    session: Arc<Session>,
    start: NonNull<c_void>,
}

// SAFETY: it owns its memory, and OpenCL lets any thread use a context and a queue.
unsafe impl Send for Shared {}
// SAFETY: as above; a shared reference allows no operation.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // If the device fails, there is no caller to tell.
        let _ = self.session.queue().finish();
        let context = self.session.context();
        // SAFETY: it was allocated in this context, and nothing that was started still uses it.
        let _ = unsafe { svm_free(context, self.start.as_ptr()) };
    }
}

impl OpenClDevice {
    /// Allocates `bytes` bytes with unspecified values.
    pub(super) fn room(&self, bytes: usize) -> Result<Allocated, DeviceError> {
        let out_of_memory = || DeviceError::OpenClOutOfMemory {
            bytes,
            total: self.properties().memory_bytes,
        };
        if bytes > self.properties().memory_bytes {
            return Err(out_of_memory());
        }
        // An allocation of OpenCL must not be empty. SAFETY: the flags are those of plain SVM,
        // which every opened device has.
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
