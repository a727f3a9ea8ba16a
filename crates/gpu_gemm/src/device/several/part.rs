//! One of several devices: its memory, its two streams, and their waits.

use cust::context::CurrentContext;
use cust::event::{Event, EventFlags};
use cust::stream::{Stream, StreamWaitEventFlags};

use crate::backend::Allocated;
use crate::device::cuda::status::during;
use crate::device::cuda::{CudaDevice, Entered};
use crate::device::{Copies, Device};
use crate::error::DeviceError;

/// One of the devices.
pub(super) struct Part {
    /// The copies between it and the host. Panels of other GPUs arrive on the same stream.
    pub(super) copies: Copies,
    pub(super) device: Device,
}

impl Part {
    pub(super) fn gpu(&self) -> Option<&CudaDevice> {
        self.device.gpu()
    }

    /// Its name, as `--device` spells it.
    pub(super) fn name(&self) -> String {
        match self.gpu() {
            Some(gpu) => format!("cuda:{}", gpu.properties().ordinal),
            None => "sim".to_string(),
        }
    }

    /// Allocates bytes with unspecified values in the device's memory.
    pub(super) fn allocate(&self, bytes: usize) -> Result<Allocated, DeviceError> {
        let backend = self.device.as_backend(&|| ())?;
        let _entered = backend.enter()?;
        backend.allocate(bytes.max(1))
    }

    /// Makes the device's context current.
    pub(super) fn enter(&self) -> Result<Entered, DeviceError> {
        self.gpu().map_or(Ok(Entered::NOTHING), CudaDevice::enter)
    }

    /// Waits for all work of the device.
    pub(super) fn synchronize(&self) -> Result<(), DeviceError> {
        if self.gpu().is_none() {
            return Ok(());
        }
        let _entered = self.enter()?;
        CurrentContext::synchronize().map_err(during("Waiting for the GPU"))
    }

    /// Makes later launches wait for the copies that were started.
    pub(super) fn arrived(&self) -> Result<(), DeviceError> {
        self.wait_on(self.launches(), self.after_copies()?)
    }

    /// Makes later copies wait for everything launched so far.
    pub(super) fn computed(&self) -> Result<(), DeviceError> {
        self.copies_wait_for(self.after_launches()?)
    }

    /// Makes later copies wait for an event of this device or another.
    pub(super) fn copies_wait_for(&self, event: Option<Event>) -> Result<(), DeviceError> {
        self.wait_on(self.copies.stream(), event)
    }

    /// An event after everything launched so far; none on a simulator, where launches have ended.
    pub(super) fn after_launches(&self) -> Result<Option<Event>, DeviceError> {
        self.event_on(self.launches())
    }

    /// An event after the copies started so far.
    pub(super) fn after_copies(&self) -> Result<Option<Event>, DeviceError> {
        self.event_on(self.copies.stream())
    }

    /// The stream of launches, on a GPU.
    fn launches(&self) -> Option<&Stream> {
        self.gpu().map(CudaDevice::stream)
    }

    /// An event after everything on a stream of this device.
    fn event_on(&self, stream: Option<&Stream>) -> Result<Option<Event>, DeviceError> {
        let Some(stream) = stream else {
            return Ok(None);
        };
        let _entered = self.enter()?;
        let event = Event::new(EventFlags::DISABLE_TIMING).map_err(during("Making an event"))?;
        let recorded = event.record(stream);
        recorded.map_err(during("Recording an event"))?;
        Ok(Some(event))
    }

    /// Makes later work on a stream of this device wait for an event.
    fn wait_on(&self, stream: Option<&Stream>, event: Option<Event>) -> Result<(), DeviceError> {
        let (Some(stream), Some(event)) = (stream, event) else {
            return Ok(());
        };
        let _entered = self.enter()?;
        let waits = stream.wait_event(event, StreamWaitEventFlags::DEFAULT);
        waits.map_err(during("Ordering two streams"))
    }
}
