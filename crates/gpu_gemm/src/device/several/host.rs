//! Matrices in host memory: copies to the devices and back, and a product that multiplies each
//! piece while the next one is copied, and copies finished parts of C back while the others are
//! computed.
//!
//! ```text
//!     host to GPU    | a0 | b0 | a1 | b1 |
//!     launches                 | a0 b0 | a1 b0 | a b1 | a b' |      time ---->
//!     GPU to host                             | c  |  c |  c | c |
//! ```
//!
//! The host walks through these in order. A copy by several threads
//! ([`Stage`](crate::device::cuda::Stage)) returns when it has read the host's memory, a launch at
//! once. Panels of other devices, such as `b'`, are copied from these, when everything from the
//! host has arrived there.

use std::collections::{BTreeSet, VecDeque};
use std::panic::resume_unwind;
use std::thread;
use std::time::Instant;

use super::product::{A, Area, B, C, Product};
use super::{Devices, Done, Start};
use crate::backend::Way;
use crate::call::{MatrixLayout, Shape, Transpose};
use crate::choose::Choice;
use crate::device::cuda::{Side, Transfer};
use crate::error::DeviceError;
use crate::launch::{Element, Scalar};
use crate::split::{Block, Panel, Piece, Split};

/// A matrix that is read, with its rows and columns as stored.
///
/// # Panics
///
/// If it is shorter.
fn source<E>((elements, leading): (&[E], usize), size: (usize, usize)) -> Side {
    assert!(MatrixLayout::one(size, leading).extent() <= elements.len());
    Side {
        start: elements.as_ptr().cast_mut().cast(),
        pitch: leading * size_of::<E>(),
    }
}

/// The same of one that is written.
fn target<E>((elements, leading): (&mut [E], usize), size: (usize, usize)) -> Side {
    assert!(MatrixLayout::one(size, leading).extent() <= elements.len());
    Side {
        start: elements.as_mut_ptr().cast(),
        pitch: leading * size_of::<E>(),
    }
}

impl<T: Element, S: Element> Product<'_, T, S> {
    /// Copies A and B from host memory, each given with its leading dimension, to the devices
    /// where they start.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    ///
    /// # Panics
    ///
    /// If a matrix is shorter than the shape says.
    pub fn write(&mut self, a: (&[T], usize), b: (&[T], usize)) -> Result<(), DeviceError> {
        self.write_factors(a, b)?;
        // A GPU may still be receiving, and the others do not wait for its stream.
        self.finish()
    }

    /// The same, without waiting for it.
    fn write_factors(&self, a: (&[T], usize), b: (&[T], usize)) -> Result<(), DeviceError> {
        let devices = 0..self.split.devices();
        let [size_of_a, size_of_b] = self.sizes_of_factors();
        let hosts = [source(a, size_of_a), source(b, size_of_b)];
        let panels = devices.flat_map(|device| [Panel::A(device), Panel::B(device)]);
        let copies = panels.map(|panel| {
            let (home, area) = self.panel(panel);
            let host = hosts[area.matrix];
            (home, area, host)
        });
        // SAFETY: the rows are in the slices, which nothing writes until the copies are done.
        unsafe { self.exchange(copies.collect(), Way::ToDevice) }
    }

    /// Copies a new C from host memory to the devices where it starts.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    ///
    /// # Panics
    ///
    /// If it is shorter than the shape says.
    pub fn write_c(&mut self, c: &[S], ldc: usize) -> Result<(), DeviceError> {
        let Shape { m, n, .. } = self.split.shape();
        let copies = self.blocks_of_c(source((c, ldc), (m, n)));
        // SAFETY: the rows are in the slice, which nothing writes until the copies are done.
        unsafe { self.exchange(copies, Way::ToDevice)? };
        self.finish() // as in `write`
    }

    /// Copies C to host memory; elements between its rows stay unchanged.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    ///
    /// # Panics
    ///
    /// If the slice is shorter than the shape needs.
    pub fn read_c(&self, c: &mut [S], ldc: usize) -> Result<(), DeviceError> {
        let Shape { m, n, .. } = self.split.shape();
        let copies = self.blocks_of_c(target((c, ldc), (m, n)));
        // SAFETY: the rows are in the slice, and blocks do not overlap.
        unsafe { self.exchange(copies, Way::ToHost) }
    }

    fn blocks_of_c(&self, c: Side) -> Vec<(usize, Area, Side)> {
        let block = |device| {
            (
                self.home(C, device),
                self.block(self.split.block_of_c(device)),
                c,
            )
        };
        (0..self.split.devices()).map(block).collect()
    }

    /// The rows and columns of A and of B, as stored.
    fn sizes_of_factors(&self) -> [(usize, usize); 2] {
        let Shape { m, n, k } = self.split.shape();
        [self.transposes[A].of((m, k)), self.transposes[B].of((k, n))]
    }

    /// Copies areas from host memory to devices, or the other way, on all devices at the same
    /// time. Copies to the host are done when this returns.
    ///
    /// # Safety
    ///
    /// The areas are in the host's matrices; nothing writes the sources, and nothing else uses the
    /// targets. Sources on GPUs are complete, or the streams for copies wait for them.
    unsafe fn exchange(
        &self,
        copies: Vec<(usize, Area, Side)>,
        way: Way,
    ) -> Result<(), DeviceError> {
        let copies = copies.into_iter();
        let transfers: Vec<_> = copies
            .map(|(device, area, host)| self.transfer(device, &area, host, way))
            .collect();
        // SAFETY: the caller vouches for the host's rows; the memory of devices is this product's,
        // which waits before it frees it.
        unsafe { self.devices.stage(&transfers) }
    }

    /// A copy of an area between memory of a device and of the host, where its matrix is `host`.
    fn transfer(&self, device: usize, area: &Area, host: Side, way: Way) -> (usize, Transfer) {
        let (width, height) = self.size(area);
        let transfer = Transfer {
            way,
            host: self.in_host(area, host),
            device: self.at(device, area),
            width,
            height,
        };
        (device, transfer)
    }
}

