//! `overlapped` between GPUs: rank 0 copies a panel to its GPU and sends it to all others.

use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use cust::event::Event;
use gpu_gemm::DeviceError;
use host::cpu::view::View;

use super::{Arrived, Panels, STAGES, Slot, all_ranks, finish, multiply_panels, receive, send};
use crate::Element;
use crate::clock::Phase;
use crate::comm::transport::Way;
use crate::comm::{Outgoing, OutgoingCopy, Piece};
use crate::layout::product::Product;
use crate::layout::{Job, LayoutError};
use crate::local::gpu::{Gpu, wait_on_host};
use crate::nccl::Communicator;
use crate::share_out::{Block, Grid};
use crate::volume::Volume;

/// `overlapped`: panels of A's rows and of B come from rank 0, the next while one is multiplied.
pub(in crate::layout) fn overlapped<T: Element>(
    grid: Grid,
    panels: &[Range<usize>],
    job: &Job<'_, T>,
    gpu: &Gpu,
) -> Result<Option<Vec<T::Sum>>, LayoutError> {
    let product = Product::new(job, grid)?;
    let block = grid.block(job.case.shape, job.ranks.rank());
    let (rows, columns) = (block.rows.len(), block.columns.len());
    let is_first = job.operands.is_some();
    let communicator = all_ranks(job, gpu)?;
    let mut c = gpu.block_of_c(rows, columns)?;
    // Rank 0 sends to others even if it has nothing to multiply itself.
    if block.is_empty() && !is_first {
        return finish(job, gpu, c, product, Duration::ZERO);
    }
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    // What NCCL sends from the first rank's GPU must all be there.
    let of_a = match is_first && gpu.way.has_nccl() {
        true => job.case.shape.m,
        false => rows,
    };
    let slots = || -> Result<_, DeviceError> {
        Ok([
            Slot::new(gpu, of_a * widest, !is_first)?,
            Slot::new(gpu, widest * columns, !is_first)?,
        ])
    };
    let mut sent = Scattered {
        job,
        gpu,
        blocks: (0..grid.ranks())
            .map(|rank| grid.block(job.case.shape, rank))
            .collect(),
        communicator,
        slots: [slots()?, slots()?],
        under_way: Default::default(),
        free: Vec::new(),
    };
    let all = multiply_panels(job, gpu, panels, &mut sent, Phase::Distribute, &mut c)?;
    finish(job, gpu, c, product, all)
}

