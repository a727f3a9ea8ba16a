//! Copies of matrices between the host's memory and the devices on which they start: large ones of
//! all devices at the same time, through page-locked buffers.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use super::located::{HostRows, Located, source, target, transfer};
use super::product::Product;
use super::{Devices, HostProblem};
use crate::device::cuda::rectangle::{Side, copy};
use crate::device::cuda::staged::{Direction, Job, Transfer, copy_all};
use crate::error::DeviceError;
use crate::launch::Element;
use crate::split::Panel;

impl Devices {
    /// Carries out copies between host and GPUs, of all GPUs at the same time; those to GPUs are on
    /// the streams for copies when it returns.
    ///
    /// # Safety
    ///
    /// As [`copy_all`]; each is of a part that is a GPU.
    pub(super) unsafe fn stage(
        &self,
        transfers: Vec<(usize, Transfer)>,
    ) -> Result<(), DeviceError> {
        let mut rest = transfers;
        while !rest.is_empty() {
            // A device has one set of buffers, and so one copy after the other.
            let mut busy = BTreeSet::new();
            let (now, later): (Vec<_>, Vec<_>) = rest
                .into_iter()
                .partition(|(device, _)| busy.insert(*device));
            rest = later;
            // Buffers are as good as before even if a thread that held the lock panicked.
            let lock = |(device, _): &(usize, _)| {
                let stage = self.parts[*device].stage.lock();
                stage.unwrap_or_else(PoisonError::into_inner)
            };
            let mut stages: Vec<_> = now.iter().map(lock).collect();
            let jobs = now.iter().zip(&mut stages).filter_map(|(copy, stage)| {
                let part = &self.parts[copy.0];
                Some(Job {
                    stage,
                    gpu: part.gpu()?,
                    stream: part.copies.as_ref()?,
                    transfer: copy.1,
                })
            });
            // SAFETY: as the caller vouches.
            let failed = unsafe { copy_all(jobs.collect()) };
            if let Some((index, error)) = failed.into_iter().next() {
                return Err(self.named(now[index].0)(error));
            }
        }
        Ok(())
    }
}

impl<T: Element, C: Element> Product<'_, T, C> {
    /// Copies a problem's matrices, of the same shape and stored alike, to where they start.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    ///
    /// # Panics
    ///
    /// If a matrix is shorter than the shape says.
    pub fn write(&mut self, problem: &HostProblem<'_, T, C>) -> Result<(), DeviceError> {
        let (a, b) = ((problem.a.0, problem.a.1), (problem.b.0, problem.b.1));
        self.write_factors(a, b)?;
        self.write_c(problem.c.0, problem.c.1)
    }

    /// Copies A and B to where they start.
    pub(super) fn write_factors(
        &self,
        a: (&[T], usize),
        b: (&[T], usize),
    ) -> Result<(), DeviceError> {
        for (panel, matrix) in [(Panel::A as fn(usize) -> Panel, a), (Panel::B, b)] {
            let panels = (0..self.split.devices()).map(panel);
            let copies = panels.map(|panel| {
                let (target, (row, column)) = (self.origin(panel), self.position(panel));
                (target, source(matrix, (row, column), target.size))
            });
            // SAFETY: `source` has found the rows in the slice, which nothing writes meanwhile.
            unsafe { self.exchange(copies.collect(), Direction::ToDevice)? };
        }
        Ok(())
    }

    /// Copies a new C, as it is stored in host memory, to where it starts.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    ///
    /// # Panics
    ///
    /// If it is shorter than the shape says.
    pub fn write_c(&mut self, c: &[C], ldc: usize) -> Result<(), DeviceError> {
        let copies = (0..self.split.devices()).map(|device| {
            let (rows, columns) = self.split.block_of_c(device);
            let target = self.home_of_c(device);
            (
                target,
                source((c, ldc), (rows.start, columns.start), target.size),
            )
        });
        // SAFETY: `source` has found the rows in the slice, which nothing writes meanwhile.
        unsafe { self.exchange(copies.collect(), Direction::ToDevice)? };
        // A GPU may still be writing what it was sent, and the others do not wait for its stream.
        self.synchronize()
    }

    /// Copies C to host memory; what lies between its rows stays as it is.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    ///
    /// # Panics
    ///
    /// If there is less room than the shape needs.
    pub fn read_c(&self, c: &mut [C], ldc: usize) -> Result<(), DeviceError> {
        let copies = (0..self.split.devices()).map(|device| {
            let (rows, columns) = self.split.block_of_c(device);
            let home = self.home_of_c(device);
            (
                home,
                target((&mut *c, ldc), (rows.start, columns.start), home.size),
            )
        });
        // SAFETY: `target` has found the rows in the slice, and blocks do not overlap.
        unsafe { self.exchange(copies.collect(), Direction::ToHost) }
    }

    /// Copies from host memory, or to it, on all devices at the same time; small matrices one after
    /// the other. To the host they are done when it returns.
    ///
    /// # Safety
    ///
    /// The side of the host has as many rows of as many elements; nothing writes what is read, and
    /// for a copy to the host no one else uses them. Sources of GPUs are complete, or the streams
    /// for copies wait for them.
    unsafe fn exchange<E: Element>(
        &self,
        copies: Vec<(Located<E>, HostRows)>,
        direction: Direction,
    ) -> Result<(), DeviceError> {
        let mut staged = Vec::new();
        for (located, host) in copies {
            if located.bytes() == 0 {
                continue;
            }
            let is_gpu = self.devices.gpu(located.device).is_some();
            if is_gpu && located.bytes() >= self.devices.staging.least_bytes {
                staged.push((located.device, transfer(located, host, direction)));
                continue;
            }
            // SAFETY: as the caller vouches.
            let copied = unsafe { self.exchange_directly(located, host, direction) };
            copied.map_err(self.devices.named(located.device))?;
        }
        // SAFETY: the same; the memory of devices is this product's, which waits before it frees
        // it.
        unsafe { self.devices.stage(staged) }
    }

    /// Copies `located` from host memory, or to it, and waits.
    ///
    /// # Safety
    ///
    /// As [`Product::exchange`].
    unsafe fn exchange_directly<E: Element>(
        &self,
        located: Located<E>,
        (host, host_pitch): HostRows,
        direction: Direction,
    ) -> Result<(), DeviceError> {
        let (height, width) = (located.size.0, located.size.1 * size_of::<E>());
        let part = &self.devices.parts[located.device];
        part.enter()?;
        if part.gpu().is_some() {
            let device = Side::Device(located.start as u64, located.pitch());
            let host = Side::Host(host, host_pitch);
            let (from, to) = match direction {
                Direction::ToDevice => (host, device),
                Direction::ToHost => (device, host),
            };
            // SAFETY: as the caller vouches; the device's context is current.
            return unsafe { copy(from, to, width, height) };
        }
        let own = (located.start.cast::<u8>(), located.pitch());
        for row in 0..height {
            let at = |(start, pitch): HostRows| start.wrapping_add(row * pitch);
            let (from, to) = match direction {
                Direction::ToDevice => (at((host, host_pitch)), at(own)),
                Direction::ToHost => (at(own), at((host, host_pitch))),
            };
            // SAFETY: the caller vouches for the host's rows; the others are this product's.
            unsafe { std::ptr::copy_nonoverlapping(from, to, width) };
        }
        Ok(())
    }
}