impl Devices {
    /// Makes copies between the host and devices, for all devices at the same time; those to GPUs
    /// are on the streams for copies when this returns.
    ///
    /// # Safety
    ///
    /// As [`Copies::copy`](crate::device::Copies::copy), for each.
    unsafe fn stage(&self, transfers: &[(usize, Transfer)]) -> Result<(), DeviceError> {
        // A device has one set of buffers, so its copies run one after the other.
        let copy = |device: usize| {
            let part = &self.parts[device];
            let mut own = transfers.iter().filter(|(of, _)| *of == device);
            // SAFETY: as the caller vouches.
            let copied = own.try_for_each(|(_, of)| unsafe { part.copies.copy(&part.device, *of) });
            copied.map_err(self.named(device))
        };
        let devices: BTreeSet<usize> = transfers.iter().map(|(device, _)| *device).collect();
        thread::scope(|scope| {
            let copy = &copy;
            let start = |device: &usize| {
                let device = *device;
                scope.spawn(move || copy(device))
            };
            let threads: Vec<_> = devices.iter().map(start).collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            let results = joined.map(|joined| joined.unwrap_or_else(|panic| resume_unwind(panic)));
            results.fold(Ok(()), Result::and)
        })
    }

    /// Prepares the product of matrices in host memory, A and B stored transposed or not, on the
    /// first `count` devices: with the chosen kernel, or for `None` with the one that suits each
    /// part.
    ///
    /// # Errors
    ///
    /// A device has not enough memory, or fails; it is named.
    ///
    /// # Panics
    ///
    /// If there are fewer devices, or the kernel is not for these types.
    pub fn streamed<T: Element, S: Element>(
        &self,
        product: (Shape, [Transpose; 2]),
        count: usize,
        scalars: (Scalar, Scalar),
        choice: Option<Choice>,
    ) -> Result<Streamed<'_, T, S>, DeviceError> {
        let spread = [Start::Spread; 3];
        let mut product = Product::<T, S>::allocated(self, product, count, spread, scalars)?;
        let (split, least_lines) = (&product.split, self.staging.least_lines);
        let Shape { m, n, k } = split.shape();
        let of_factor = (m * k).max(k * n) * size_of::<T>();
        let largest = of_factor.max(m * n * size_of::<S>()) / count;
        let is_staged = self.gpus() > 0 && largest >= self.staging.least_bytes;
        let schedules = is_staged.then(|| schedules(split, least_lines));
        product.plan(choice, |split, device| match &schedules {
            Some((schedules, _)) => {
                let blocks = schedules[device].iter().map(|piece| piece.block.clone());
                blocks.flatten().collect()
            }
            None => split.blocks(device),
        })?;
        Ok(Streamed { product, schedules })
    }
}

/// The steps of each device, in order, and the number of pieces that arrive from the host; the
/// steps after these need all panels.
fn schedules(split: &Split, least_lines: usize) -> (Vec<Vec<Piece>>, usize) {
    let devices = 0..split.devices();
    let arriving = devices.map(|device| split.pieces(device, least_lines));
    let mut schedules: Vec<Vec<Piece>> = arriving.collect();
    let most = schedules.iter().map(Vec::len).max().unwrap_or(0);
    for (device, schedule) in schedules.iter_mut().enumerate() {
        schedule.resize(most, Piece::default());
        schedule.extend(split.pieces_with_others(device, least_lines));
    }
    (schedules, most)
}

/// A product of matrices in host memory, on several devices.
pub struct Streamed<'devices, T: Element, S: Element> {
    product: Product<'devices, T, S>,
    /// `None` for small matrices and for simulators, which copy everything and then multiply.
    schedules: Option<(Vec<Vec<Piece>>, usize)>,
}

