//! The layouts where ranks multiply on GPUs: parts of A, B and C stay in the GPUs' memory, and
//! travel from there to there.
//!
//! Each sends the elements that its own file says, in as many messages; only the ways differ. A is
//! M x K, and a panel W columns of it and as many rows of B:
//!
//! | | NCCL | MPI that takes GPUs' memory | page-locked memory |
//! | --- | --- | --- | --- |
//! | A and B from rank 0 | to its GPU first, then in one group | from the host's memory to GPUs' | the same, then a copy |
//! | a panel of `overlapped` | the same, a group a panel | the same | the same |
//! | a panel of `summa` | a broadcast on the stream of copies | a broadcast of GPUs' memory | a copy, a broadcast, a copy |
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
//! Where NCCL sends, both waits are events on the GPU, and the host waits for nothing. MPI writes
//! from the host, so the host waits before it lets MPI have a stage. All ranks start A's panel,
//! then B's, then the next: NCCL needs the same order of its communicators on every rank.
//!
//! C is fetched to the host once, and collected there as without GPUs.

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use cust::event::Event;
use gpu_gemm::DeviceError;
use host::cpu::view::View;

use super::product::Product;
use super::{Job, LayoutError};
use crate::Element;
use crate::clock::Phase;
use crate::comm::transport::Way;
use crate::comm::{Outgoing, OutgoingCopy, Piece, Ranks, Request};
use crate::local::gpu::{BlockOfC, Direction, Gpu, Line, Locked, OnGpu, Room, after, wait_on_host};
use crate::nccl::{Communicator, Nccl, NcclError, UniqueId};
use crate::share_out::{Block, Grid, owner, share};
use crate::volume::Volume;

/// Panels that travel or are multiplied at a time.
const STAGES: usize = 2;

