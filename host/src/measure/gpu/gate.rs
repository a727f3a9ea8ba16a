//! A gate that holds a stream back until everything is queued on it.

use std::sync::mpsc::{self, Sender};

use cust::stream::Stream;
use gpu_gemm::DeviceError;
use gpu_gemm::device::cuda::status::during;

/// Holds back the work queued on a stream, until it is dropped.
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
