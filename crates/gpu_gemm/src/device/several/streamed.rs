//! A product that begins and ends in memory of the host. Matrices arrive in pieces; what has
//! arrived is multiplied while the next piece travels, and what has been multiplied goes back while
//! the rest is.
//!
//! ```text
//!     host to GPU    | a0 | b0 | a1 | b1 |
//!     launches                 | a0 b0 | a1 b0 | a b1 | a b' |      time ---->
//!     GPU to host                             | c  |  c |  c | c |
//! ```
//!
//! The host walks through these in order. A copy by several threads
//! ([`Stage`](crate::device::cuda::Stage)) returns when it has read the host's memory, a launch at
//! once. Panels of other devices, such as `b'`, come from their memory, when all that arrives from
//! the host has arrived there.

use std::collections::VecDeque;
use std::time::Instant;

use cust::event::Event;

use super::located::{HostRows, Located, source, target, transfer};
use super::{Devices, Done, Planner, Product, Start};
use crate::call::{Shape, Transpose};
use crate::device::cuda::staged::{Direction, Transfer};
use crate::error::DeviceError;
use crate::launch::{Element, Scalar};
use crate::split::{Block, Panel, Piece, Split};

/// A product of matrices in memory of the host, on several devices.
pub struct Streamed<'devices, T: Element, C: Element> {
    product: Product<'devices, T, C>,
    /// What each device does; `None` for small matrices and for simulators, which copy everything
    /// and then multiply.
    schedules: Option<Vec<Schedule>>,
}

/// What a device does, in order: its launches are those of the pieces, and then of the blocks.
struct Schedule {
    pieces: Vec<Piece>,
    blocks: Vec<Block>,
}

/// A block that is being computed, and an event after that.
struct Launched<'a> {
    block: &'a Block,
    ended: Option<Event>,
}

impl Schedule {
    fn of(split: &Split, device: usize, least_lines: usize) -> Schedule {
        Schedule {
            pieces: split.pieces(device, least_lines),
            blocks: split.blocks_with_others(device, least_lines),
        }
    }

    fn launched(&self) -> impl Iterator<Item = &Block> {
        let own = self.pieces.iter().filter_map(|piece| piece.block.as_ref());
        own.chain(&self.blocks)
    }
}

impl Devices {
    /// Prepares the product of matrices in memory of the host, A and B stored transposed or not, on
    /// the first `count` devices: `plan` makes the plans of a device's parts.
    ///
    /// # Errors
    ///
    /// A device has not enough memory, or fails; it is named.
    ///
    /// # Panics
    ///
    /// If there are fewer devices, or a plan is not that of its call, or not for these types.
    pub fn streamed<T: Element, C: Element>(
        &self,
        product: (Shape, [Transpose; 2]),
        count: usize,
        scalars: (Scalar, Scalar),
        plan: &Planner<'_>,
    ) -> Result<Streamed<'_, T, C>, DeviceError> {
        let mut product = self.allocated(product, count, [Start::Spread; 3], scalars)?;
        let (split, least_lines) = (&product.split, self.staging.least_lines);
        let Shape { m, n, k } = split.shape();
        let of_factor = (m * k).max(k * n) * size_of::<T>();
        let largest = of_factor.max(m * n * size_of::<C>()) / count;
        let is_staged = self.gpus() > 0 && largest >= self.staging.least_bytes;
        let schedule = |device| Schedule::of(split, device, least_lines);
        let schedules = is_staged.then(|| (0..count).map(schedule).collect::<Vec<_>>());
        product.plan(plan, |split, device| match &schedules {
            Some(schedules) => schedules[device].launched().cloned().collect(),
            None => split.blocks(device),
        })?;
        Ok(Streamed { product, schedules })
    }
}

