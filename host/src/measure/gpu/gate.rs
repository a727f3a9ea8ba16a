//! A stream that waits until all is queued on it.

use std::sync::mpsc::{self, Sender};

use cust::stream::Stream;
use gpu_gemm::DeviceError;
use gpu_gemm::device::cuda::status::during;

/// Keeps a stream from what is queued on it, until it is dropped.
pub(super) struct Gate {
    _is_closed: Sender<()>,
}

impl Gate {
    pub fn close(stream: &Stream) -> Result<Gate, DeviceError> {
        let (is_closed, opens) = mpsc::channel::<()>();
        // Nothing is ever sent: the wait ends when the other side is dropped.
        let wait = move || opens.recv().unwrap_or_default();
        let added = stream.add_callback(Box::new(wait));
        added.map_err(during("Queueing a wait for the host"))?;
        Ok(Gate {
            _is_closed: is_closed,
        })
    }
}
