//! `summa` and `broadcast-b` between GPUs: whoever has a panel broadcasts it along its row, or
//! column, of the grid.

use std::ops::Range;
use std::rc::Rc;

use cust::event::Event;
use gpu_gemm::DeviceError;
use gpu_gemm::device::cuda::Direction;

use super::parts::distribute;
use super::peers;
use super::{Arrived, Panels, STAGES, Slot, finish, join, multiply_panels};
use crate::Element;
use crate::clock::Phase;
use crate::comm::Ranks;
use crate::comm::transport::Way;
use crate::layout::broadcasts::{Cut, Distribution};
use crate::layout::product::Product;
use crate::layout::{Job, LayoutError};
use crate::local::gpu::{Gpu, Line, OnGpu, wait_on_host};
use crate::nccl::Communicator;
use crate::share_out::Shares;
use crate::volume::Volume;

/// Ranks hold blocks, and panels of them are broadcast along rows and columns of the grid.
pub(in crate::layout) fn broadcasts<T: Element>(
    distribution: &Distribution,
    job: &Job<'_, T>,
    gpu: &Gpu,
) -> Result<Option<Vec<T::Sum>>, LayoutError> {
    let grid = distribution.grid;
    let product = Product::new(job, grid)?;
    let parts = distribute(grid, job, gpu, |rank| distribution.held(&job.case, rank))?;
    let [peers_along_row, peers_along_column] = match gpu.way {
        Way::Peer => peers::open(distribution, job, gpu, &parts)?,
        Way::Nccl | Way::Mpi | Way::Pinned => Default::default(),
    };
    let panels = distribution.panels(&job.case);
    let (row, column) = grid.place(job.ranks.rank());
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    let mut along_row = None;
    if let Some(shares) = distribution.along_row {
        along_row = Some(Side::new(
            job,
            gpu,
            (Line::Row(grid.rows, grid.columns), row),
            (shares, column),
            (parts.a, peers_along_row),
            Cut::Columns,
            widest,
        )?);
    }
    let mut broadcasts = Broadcasts {
        gpu,
        a: parts.a,
        along_column: Side::new(
            job,
            gpu,
            (Line::Column(grid.rows, grid.columns), column),
            (distribution.along_column, row),
            (parts.b, peers_along_column),
            distribution.cut_of_b(),
            widest,
        )?,
        along_row,
        read: Default::default(),
    };
    let block = grid.block(job.case.shape, job.ranks.rank());
    let mut c = gpu.block_of_c(block.rows.len(), block.columns.len())?;
    // So that no rank waits in its product for another's.
    job.clock.time(Phase::Distribute, || job.ranks.barrier());
    let all = multiply_panels(job, gpu, &panels, &mut broadcasts, Phase::Wait, &mut c)?;
    finish(job, gpu, c, product, all)
}

/// The ranks that panels of A, or of B, are broadcast among.
struct Side<'j, 'g, T: Element> {
    ranks: &'j Ranks,
    /// Those of this row or column, where MPI broadcasts.
    along: Option<Ranks>,
    /// The same, where NCCL does.
    communicator: Option<Rc<Communicator>>,
    /// Their blocks, where each rank reads them itself.
    peers: peers::Line<T>,
    /// What each of them has, and this rank's number among them.
    shares: Shares,
    number: usize,
    block: OnGpu<T>,
    cut: Cut,
    slots: Vec<Slot<'g, T>>,
}

