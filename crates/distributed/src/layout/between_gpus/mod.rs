//! The layouts where ranks multiply on GPUs: parts of A, B and C stay in the GPUs' memory, and
//! travel from there to there.
//!
//! Each sends the elements that its own file says, in as many messages; only the ways differ:
//!
//! ```text
//!                          NCCL                  MPI to GPUs' memory     page-locked memory
//! A and B from rank 0      to its GPU, then      from the host's         the same, then
//! (`parts.rs`)             in one group          memory to GPUs'         a copy
//! a panel of `overlapped`  the same, a group     the same                the same
//!                          a panel
//! a panel of `summa` and   a broadcast on the    a broadcast of          a copy, a broadcast,
//! of `broadcast-b`         stream of copies      GPUs' memory            a copy
//! ```
//!
//! By peer access all is as by NCCL, but that panels of `summa` and `broadcast-b` are copied by the
//! ranks that need them, from the block that has them (`peers.rs`). No rank sends, so none waits for
//! another, and no SM is taken from a product.
//!
//! Panels have two stages: the next travels while this one is multiplied. Three waits keep them
//! apart, whatever the way:
//!
//! ```text
//! arrive      products wait until the panel is there
//! multiply    the launch returns at once
//! start       the next panel may overwrite its stage only when the product that read it is done
//! ```
//!
//! Where NCCL or copy engines do it, both waits are events on the GPU, and the host waits for
//! nothing. MPI writes from the host, so the host waits before it lets MPI have a stage. All ranks
//! start A's panel, then B's, then the next: NCCL needs the same order of its communicators on every
//! rank.
//!
//! C is fetched to the host once, and collected there as without GPUs.
//!
//! What this should take is in `cost.rs`, of what `measured.rs` times: copies, messages, products.

mod broadcasts;
mod cost;
mod measured;
mod overlapped;
mod parts;
mod peers;

pub(in crate::layout) use broadcasts::broadcasts;
pub(crate) use cost::Costs;
pub(crate) use measured::measure;
pub(in crate::layout) use overlapped::overlapped;

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use cust::event::Event;
use gpu_gemm::device::cuda::Direction;
use gpu_gemm::{DeviceError, Shape};

use parts::distribute;

use super::product::Product;
use super::{Job, LayoutError};
use crate::Element;
use crate::clock::Phase;
use crate::comm::transport::Way;
use crate::comm::{Ranks, Request};
use crate::local::gpu::{BlockOfC, Gpu, Line, Locked, OnGpu, Room, wait_on_host};
use crate::nccl::{Communicator, Nccl, NcclError, UniqueId};
use crate::share_out::{Block, Grid};

/// Panels that travel or are multiplied at a time.
const STAGES: usize = 2;

/// `scatter-rows` and `scatter-blocks`: each rank gets the rows of A and the columns of B that its
/// block of C needs, and multiplies once.
pub(super) fn scatter_and_multiply<T: Element>(
    grid: Grid,
    job: &Job<'_, T>,
    gpu: &Gpu,
) -> Result<Option<Vec<T::Sum>>, LayoutError> {
    let needed = |rank| scattered_parts(job.case.shape, grid, rank);
    let product = Product::new(job, grid)?;
    let parts = distribute(grid, job, gpu, needed)?;
    let mut c = gpu.block_of_c(parts.a.rows, parts.b.columns)?;
    let started = Instant::now();
    // SAFETY: the parts live until it is done, and all that arrives in them has.
    unsafe { gpu.multiply(parts.a, parts.b, &mut c, 0..parts.b.columns)? };
    gpu.wait_for(&c)?;
    finish(job, gpu, c, product, started.elapsed())
}

/// What a rank needs of A and of B to multiply once.
fn scattered_parts(shape: Shape, grid: Grid, rank: usize) -> (Block, Block) {
    let Block { rows, columns } = grid.block(shape, rank);
    // Ranks without elements of C get nothing.
    let depth = match rows.is_empty() || columns.is_empty() {
        true => 0,
        false => shape.k,
    };
    let of_a = Block {
        rows,
        columns: 0..depth,
    };
    let of_b = Block {
        rows: 0..depth,
        columns,
    };
    (of_a, of_b)
}

/// How the panels of a layout travel.
trait Panels<T: Element> {
    /// Starts a panel on its way to a stage; `read` is reached when the product that last read
    /// this stage is done.
    fn start(
        &mut self,
        panel: &Range<usize>,
        stage: usize,
        read: Option<Event>,
    ) -> Result<(), LayoutError>;

    /// Lets products that are launched from now on wait for the panel, and says what to multiply.
    fn arrive(&mut self, panel: &Range<usize>, stage: usize) -> Result<Arrived<T>, LayoutError>;
}

/// What is multiplied of a panel.
struct Arrived<T> {
    a: OnGpu<T>,
    b: OnGpu<T>,
    /// The columns of this rank's block of C that the product is part of.
    of_c: Range<usize>,
}