impl<T: Element, C: Element> Streamed<'_, T, C> {
    /// How it is divided.
    pub fn split(&self) -> &Split {
        self.product.split()
    }

    /// Multiplies matrices, each given with its leading dimension, and waits. What lies between the
    /// rows of C stays as it is. The time is that of everything, copies included.
    ///
    /// # Errors
    ///
    /// A device fails; it is named. Then C is as it was, or incomplete.
    ///
    /// # Panics
    ///
    /// If a matrix is shorter than the shape says.
    pub fn multiply(
        &mut self,
        a: (&[T], usize),
        b: (&[T], usize),
        (c, ldc): (&mut [C], usize),
    ) -> Result<Done, DeviceError> {
        let began = Instant::now();
        let product = &mut self.product;
        let received = match &self.schedules {
            None => {
                product.write_factors(a, b)?;
                // Also waits for A and B.
                match product.beta.is_zero() {
                    true => product.synchronize()?,
                    false => product.write_c(c, ldc)?,
                }
                let received = product.multiply()?.received;
                product.read_c(c, ldc)?;
                received
            }
            Some(schedules) => {
                let streamed = product.stream(schedules, a, b, (c, ldc));
                // Whatever happened, nothing may lose its memory while it is used; and a kernel
                // that crashed is named, not the copy that found out.
                product.finish_all().and(streamed)?
            }
        };
        let time = began.elapsed();
        Ok(Done { time, received })
    }
}