/// `scatter-rows` and `scatter-blocks`: each rank gets the rows of A and the columns of B that its
/// block of C needs, and multiplies once.
pub(super) fn scatter_and_multiply<T: Element>(
    grid: Grid,
    job: &Job<'_, T>,
    gpu: &Gpu,
) -> Result<Option<Vec<T>>, LayoutError> {
    let k = job.case.shape.k;
    let needed = |rank| {
        let Block { rows, columns } = grid.block(job.case.shape, rank);
        // Ranks without elements of C get nothing.
        let depth = if rows.is_empty() || columns.is_empty() {
            0
        } else {
            k
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
    };
    let product = Product::new(job, grid)?;
    let parts = distribute(grid, job, gpu, needed)?;
    let mut c = gpu.block_of_c(parts.a.rows, parts.b.columns)?;
    let started = Instant::now();
    // SAFETY: the parts live until `finish` has waited, and all that arrives in them has.
    unsafe { gpu.multiply(parts.a, parts.b, &mut c)? };
    finish(job, gpu, c, product, started)
}

/// `overlapped`: panels of A's rows and of B come from rank 0, the next while one is multiplied.
pub(super) fn overlapped<T: Element>(
    grid: Grid,
    panels: &[Range<usize>],
    job: &Job<'_, T>,
    gpu: &Gpu,
) -> Result<Option<Vec<T>>, LayoutError> {
    let product = Product::new(job, grid)?;
    let block = grid.block(job.case.shape, job.ranks.rank());
    let (rows, columns) = (block.rows.len(), block.columns.len());
    let is_first = job.operands.is_some();
    let communicator = all_ranks(job, gpu)?;
    let mut c = gpu.block_of_c(rows, columns)?;
    // Rank 0 sends to others even if it has nothing to multiply itself.
    if block.is_empty() && !is_first {
        return finish(job, gpu, c, product, Instant::now());
    }
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    // What NCCL sends from the first rank's GPU must all be there.
    let of_a = match is_first && gpu.way == Way::Nccl {
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
    let started = multiply_panels(job, gpu, panels, &mut sent, Phase::Distribute, &mut c)?;
    finish(job, gpu, c, product, started)
}

/// `summa`: ranks hold blocks, and panels of them are broadcast along rows and columns of the
/// grid.
pub(super) fn summa<T: Element>(
    grid: Grid,
    panels: &[Range<usize>],
    held: impl Fn(usize) -> (Block, Block),
    job: &Job<'_, T>,
    gpu: &Gpu,
) -> Result<Option<Vec<T>>, LayoutError> {
    let product = Product::new(job, grid)?;
    let parts = distribute(grid, job, gpu, held)?;
    let (row, column) = grid.place(job.ranks.rank());
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    let mut broadcasts = Broadcasts {
        gpu,
        k: job.case.shape.k,
        along_row: Side::new(
            job,
            gpu,
            (Line::Row(grid.rows, grid.columns), row, grid.columns),
            parts.a,
            Cut::Columns,
            parts.a.rows * widest,
        )?,
        along_column: Side::new(
            job,
            gpu,
            (Line::Column(grid.rows, grid.columns), column, grid.rows),
            parts.b,
            Cut::Rows,
            widest * parts.b.columns,
        )?,
        read: Default::default(),
    };
    let mut c = gpu.block_of_c(parts.a.rows, parts.b.columns)?;
    let started = multiply_panels(job, gpu, panels, &mut broadcasts, Phase::Wait, &mut c)?;
    finish(job, gpu, c, product, started)
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

    /// Lets products that are launched from now on wait for the panel, and says where its parts of
    /// A and B are.
    fn arrive(
        &mut self,
        panel: &Range<usize>,
        stage: usize,
    ) -> Result<(OnGpu<T>, OnGpu<T>), LayoutError>;
}

/// Panel after panel: the next one travels while this one is multiplied. Returns when the first
/// one began to be multiplied or waited for; it counts as `first`.
fn multiply_panels<T: Element>(
    job: &Job<'_, T>,
    gpu: &Gpu,
    panels: &[Range<usize>],
    travelling: &mut dyn Panels<T>,
    first: Phase,
    c: &mut BlockOfC<'_, T>,
) -> Result<Instant, LayoutError> {
    let mut started = Instant::now();
    let mut read: [Option<Event>; STAGES] = Default::default();
    for (index, panel) in panels.iter().enumerate() {
        let stage = index % STAGES;
        if index == 0 {
            travelling.start(panel, stage, None)?;
        }
        let (a, b) = travelling.arrive(panel, stage)?;
        if index == 0 && first == Phase::Distribute {
            gpu.finish_copies()?;
            job.clock.add(first, started.elapsed());
            job.sent_in(first);
            started = Instant::now();
        }
        // SAFETY: the stages live until `finish` has waited, and none is written before `read`.
        unsafe { gpu.multiply(a, b, c)? };
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
    Ok(started)
}

/// Waits for the products, which began at `started`, adds their times, and collects C.
fn finish<T: Element>(
    job: &Job<'_, T>,
    gpu: &Gpu,
    c: BlockOfC<'_, T>,
    mut product: Product<T>,
    started: Instant,
) -> Result<Option<Vec<T>>, LayoutError> {
    let multiplied = gpu.wait_for(&c)?;
    let all = started.elapsed();
    job.clock.add(Phase::Compute, multiplied.min(all));
    job.clock.add(
        Phase::Wait,
        all.saturating_sub(multiplied).max(Duration::ZERO),
    );
    let fetched = job
        .clock
        .time(Phase::Collect, || gpu.fetch(&c, product.block()));
    fetched?;
    drop(c);
    Ok(product.collect(job))
}

/// A rank's parts of A and B, in its GPU's memory.
struct Parts<'g, T> {
    a: OnGpu<T>,
    b: OnGpu<T>,
    /// Keep them.
    _rooms: Vec<Room<'g, T>>,
}

/// Rank 0 gives each rank what it needs of A and B, in one message. All copies are done when it
/// returns.
fn distribute<'g, T: Element>(
    grid: Grid,
    job: &Job<'_, T>,
    gpu: &'g Gpu,
    needed: impl Fn(usize) -> (Block, Block),
) -> Result<Parts<'g, T>, LayoutError> {
    let communicator = all_ranks(job, gpu)?;
    let communicator = communicator.as_deref();
    let started = Instant::now();
    let parts = match job.operands {
        Some(operands) => give(grid, job, gpu, operands, needed, communicator)?,
        None => {
            let (of_a, of_b) = needed(job.ranks.rank());
            get(job, gpu, [&of_a, &of_b], communicator)?
        }
    };
    gpu.finish_copies()?;
    job.clock.add(Phase::Distribute, started.elapsed());
    job.sent_in(Phase::Distribute);
    Ok(parts)
}