/// Panel after panel: the next one travels while this one is multiplied. The wait for the first
/// one counts as `first`. Returns what products and waits took together.
fn multiply_panels<T: Element>(
    job: &Job<'_, T>,
    gpu: &Gpu,
    panels: &[Range<usize>],
    travelling: &mut dyn Panels<T>,
    first: Phase,
    c: &mut BlockOfC<'_, T::Sum>,
) -> Result<Duration, LayoutError> {
    let mut started = Instant::now();
    let mut read: [Option<Event>; STAGES] = Default::default();
    for (index, panel) in panels.iter().enumerate() {
        let stage = index % STAGES;
        if index == 0 {
            travelling.start(panel, stage, None)?;
        }
        let Arrived { a, b, of_c } = travelling.arrive(panel, stage)?;
        if index == 0 && first == Phase::Distribute {
            gpu.finish_copies()?;
            job.clock.add(first, started.elapsed());
            job.sent_in(first);
            started = Instant::now();
        }
        // SAFETY: stages and blocks live until it is done, and no stage is written before `read`.
        unsafe { gpu.multiply(a, b, c, of_c)? };
        read[stage] = Some(gpu.multiplied()?);
        if let Some(next) = panels.get(index + 1) {
            let stage = (index + 1) % STAGES;
            travelling.start(next, stage, read[stage].take())?;
        }
    }
    // All rooms may be used for something else when this returns.
    gpu.wait_for(c)?;
    gpu.finish_copies()?;
    job.sent_in(Phase::Wait);
    Ok(started.elapsed())
}

/// Adds the times of the products, which are done and took so long with all waits, and collects C.
fn finish<T: Element>(
    job: &Job<'_, T>,
    gpu: &Gpu,
    c: BlockOfC<'_, T::Sum>,
    mut product: Product<T>,
    all: Duration,
) -> Result<Option<Vec<T::Sum>>, LayoutError> {
    let multiplied = gpu.multiplied_for(&c)?;
    job.clock.add(Phase::Compute, multiplied.min(all));
    job.clock.add(Phase::Wait, all.saturating_sub(multiplied));
    let fetched = job
        .clock
        .time(Phase::Collect, || gpu.fetch(&c, product.block()));
    fetched?;
    drop(c);
    Ok(product.collect(job))
}

/// Starts to send a part that no one writes until all copies are done.
fn send<T: Element>(
    communicator: &Communicator,
    gpu: &Gpu,
    part: OnGpu<T>,
    to: usize,
) -> Result<(), NcclError> {
    if part.elements() == 0 {
        return Ok(());
    }
    let stream = gpu.copies().as_inner().cast();
    // SAFETY: parts are compact, and live until the stream of copies has been waited for.
    unsafe { communicator.send(part.start.cast_const(), part.elements(), to, stream) }
}

/// Starts to receive a part that no one uses until then.
fn receive<T: Element>(
    communicator: &Communicator,
    gpu: &Gpu,
    part: OnGpu<T>,
    from: usize,
) -> Result<(), NcclError> {
    if part.elements() == 0 {
        return Ok(());
    }
    let stream = gpu.copies().as_inner().cast();
    // SAFETY: as for `send`.
    unsafe { communicator.receive(part.start, part.elements(), from, stream) }
}

/// NCCL's communicator of all ranks, if it is what they send by. All ranks call it.
fn all_ranks<T: Element>(
    job: &Job<'_, T>,
    gpu: &Gpu,
) -> Result<Option<Rc<Communicator>>, LayoutError> {
    if !gpu.way.has_nccl() || job.ranks.size() == 1 {
        return Ok(None);
    }
    let line = Line::All(job.ranks.size());
    let joined = gpu.communicator(line, |nccl| join(nccl, job.ranks))?;
    Ok(Some(joined))
}

/// Joins ranks: the first says NCCL's identity of them to the others by MPI.
fn join(nccl: &Nccl, ranks: &Ranks) -> Result<Communicator, NcclError> {
    let mut bytes = [0; UniqueId::BYTES];
    if ranks.rank() == 0 {
        bytes = *nccl.unique_id()?.bytes();
    }
    ranks.from_first(&mut bytes);
    nccl.join(UniqueId::from_bytes(bytes), ranks.rank(), ranks.size())
}

/// Room for a panel of A or of B in one stage, and what is on its way there.
struct Slot<'g, T> {
    /// MPI's, to this slot. Dropped before the memory is.
    request: Option<Request>,
    room: Room<'g, T>,
    /// Where MPI receives, or sends from, if it is the host's memory.
    locked: Option<Locked<'g, T>>,
    /// Reached when the last copy from there to the GPU is done.
    emptied: Option<Event>,
}

impl<'g, T: Element> Slot<'g, T> {
    fn new(gpu: &'g Gpu, elements: usize, by_mpi: bool) -> Result<Self, DeviceError> {
        let locked = match gpu.way == Way::Pinned && by_mpi {
            true => Some(gpu.locked(elements)?),
            false => None,
        };
        Ok(Slot {
            request: None,
            room: gpu.room(elements)?,
            locked,
            emptied: None,
        })
    }

    /// Where MPI may write now.
    fn target(&mut self) -> Result<*mut T, DeviceError> {
        match &self.locked {
            Some(locked) => {
                if let Some(emptied) = self.emptied.take() {
                    wait_on_host(emptied)?;
                }
                Ok(locked.start)
            }
            None => Ok(self.room.part(0, 0).start),
        }
    }

    /// Waits for MPI, and copies what it left in page-locked memory to the GPU.
    fn take(&mut self, gpu: &Gpu, rows: usize, columns: usize) -> Result<OnGpu<T>, DeviceError> {
        if let Some(mut request) = self.request.take() {
            request.wait();
        }
        let part = self.room.part(rows, columns);
        if let Some(locked) = &self.locked {
            // SAFETY: MPI has filled it, and gets it back only when this copy is done; whoever
            // calls this has let copies wait for the last reader of the room.
            unsafe { gpu.copy_locked(locked.start, part, Direction::ToDevice)? };
            self.emptied = Some(gpu.copied()?);
        }
        Ok(part)
    }
}