impl<T: Element, C: Element> Product<'_, T, C> {
    /// Starts everything, and copies to the host what is complete. Returns the bytes that each
    /// device receives from others.
    fn stream(
        &self,
        schedules: &[Schedule],
        a: (&[T], usize),
        b: (&[T], usize),
        (c, ldc): (&mut [C], usize),
    ) -> Result<Vec<usize>, DeviceError> {
        let count = schedules.len();
        let reads_c = !self.beta.is_zero();
        let mut launched: Vec<VecDeque<Launched<'_>>> =
            (0..count).map(|_| VecDeque::new()).collect();
        let mut arrived = vec![Vec::new(); count];
        let mut received = vec![0; count];
        let read_of_c = |c: &[C], device, block: &Block| {
            let first = (block.rows.start, block.columns.start);
            let to = self.c_of_block(device, block);
            arriving(to, source((c, ldc), first, to.size))
        };

        // What arrives from the host, and what that lets each device multiply.
        let pieces = |schedule: &Schedule| schedule.pieces.len();
        for index in 0..schedules.iter().map(pieces).max().unwrap_or(0) {
            let now = schedules.iter().enumerate();
            let now: Vec<(usize, &Piece)> = now
                .filter_map(|(device, schedule)| Some((device, schedule.pieces.get(index)?)))
                .collect();
            let mut copies: Vec<_> = now
                .iter()
                .map(|(_, piece)| self.piece(piece, a, b))
                .collect();
            let blocks = now
                .iter()
                .filter_map(|(device, piece)| Some((*device, piece.block.as_ref()?)));
            let blocks: Vec<(usize, &Block)> = blocks.collect();
            if reads_c {
                copies.extend(
                    blocks
                        .iter()
                        .map(|(device, block)| read_of_c(c, *device, block)),
                );
            }
            // SAFETY: the host's rows are in the slices, which nothing writes meanwhile.
            unsafe { self.send_all(copies)? };
            for (device, block) in blocks {
                self.start(device, block, &mut launched[device], &mut arrived[device])?;
            }
        }

        // Panels travel from device to device when they have arrived from the host.
        self.arrived_everywhere()?;
        let blocks = |schedule: &Schedule| schedule.blocks.len();
        for index in 0..schedules.iter().map(blocks).max().unwrap_or(0) {
            let now = schedules.iter().enumerate();
            let now: Vec<(usize, &Block)> = now
                .filter_map(|(device, schedule)| Some((device, schedule.blocks.get(index)?)))
                .collect();
            if reads_c {
                let copies = now
                    .iter()
                    .map(|(device, block)| read_of_c(c, *device, block));
                // SAFETY: as above.
                unsafe { self.send_all(copies.collect())? };
            }
            for (device, block) in now {
                let (launched, arrived) = (&mut launched[device], &mut arrived[device]);
                received[device] += self.start(device, block, launched, arrived)?;
            }
        }

        // What is complete goes back, while the rest is multiplied.
        while launched.iter().any(|queue| !queue.is_empty()) {
            let mut transfers = Vec::new();
            for (device, queue) in launched.iter_mut().enumerate() {
                let Some(Launched { block, ended }) = queue.pop_front() else {
                    continue;
                };
                let waits = self.devices.parts[device].copies_wait_for(ended);
                waits.map_err(self.devices.named(device))?;
                let from = self.c_of_block(device, block);
                let first = (block.rows.start, block.columns.start);
                let to = target((&mut *c, ldc), first, from.size);
                transfers.push((device, transfer(from, to, Direction::ToHost)));
            }
            // SAFETY: `target` has found the rows in the slice, and blocks do not overlap; the
            // streams wait for the launches.
            unsafe { self.devices.stage(transfers)? };
        }
        Ok(received)
    }

    /// The copy of a piece to its device.
    fn piece(&self, piece: &Piece, a: (&[T], usize), b: (&[T], usize)) -> (usize, Transfer) {
        let to = self.lines_of(self.origin(piece.panel), piece.panel, &piece.lines);
        let (matrix, first) = match piece.panel {
            Panel::A(_) => (a, self.transposes[0].of((piece.lines.start, 0))),
            Panel::B(_) => (b, self.transposes[1].of((0, piece.lines.start))),
        };
        arriving(to, source(matrix, first, to.size))
    }

    /// Starts to copy from the host, on all devices at the same time; what is launched from now on
    /// waits for it.
    ///
    /// # Safety
    ///
    /// The side of the host has as many rows of as many elements, and nothing writes them.
    unsafe fn send_all(&self, mut copies: Vec<(usize, Transfer)>) -> Result<(), DeviceError> {
        let devices: Vec<usize> = copies.iter().map(|(device, _)| *device).collect();
        copies.retain(|(_, transfer)| transfer.width * transfer.height > 0);
        // SAFETY: the caller vouches for the host's side; the device's is this product's.
        unsafe { self.devices.stage(copies)? };
        for device in devices {
            let arrived = self.devices.parts[device].arrived();
            arrived.map_err(self.devices.named(device))?;
        }
        Ok(())
    }

    /// A block of C in the memory of the device that computes it.
    fn c_of_block(&self, device: usize, block: &Block) -> Located<C> {
        let (rows, columns) = self.split.block_of_c(device);
        let first = (
            block.rows.start - rows.start,
            block.columns.start - columns.start,
        );
        let size = (block.rows.len(), block.columns.len());
        self.c_of(device).part(first, size)
    }

    /// Starts the next launches of a device, which compute a block, with the panels of others that
    /// they need. Returns the bytes that it receives.
    fn start<'b>(
        &self,
        device: usize,
        block: &'b Block,
        launched: &mut VecDeque<Launched<'b>>,
        arrived: &mut Vec<Panel>,
    ) -> Result<usize, DeviceError> {
        let step = &self.work[device].0[launched.len()];
        let received = self.multiply_block(device, step, arrived);
        let received = received.map_err(self.devices.named(device))?;
        let ended = self.devices.parts[device].after_launches();
        let ended = ended.map_err(self.devices.named(device))?;
        launched.push_back(Launched { block, ended });
        Ok(received)
    }

    /// Lets the streams for copies of all devices wait for each other.
    fn arrived_everywhere(&self) -> Result<(), DeviceError> {
        let count = self.split.devices();
        let parts = &self.devices.parts[..count];
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

/// A copy from the host to a device.
fn arriving<E: Element>(to: Located<E>, host: HostRows) -> (usize, Transfer) {
    (to.device, transfer(to, host, Direction::ToDevice))
}