/// Rank 0's side.
fn give<'g, T: Element>(
    grid: Grid,
    job: &Job<'_, T>,
    gpu: &'g Gpu,
    (a, b): (View<'_, T>, View<'_, T>),
    needed: impl Fn(usize) -> (Block, Block),
    communicator: Option<&Communicator>,
) -> Result<Parts<'g, T>, LayoutError> {
    let mut rooms = Vec::new();
    // Ranks in a row of the grid share rows of A, those in a column columns of B: each part is
    // copied to the GPU once.
    let mut copied: [Vec<(Block, OnGpu<T>)>; 2] = Default::default();
    let mut to_gpu = |index: usize, whole: View<'_, T>, block: &Block| {
        let known = copied[index].iter().find(|(known, _)| known == block);
        if let Some((_, part)) = known {
            return Ok::<_, DeviceError>(*part);
        }
        let room = gpu.room(block.rows.len() * block.columns.len())?;
        let part = room.part(block.rows.len(), block.columns.len());
        let view = whole.part(block.rows.clone(), block.columns.clone());
        // SAFETY: `distribute` waits for the copy; A and B are borrowed until then.
        unsafe { gpu.upload(view, part)? };
        rooms.push(room);
        copied[index].push((block.clone(), part));
        Ok(part)
    };
    let (of_a, of_b) = needed(0);
    let own = (to_gpu(0, a, &of_a)?, to_gpu(1, b, &of_b)?);
    let others = 1..grid.ranks();
    match communicator {
        Some(communicator) => {
            let mut outgoing = Vec::new();
            for rank in others {
                let (of_a, of_b) = needed(rank);
                let parts = [to_gpu(0, a, &of_a)?, to_gpu(1, b, &of_b)?];
                let elements = parts.iter().map(|part| part.elements() as u64).sum();
                // Both are one message: NCCL starts them together.
                job.ranks.count_by_nccl(Volume::of(1, elements));
                outgoing.push((rank, parts));
            }
            gpu.nccl().group(|| {
                for (rank, parts) in &outgoing {
                    for part in parts {
                        send(communicator, gpu, *part, *rank)?;
                    }
                }
                Ok(())
            })?;
        }
        // From where A and B lie: the copies to this rank's GPU are under way meanwhile.
        None => {
            let send = |rank| {
                let (of_a, of_b) = needed(rank);
                let parts = [
                    a.part(of_a.rows, of_a.columns),
                    b.part(of_b.rows, of_b.columns),
                ];
                job.ranks.start_send(&parts, rank)
            };
            let under_way: Vec<Outgoing<'_, T>> = others.map(send).collect();
            drop(under_way);
        }
    }
    Ok(Parts {
        a: own.0,
        b: own.1,
        _rooms: rooms,
    })
}

