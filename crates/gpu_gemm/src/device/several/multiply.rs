//! A product of matrices that are on the devices: panels travel from device to device, and those
//! that have arrived are multiplied.

use std::time::Instant;

use cust::context::CurrentContext;

use super::Done;
use super::located::Located;
use super::product::{Product, Step};
use crate::device::cuda::rectangle::copy_between;
use crate::error::DeviceError;
use crate::launch::Element;
use crate::split::Panel;

impl<T: Element, C: Element> Product<'_, T, C> {
    /// Runs the product, and waits for it. It may run again: then it starts from the C that it
    /// left.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    pub fn multiply(&mut self) -> Result<Done, DeviceError> {
        let began = Instant::now();
        let enqueued = self.enqueue();
        // Whatever happened, nothing may lose its memory while it is used.
        let ended = self.finish_all();
        let time = began.elapsed();
        let received = enqueued?;
        ended.map(|()| Done { time, received })
    }

    /// Waits for everything that all devices do.
    pub(super) fn finish_all(&self) -> Result<(), DeviceError> {
        let mut ended = Ok(());
        for device in 0..self.split.devices() {
            let waited = self.finish(device);
            ended = ended.and(waited.map_err(self.devices.named(device)));
        }
        ended
    }

    /// Waits for everything that a device does.
    fn finish(&self, device: usize) -> Result<(), DeviceError> {
        let part = &self.devices.parts[device];
        let last = self.work[device].0.last();
        match (part.gpu(), last) {
            (Some(gpu), Some(step)) => {
                let crashed = gpu.after(step.plan.variant().name);
                match gpu.enter() {
                    Err(DeviceError::ContextLost(error)) => Err(crashed(error)),
                    Err(error) => Err(error),
                    Ok(()) => CurrentContext::synchronize().map_err(crashed),
                }
            }
            _ => part.synchronize(),
        }
    }

    /// Starts everything, on all devices in turn: what is launched is short beside what it
    /// computes. Returns the bytes that each device receives.
    fn enqueue(&self) -> Result<Vec<usize>, DeviceError> {
        let count = self.split.devices();
        let mut received = vec![0; count];
        let mut arrived: Vec<Vec<Panel>> = vec![Vec::new(); count];
        let reads_c = !self.beta.is_zero();
        for (device, received) in received.iter_mut().enumerate() {
            let (home, local) = (self.home_of_c(device), self.c_of(device));
            if reads_c && home.device != device {
                self.send(home, local, device)
                    .and_then(|()| self.devices.parts[device].arrived())
                    .map_err(self.devices.named(device))?;
                *received += home.bytes();
            }
        }
        let most = self.work.iter().map(|(steps, _)| steps.len()).max();
        for index in 0..most.unwrap_or(0) {
            for device in 0..count {
                let Some(step) = self.work[device].0.get(index) else {
                    continue;
                };
                let bytes = self.multiply_block(device, step, &mut arrived[device]);
                received[device] += bytes.map_err(self.devices.named(device))?;
            }
        }
        for device in 0..count {
            let (home, local) = (self.home_of_c(device), self.c_of(device));
            if home.device != device {
                self.devices.parts[device]
                    .computed()
                    .and_then(|()| self.send(local, home, device))
                    .map_err(self.devices.named(device))?;
                received[home.device] += home.bytes();
            }
        }
        Ok(received)
    }

    /// Starts to copy the panels that a block needs and that are not on their way yet, and the
    /// launches that wait for them. Returns the bytes that are copied.
    pub(super) fn multiply_block(
        &self,
        device: usize,
        step: &Step,
        arrived: &mut Vec<Panel>,
    ) -> Result<usize, DeviceError> {
        let part = &self.devices.parts[device];
        let mut received = 0;
        for panel in step.panels {
            let origin = self.origin(panel);
            if origin.device == device || arrived.contains(&panel) {
                continue;
            }
            self.send(origin, self.seen_from(device, panel), device)?;
            part.arrived()?; // launches from here on wait for this copy
            arrived.push(panel);
            received += origin.bytes();
        }
        part.launch(step)?;
        Ok(received)
    }

    /// Starts a copy, on the stream for copies of device `of`, which is one of the two.
    fn send<E: Element>(
        &self,
        from: Located<E>,
        to: Located<E>,
        of: usize,
    ) -> Result<(), DeviceError> {
        let (width, height) = (from.size.1 * size_of::<E>(), from.size.0);
        let gpus = (self.devices.gpu(from.device), self.devices.gpu(to.device));
        let (source, target) = (from.start.cast::<u8>(), to.start.cast::<u8>());
        let part = &self.devices.parts[of];
        if let ((Some(one), Some(other)), Some(stream)) = (gpus, &part.copies) {
            part.enter()?;
            let (one, other) = ((one, source, from.pitch()), (other, target, to.pitch()));
            // SAFETY: both lie in memory of this product, which outlives `multiply`'s last wait,
            // and which has room for that many rows; the stream is of this device.
            return unsafe { copy_between(one, other, (width, height), stream) };
        }
        for row in 0..height {
            let (from, to) = (
                source.wrapping_add(row * from.pitch()),
                target.wrapping_add(row * to.pitch()),
            );
            // SAFETY: both rows lie in memory of this product, and simulators run one launch
            // after the other.
            unsafe { std::ptr::copy_nonoverlapping(from, to, width) };
        }
        Ok(())
    }

    /// Waits for all devices.
    pub(super) fn synchronize(&self) -> Result<(), DeviceError> {
        for device in 0..self.split.devices() {
            let waited = self.devices.parts[device].synchronize();
            waited.map_err(self.devices.named(device))?;
        }
        Ok(())
    }
}