impl<'j, 'g, T: Element> Side<'j, 'g, T> {
    /// All ranks of the job call it, those of this line with the same number `color` of it. Panels
    /// are `widest` rows or columns at most.
    fn new(
        job: &'j Job<'_, T>,
        gpu: &'g Gpu,
        (line, color): (Line, usize),
        (shares, number): (Shares, usize),
        (block, peers): (OnGpu<T>, peers::Line<T>),
        cut: Cut,
        widest: usize,
    ) -> Result<Self, LayoutError> {
        let split = || job.ranks.split(Some(color)).expect("a color is given");
        let (mut along, mut communicator) = (None, None);
        // A line of one sends nothing.
        if shares.ranks > 1 {
            match gpu.way {
                Way::Nccl => {
                    let joined = gpu.communicator(line, |nccl| join(nccl, &split()))?;
                    communicator = Some(joined);
                }
                Way::Peer => {}
                Way::Mpi | Way::Pinned => along = Some(split()),
            }
        }
        let slots = match shares.ranks {
            1 => 0,
            _ => STAGES,
        };
        let (rows, columns) = cut.size((block.rows, block.columns), widest);
        let slots = (0..slots).map(|_| Slot::new(gpu, rows * columns, true));
        Ok(Side {
            ranks: job.ranks,
            along,
            communicator,
            peers,
            shares,
            number,
            block,
            cut,
            slots: slots.collect::<Result<_, DeviceError>>()?,
        })
    }

    /// This rank's own panel, where it lies, if the panel is its own.
    fn own(&self, panel: &Range<usize>) -> Option<OnGpu<T>> {
        let is_own = self.shares.owner(panel.start) == self.number;
        is_own.then(|| self.cut_from(self.block, panel))
    }

    /// A panel of its owner's block.
    fn cut_from(&self, block: OnGpu<T>, panel: &Range<usize>) -> OnGpu<T> {
        let owner = self.shares.owner(panel.start);
        let from = self.shares.held_by(owner).start;
        let panel = panel.start - from..panel.end - from;
        let (rows, columns) = self.cut.of((block.rows, block.columns), panel);
        block.part(rows, columns)
    }

    /// The rows and columns of a panel.
    fn size(&self, panel: &Range<usize>) -> (usize, usize) {
        let block = (self.block.rows, self.block.columns);
        self.cut.size(block, panel.len())
    }

    /// Starts the broadcast of a panel. A panel whose rows lie apart is packed in its slot first.
    fn start(&mut self, gpu: &Gpu, panel: &Range<usize>, stage: usize) -> Result<(), LayoutError> {
        let (rows, columns) = self.size(panel);
        if self.shares.ranks == 1 || rows * columns == 0 {
            return Ok(());
        }
        let root = self.shares.owner(panel.start);
        let own = self.own(panel);
        let peer = self.peers.get(root).and_then(Option::as_ref);
        let peer = peer.map(|block| self.cut_from(*block, panel));
        let slot = &mut self.slots[stage];
        let room = slot.room.part(rows, columns);
        let others = self.shares.ranks as u64 - 1;
        if gpu.way == Way::Peer {
            if let Some(own) = own {
                let volume = Volume::of(others, own.elements() as u64);
                self.ranks.count_between_gpus(volume);
            } else {
                let peer = peer.expect("the block of the panel's owner is open");
                // SAFETY: the other rank has filled its block and keeps it until all have waited
                // for their copies; whoever calls this has let copies wait for the last reader of
                // the slot.
                unsafe { gpu.pack(peer, room)? };
            }
            return Ok(());
        }
        if let Some(communicator) = &self.communicator {
            let from = match own {
                Some(own) if !own.is_compact() => {
                    // SAFETY: the block lives as long as this; what reads the slot, earlier
                    // broadcasts, is on the same stream.
                    unsafe { gpu.pack(own, room)? };
                    room
                }
                Some(own) => own,
                None => room,
            };
            if own.is_some() {
                let volume = Volume::of(others, from.elements() as u64);
                self.ranks.count_between_gpus(volume);
            }
            let stream = gpu.copies().as_inner().cast();
            let (start, count) = (from.start, from.elements());
            // SAFETY: the memory lives until the stream has been waited for, and the stream waits
            // for the product that last read the slot. On the root, where it is in place, it is
            // only read.
            unsafe { communicator.broadcast(start.cast_const(), start, count, root, stream)? };
            return Ok(());
        }
        let Some(along) = &self.along else {
            return Ok(());
        };
        // SAFETY of the copies: as above; the host waits for them.
        let buffer = match (own, gpu.way) {
            (Some(own), Way::Mpi) if own.is_compact() => own.start,
            (Some(own), Way::Mpi) => {
                // SAFETY: the last broadcast from this slot is complete: `arrive` waited for it.
                unsafe { gpu.pack(own, room)? };
                gpu.finish_copies()?;
                room.start
            }
            (Some(own), _) => {
                let target = slot.target()?;
                // SAFETY: as above.
                unsafe { gpu.copy_locked(target, own, Direction::ToHost)? };
                gpu.finish_copies()?;
                target
            }
            (None, _) => slot.target()?,
        };
        // SAFETY: the slot, or the block, keeps the memory until the request is complete; nobody
        // else uses a slot meanwhile, and a block is only read.
        let request = unsafe { along.start_broadcast_at(root, buffer, rows, columns) };
        slot.request = Some(request);
        Ok(())
    }