/// Another rank's side.
fn get<'g, T: Element>(
    job: &Job<'_, T>,
    gpu: &'g Gpu,
    blocks: [&Block; 2],
    communicator: Option<&Communicator>,
) -> Result<Parts<'g, T>, LayoutError> {
    let [of_a, of_b] = blocks.map(|block| (block.rows.len(), block.columns.len()));
    let second = after(of_a.0 * of_a.1);
    let elements = second + of_b.0 * of_b.1;
    let room = gpu.room(elements)?;
    let a = room.part_at(0, of_a.0, of_a.1);
    let b = room.part_at(second, of_b.0, of_b.1);
    let pieces = [(0, of_a), (second, of_b)].map(|(first, (rows, columns))| Piece {
        first,
        rows,
        columns,
    });
    match (gpu.way, communicator) {
        (Way::Nccl, Some(communicator)) => gpu.nccl().group(|| {
            receive(communicator, gpu, a, 0)?;
            receive(communicator, gpu, b, 0)
        })?,
        (Way::Mpi, _) => {
            // SAFETY: the room is this rank's alone until the message is there.
            unsafe { job.ranks.start_receive_at(a.start, &pieces, 0) }.wait();
        }
        _ => {
            let locked = gpu.locked::<T>(elements)?;
            // SAFETY: as above.
            unsafe { job.ranks.start_receive_at(locked.start, &pieces, 0) }.wait();
            for (piece, part) in pieces.iter().zip([a, b]) {
                let from = locked.start.wrapping_add(piece.first);
                // SAFETY: the message has filled the pieces, and the copies are waited for below.
                unsafe { gpu.copy_locked(from, part, Direction::ToGpu)? };
            }
            gpu.finish_copies()?;
        }
    }
    Ok(Parts {
        a,
        b,
        _rooms: vec![room],
    })
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
    if gpu.way != Way::Nccl || job.ranks.size() == 1 {
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
            unsafe { gpu.copy_locked(locked.start, part, Direction::ToGpu)? };
            self.emptied = Some(gpu.copied()?);
        }
        Ok(part)
    }
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
                        ranks.count_by_nccl(Volume::of(1, part.elements() as u64));
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

    fn arrive(
        &mut self,
        panel: &Range<usize>,
        stage: usize,
    ) -> Result<(OnGpu<T>, OnGpu<T>), LayoutError> {
        let block = &self.blocks[self.job.ranks.rank()];
        let (rows, columns) = (block.rows.clone(), block.columns.len());
        for (of_a, of_b) in self.under_way[stage].drain(..) {
            self.free.push(of_a.wait());
            drop(of_b);
        }
        let [slot_a, slot_b] = &mut self.slots[stage];
        let a = slot_a.take(self.gpu, rows.len(), panel.len())?;
        let b = slot_b.take(self.gpu, panel.len(), columns)?;
        self.gpu.products_wait_for_copies()?;
        Ok((a, b))
    }
}

/// Which way a block is cut into panels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// A's, of which a panel is columns.
    Columns,
    /// B's, of which it is rows.
    Rows,
}

/// The ranks that panels of A, or of B, are broadcast among.
struct Side<'j, 'g, T: Element> {
    ranks: &'j Ranks,
    /// Those of this row or column, where MPI broadcasts.
    along: Option<Ranks>,
    /// The same, where NCCL does.
    communicator: Option<Rc<Communicator>>,
    /// This rank's number among them, and how many shares k has along them.
    number: usize,
    parts: usize,
    block: OnGpu<T>,
    cut: Cut,
    slots: Vec<Slot<'g, T>>,
}