impl<T: Element, S: Element> Streamed<'_, T, S> {
    /// The product, with its split and its launches.
    pub fn product(&self) -> &Product<'_, T, S> {
        &self.product
    }

    /// Multiplies matrices, each given with its leading dimension, and waits. Elements between the
    /// rows of C stay unchanged. The time includes the copies.
    ///
    /// # Errors
    ///
    /// A device fails; it is named. Then C is unchanged or incomplete.
    ///
    /// # Panics
    ///
    /// If a matrix is shorter than the shape says.
    pub fn multiply(
        &mut self,
        a: (&[T], usize),
        b: (&[T], usize),
        (c, ldc): (&mut [S], usize),
    ) -> Result<Done, DeviceError> {
        let began = Instant::now();
        let product = &mut self.product;
        let received = match &self.schedules {
            None => {
                product.write_factors(a, b)?;
                // Also waits for A and B.
                match product.beta.is_zero() {
                    true => product.finish()?,
                    false => product.write_c(c, ldc)?,
                }
                let received = product.multiply()?.received;
                product.read_c(c, ldc)?;
                received
            }
            Some((schedules, arriving)) => {
                let Shape { m, n, .. } = product.split.shape();
                let [size_of_a, size_of_b] = product.sizes_of_factors();
                let factors = [source(a, size_of_a), source(b, size_of_b)];
                let hosts = [factors[A], factors[B], target((c, ldc), (m, n))];
                // SAFETY: the matrices are borrowed until the product has ended.
                let streamed = unsafe { product.stream(schedules, *arriving, hosts) };
                // Even after an error, memory must not be freed while it is used; and the error
                // names a crashed kernel, not the copy that failed because of it.
                product.finish().and(streamed)?
            }
        };
        let time = began.elapsed();
        Ok(Done { time, received })
    }
}

impl<T: Element, S: Element> Product<'_, T, S> {
    /// Starts everything, and copies finished blocks to the host. Returns the bytes that each
    /// device receives from others.
    ///
    /// # Safety
    ///
    /// Until the end nothing writes the host's A and B, or uses its C.
    unsafe fn stream(
        &self,
        schedules: &[Vec<Piece>],
        arriving: usize,
        hosts: [Side; 3],
    ) -> Result<Vec<usize>, DeviceError> {
        let count = schedules.len();
        let parts = &self.devices.parts;
        let named = |device| self.devices.named(device);
        let to_device =
            |device, area: Area| self.transfer(device, &area, hosts[area.matrix], Way::ToDevice);
        let of_c = |block: &Block| self.block((block.rows.clone(), block.columns.clone()));
        // Blocks in progress, each with an event at its end.
        let mut launched: Vec<VecDeque<_>> = (0..count).map(|_| VecDeque::new()).collect();
        let mut arrived = vec![Vec::new(); count];
        let mut received = vec![0; count];
        for index in 0..schedules.iter().map(Vec::len).max().unwrap_or(0) {
            if index == arriving {
                // Panels are sent from device to device after they have arrived from the host.
                self.arrived_everywhere()?;
            }
            let now = schedules.iter().enumerate();
            let now = now.filter_map(|(device, pieces)| Some((device, pieces.get(index)?)));
            let now: Vec<(usize, &Piece)> = now.collect();
            let mut copies = Vec::new();
            for (device, piece) in &now {
                let arrives = piece.arrives.clone();
                copies.extend(arrives.map(|of| to_device(*device, self.lines(of.0, of.1))));
                if let (Some(block), false) = (&piece.block, self.beta.is_zero()) {
                    copies.push(to_device(*device, of_c(block)));
                }
            }
            // SAFETY: the host's rows are in its matrices, which nothing writes; the device's rows
            // belong to this product.
            unsafe { self.devices.stage(&copies)? };
            for (device, piece) in now {
                parts[device].arrived().map_err(named(device))?;
                let Some(block) = &piece.block else { continue };
                let step = &self.work[device].0[launched[device].len()];
                let bytes = self.multiply_block(device, step, &mut arrived[device]);
                received[device] += bytes.map_err(named(device))?;
                let ended = parts[device].after_launches().map_err(named(device))?;
                launched[device].push_back((block, ended));
            }
        }
        // Finished blocks are copied back while the others are computed.
        while launched.iter().any(|queue| !queue.is_empty()) {
            let mut transfers = Vec::new();
            for (device, queue) in launched.iter_mut().enumerate() {
                if let Some((block, ended)) = queue.pop_front() {
                    parts[device]
                        .copies_wait_for(ended)
                        .map_err(named(device))?;
                    transfers.push(self.transfer(device, &of_c(block), hosts[C], Way::ToHost));
                }
            }
            // SAFETY: the rows are in the host's C, and blocks do not overlap; the streams wait
            // for the launches.
            unsafe { self.devices.stage(&transfers)? };
        }
        Ok(received)
    }

    /// Makes the streams for copies of all devices wait for each other.
    fn arrived_everywhere(&self) -> Result<(), DeviceError> {
        let parts = &self.devices.parts[..self.split.devices()];
        for (device, part) in parts.iter().enumerate() {
            for (other, waiting) in parts.iter().enumerate() {
                if other != device {
                    let event = part.after_copies().map_err(self.devices.named(device))?;
                    let waits = waiting.copies_wait_for(event);
                    waits.map_err(self.devices.named(other))?;
                }
            }
        }
        Ok(())
    }
}
