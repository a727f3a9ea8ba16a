//! How long launches take: between two events of a stream, or by the clock on the wall.

use std::sync::mpsc::{self, Sender};

use cust::event::{Event, EventFlags};
use cust::stream::Stream;
use gpu_gemm::DeviceError;
use gpu_gemm::device::cuda::status::during;

/// An event that a stream reaches when it has done what was queued before.
pub(in crate::measure) fn mark(stream: &Stream) -> Result<Event, DeviceError> {
    let event = Event::new(EventFlags::DEFAULT).map_err(during("Making an event"))?;
    let recorded = event.record(stream);
    recorded.map_err(during("Recording an event"))?;
    Ok(event)
}

/// Seconds from one event to another, once both have happened.
pub(in crate::measure) fn seconds(start: &Event, end: &Event) -> Result<f64, DeviceError> {
    let milliseconds = end.elapsed_time_f32(start);
    Ok(f64::from(milliseconds.map_err(during("Reading a time"))?) / 1e3)
}

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

/// How long some launches took.
pub(super) enum Span {
    /// Between two events, once both have happened.
    Events(Event, Event),
    Seconds(f64),
}

impl Span {
    pub fn seconds(&self) -> Result<f64, DeviceError> {
        match self {
            Span::Seconds(seconds) => Ok(*seconds),
            Span::Events(start, end) => seconds(start, end),
        }
    }
}