impl<'j, 'g, T: Element> Side<'j, 'g, T> {
    /// All ranks of the job call it, those of this line with the same number `color` of it.
    fn new(
        job: &'j Job<'_, T>,
        gpu: &'g Gpu,
        (line, color, parts): (Line, usize, usize),
        block: OnGpu<T>,
        cut: Cut,
        elements: usize,
    ) -> Result<Self, LayoutError> {
        let split = || job.ranks.split(Some(color)).expect("a color is given");
        let (mut along, mut communicator) = (None, None);
        // A line of one sends nothing.
        if parts > 1 {
            match gpu.way {
                Way::Nccl => {
                    let joined = gpu.communicator(line, |nccl| join(nccl, &split()))?;
                    communicator = Some(joined);
                }
                Way::Mpi | Way::Pinned => along = Some(split()),
            }
        }
        let slots = match parts {
            1 => 0,
            _ => STAGES,
        };
        let slots = (0..slots).map(|_| Slot::new(gpu, elements, true));
        let grid_place = match line {
            Line::Row(_, columns) => job.ranks.rank() % columns,
            Line::Column(_, columns) => job.ranks.rank() / columns,
            Line::All(_) => job.ranks.rank(),
        };
        Ok(Side {
            ranks: job.ranks,
            along,
            communicator,
            number: grid_place,
            parts,
            block,
            cut,
            slots: slots.collect::<Result<_, DeviceError>>()?,
        })
    }

    /// This rank's own panel, where it lies, if the panel is its own.
    fn own(&self, k: usize, panel: &Range<usize>) -> Option<OnGpu<T>> {
        if owner(k, self.parts, panel.start) != self.number {
            return None;
        }
        let from = share(k, self.parts, self.number).start;
        let panel = panel.start - from..panel.end - from;
        Some(match self.cut {
            Cut::Columns => self.block.part(0..self.block.rows, panel),
            Cut::Rows => self.block.part(panel, 0..self.block.columns),
        })
    }

    /// The rows and columns of a panel.
    fn size(&self, panel: &Range<usize>) -> (usize, usize) {
        match self.cut {
            Cut::Columns => (self.block.rows, panel.len()),
            Cut::Rows => (panel.len(), self.block.columns),
        }
    }

    /// Starts the broadcast of a panel. A panel whose rows lie apart is packed in its slot first.
    fn start(
        &mut self,
        gpu: &Gpu,
        k: usize,
        panel: &Range<usize>,
        stage: usize,
    ) -> Result<(), LayoutError> {
        let (rows, columns) = self.size(panel);
        if self.parts == 1 || rows * columns == 0 {
            return Ok(());
        }
        let root = owner(k, self.parts, panel.start);
        let own = self.own(k, panel);
        let slot = &mut self.slots[stage];
        let room = slot.room.part(rows, columns);
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
                let others = self.parts as u64 - 1;
                let volume = Volume::of(others, from.elements() as u64);
                self.ranks.count_by_nccl(volume);
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
        k: usize,
        panel: &Range<usize>,
        stage: usize,
    ) -> Result<OnGpu<T>, DeviceError> {
        let (rows, columns) = self.size(panel);
        match self.own(k, panel) {
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

/// The panels of `summa`.
struct Broadcasts<'j, 'g, T: Element> {
    gpu: &'g Gpu,
    k: usize,
    along_row: Side<'j, 'g, T>,
    along_column: Side<'j, 'g, T>,
    /// Of each stage, until copies to it are started.
    read: [Option<Event>; STAGES],
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
            (Way::Nccl, Some(read)) => self.gpu.copies_wait_for(read)?,
            (Way::Mpi, Some(read)) => wait_on_host(read)?,
            // MPI writes to other memory than the product reads.
            (Way::Pinned, Some(read)) => self.read[stage] = Some(read),
        }
        self.along_row.start(self.gpu, self.k, panel, stage)?;
        self.along_column.start(self.gpu, self.k, panel, stage)
    }

    fn arrive(
        &mut self,
        panel: &Range<usize>,
        stage: usize,
    ) -> Result<(OnGpu<T>, OnGpu<T>), LayoutError> {
        if let Some(read) = self.read[stage].take() {
            self.gpu.copies_wait_for(read)?;
        }
        let a = self.along_row.arrive(self.gpu, self.k, panel, stage)?;
        let b = self.along_column.arrive(self.gpu, self.k, panel, stage)?;
        self.gpu.products_wait_for_copies()?;
        Ok((a, b))
    }
}