/// The panels of `overlapped`.
struct Scattered<'j, 'g, T: Element> {
    job: &'j Job<'j, T>,
    gpu: &'g Gpu,
    blocks: Vec<Block>,
    communicator: Option<Rc<Communicator>>,
    /// Of each stage, for A and for B.
    slots: [[Slot<'g, T>; 2]; STAGES],
    /// What rank 0 sends by MPI, from each stage.
    under_way: [Vec<(OutgoingCopy<T>, Outgoing<'j, T>)>; STAGES],
    /// Buffers for columns of A that lie together.
    free: Vec<Vec<T>>,
}

impl<'j, T: Element> Scattered<'j, '_, T> {
    /// The other ranks that get panels, with their rows.
    fn others(&self) -> Vec<(usize, Range<usize>)> {
        let others = self.blocks.iter().enumerate().skip(1);
        let busy = others.filter(|(_, block)| !block.is_empty());
        busy.map(|(rank, block)| (rank, block.rows.clone()))
            .collect()
    }

    /// Rank 0 copies a panel to its GPU, for itself or for all, and sends it to the others.
    fn give(
        &mut self,
        (a, b): (View<'j, T>, View<'j, T>),
        panel: &Range<usize>,
        stage: usize,
    ) -> Result<(), LayoutError> {
        let (gpu, ranks) = (self.gpu, self.job.ranks);
        let others = self.others();
        let of_b = b.part(panel.clone(), 0..b.columns());
        let rows = match &self.communicator {
            Some(_) => 0..a.rows(),
            None => self.blocks[0].rows.clone(),
        };
        if self.communicator.is_none() {
            for (rank, rows) in &others {
                let of_a = a.part(rows.clone(), panel.clone());
                let elements = of_a.rows() * of_a.columns();
                let mut buffer = self.free.pop().unwrap_or_default();
                buffer.resize(buffer.len().max(elements), T::default());
                let of_a = ranks.start_send_of_copy(of_a, buffer, *rank);
                let of_b = ranks.start_send(&[of_b], *rank);
                self.under_way[stage].push((of_a, of_b));
            }
        }
        let [slot_a, slot_b] = &self.slots[stage];
        let on_gpu_a = slot_a.room.part(rows.len(), panel.len());
        let on_gpu_b = slot_b.room.part(panel.len(), b.columns());
        // SAFETY: A and B are borrowed for longer than copies are under way, which wait for the
        // last reader of this stage.
        unsafe {
            gpu.upload(a.part(rows, panel.clone()), on_gpu_a)?;
            gpu.upload(of_b, on_gpu_b)?;
        }
        if let Some(communicator) = &self.communicator {
            gpu.nccl().group(|| {
                for (rank, rows) in &others {
                    let of_a = on_gpu_a.part(rows.clone(), 0..panel.len());
                    send(communicator, gpu, of_a, *rank)?;
                    send(communicator, gpu, on_gpu_b, *rank)?;
                    for part in [of_a, on_gpu_b] {
                        ranks.count_between_gpus(Volume::of(1, part.elements() as u64));
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl<T: Element> Panels<T> for Scattered<'_, '_, T> {
    fn start(
        &mut self,
        panel: &Range<usize>,
        stage: usize,
        read: Option<Event>,
    ) -> Result<(), LayoutError> {
        let gpu = self.gpu;
        let is_first = self.job.operands.is_some();
        match read {
            // MPI writes to the GPU when it likes.
            Some(read) if gpu.way == Way::Mpi && !is_first => wait_on_host(read)?,
            Some(read) => gpu.copies_wait_for(read)?,
            None => {}
        }
        if let Some(operands) = self.job.operands {
            return self.give(operands, panel, stage);
        }
        let block = &self.blocks[self.job.ranks.rank()];
        let sizes = [
            (block.rows.len(), panel.len()),
            (panel.len(), block.columns.len()),
        ];
        if let Some(communicator) = &self.communicator {
            let slots = &self.slots[stage];
            gpu.nccl().group(|| {
                for (slot, (rows, columns)) in slots.iter().zip(sizes) {
                    receive(communicator, gpu, slot.room.part(rows, columns), 0)?;
                }
                Ok(())
            })?;
            return Ok(());
        }
        for (slot, (rows, columns)) in self.slots[stage].iter_mut().zip(sizes) {
            let piece = Piece {
                first: 0,
                rows,
                columns,
            };
            let target = slot.target()?;
            // SAFETY: the slot keeps the memory until the request is complete, and no one else
            // uses it: `read` and `target` have waited.
            let request = unsafe { self.job.ranks.start_receive_at(target, &[piece], 0) };
            slot.request = Some(request);
        }
        Ok(())
    }

    fn arrive(&mut self, panel: &Range<usize>, stage: usize) -> Result<Arrived<T>, LayoutError> {
        let block = &self.blocks[self.job.ranks.rank()];
        let (rows, columns) = (block.rows.clone(), block.columns.len());
        for (of_a, of_b) in self.under_way[stage].drain(..) {
            self.free.push(of_a.wait());
            of_b.wait();
        }
        let [slot_a, slot_b] = &mut self.slots[stage];
        let a = slot_a.take(self.gpu, rows.len(), panel.len())?;
        let b = slot_b.take(self.gpu, panel.len(), columns)?;
        self.gpu.products_wait_for_copies()?;
        Ok(Arrived {
            a,
            b,
            of_c: 0..columns,
        })
    }
}
