//! Copies of rows between memory of the host and of a device: on a GPU they run beside launches,
//! on a separate stream and by several threads ([`Stage`]).

use std::sync::{Mutex, PoisonError};

use cust::stream::{Stream, StreamFlags};

use super::Device;
use super::cuda::current::InContext;
use super::cuda::status::during;
use super::cuda::{CudaDevice, Stage, Staging, Transfer};
use crate::error::DeviceError;

/// Copies rows between memory of the host and of one device.
pub struct Copies {
    /// The stream, on a GPU.
    stream: Option<InContext<Stream>>,
    stage: Mutex<Stage>,
}

impl Copies {
    /// The copies of a device.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn of(device: &Device, staging: Staging) -> Result<Copies, DeviceError> {
        let stream = |gpu: &CudaDevice| {
            let _entered = gpu.enter()?;
            let stream = Stream::new(StreamFlags::DEFAULT, None);
            Ok::<_, DeviceError>(gpu.own(stream.map_err(during("Making a stream"))?))
        };
        Ok(Copies {
            stream: device.one_gpu().map(stream).transpose()?,
            stage: Mutex::new(Stage::new(staging)),
        })
    }

    /// Stages copies as `staging` says from now on.
    pub(super) fn stage_as(&mut self, staging: Staging) {
        self.stage = Mutex::new(Stage::new(staging));
    }

    /// The stream of a GPU on which it copies.
    pub(super) fn stream(&self) -> Option<&Stream> {
        self.stream.as_deref()
    }

    /// Copies rows. A copy to the host is done when it returns; one to a GPU when the stream
    /// reaches it ([`Copies::wait`]).
    ///
    /// # Errors
    ///
    /// There is no memory for the buffers, or the device fails.
    ///
    /// # Safety
    ///
    /// `device` is the device of these copies. Both sides have these rows until the copy is done,
    /// and until then nothing writes the source or touches the target.
    pub unsafe fn copy(&self, device: &Device, transfer: Transfer) -> Result<(), DeviceError> {
        if let (Some(gpu), Some(stream)) = (device.one_gpu(), &self.stream) {
            // The buffers are usable even if a thread that held the lock panicked.
            let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: as the caller vouches.
            return unsafe { stage.copy((gpu, stream), transfer) };
        }
        let backend = device.as_backend(&|| ())?;
        let (from, to) = transfer.sides();
        for row in 0..transfer.height {
            let (from, to) = (from.from((row, 0)).start, to.from((row, 0)).start);
            // SAFETY: as the caller vouches.
            unsafe { backend.copy(from, to, transfer.width, transfer.way)? };
        }
        Ok(())
    }

    /// Waits for all copies.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    pub fn wait(&self) -> Result<(), DeviceError> {
        let Some(stream) = &self.stream else {
            return Ok(());
        };
        let _entered = stream.enter()?;
        stream.synchronize().map_err(during("Waiting for a copy"))
    }
}