    /// Waits for MPI if it broadcasts, and says where the panel is.
    fn arrive(
        &mut self,
        gpu: &Gpu,
        panel: &Range<usize>,
        stage: usize,
    ) -> Result<OnGpu<T>, DeviceError> {
        let (rows, columns) = self.size(panel);
        match self.own(panel) {
            Some(own) => {
                let slot = self.slots.get_mut(stage);
                if let Some(mut request) = slot.and_then(|slot| slot.request.take()) {
                    request.wait();
                }
                Ok(own)
            }
            None => self.slots[stage].take(gpu, rows, columns),
        }
    }
}

/// The panels of such a distribution.
struct Broadcasts<'j, 'g, T: Element> {
    gpu: &'g Gpu,
    /// This rank's block of A.
    a: OnGpu<T>,
    /// If panels are cut along k; else a product has all of A's block.
    along_row: Option<Side<'j, 'g, T>>,
    along_column: Side<'j, 'g, T>,
    /// Of each stage, until copies to it are started.
    read: [Option<Event>; STAGES],
}

impl<T: Element> Drop for Broadcasts<'_, '_, T> {
    /// If a product fails, copies of the next panel may be under way.
    fn drop(&mut self) {
        // If the GPU has failed, it copies nothing any longer.
        let _ = self.gpu.finish_copies();
    }
}

impl<T: Element> Panels<T> for Broadcasts<'_, '_, T> {
    fn start(
        &mut self,
        panel: &Range<usize>,
        stage: usize,
        read: Option<Event>,
    ) -> Result<(), LayoutError> {
        match (self.gpu.way, read) {
            (_, None) => {}
            (Way::Peer | Way::Nccl, Some(read)) => self.gpu.copies_wait_for(read)?,
            (Way::Mpi, Some(read)) => wait_on_host(read)?,
            // MPI writes to other memory than the product reads.
            (Way::Pinned, Some(read)) => self.read[stage] = Some(read),
        }
        if let Some(along_row) = &mut self.along_row {
            along_row.start(self.gpu, panel, stage)?;
        }
        self.along_column.start(self.gpu, panel, stage)
    }

    fn arrive(&mut self, panel: &Range<usize>, stage: usize) -> Result<Arrived<T>, LayoutError> {
        if let Some(read) = self.read[stage].take() {
            self.gpu.copies_wait_for(read)?;
        }
        let along_row = self.along_row.as_mut();
        let a = along_row.map(|along_row| along_row.arrive(self.gpu, panel, stage));
        let a = a.transpose()?;
        let b = self.along_column.arrive(self.gpu, panel, stage)?;
        self.gpu.products_wait_for_copies()?;
        let (a, of_c) = match a {
            Some(a) => (a, 0..b.columns),
            None => (self.a, panel.clone()),
        };
        Ok(Arrived { a, b, of_c })
    }
}
