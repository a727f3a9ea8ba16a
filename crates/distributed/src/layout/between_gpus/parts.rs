//! What each rank needs of A and B, from rank 0's host memory to every GPU's: a message a rank.

use std::time::Instant;

use gpu_gemm::DeviceError;
use gpu_gemm::device::cuda::Direction;
use host::cpu::view::View;

use super::{all_ranks, receive, send};
use crate::Element;
use crate::clock::Phase;
use crate::comm::transport::Way;
use crate::comm::{Outgoing, Piece};
use crate::layout::{Job, LayoutError};
use crate::local::gpu::{Gpu, OnGpu, Room, after};
use crate::nccl::Communicator;
use crate::share_out::{Block, Grid};
use crate::volume::Volume;

/// A rank's parts of A and B, in its GPU's memory.
pub(super) struct Parts<'g, T> {
    pub a: OnGpu<T>,
    pub b: OnGpu<T>,
    /// Keep them.
    _rooms: Vec<Room<'g, T>>,
}

/// Rank 0 gives each rank what it needs of A and B, in one message. All copies are done when it
/// returns.
pub(super) fn distribute<'g, T: Element>(
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
                job.ranks.count_between_gpus(Volume::of(1, elements));
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
            under_way.into_iter().for_each(Outgoing::wait);
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
        (Way::Peer | Way::Nccl, Some(communicator)) => gpu.nccl().group(|| {
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
                unsafe { gpu.copy_locked(from, part, Direction::ToDevice)? };
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
