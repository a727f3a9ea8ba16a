//! Blocks of A and B in the memory of other ranks' GPUs, which a rank reads where they lie.

use gpu_gemm::DeviceError;
use gpu_gemm::device::cuda::ipc::{Exported, WORDS};

use super::parts::Parts;
use crate::Element;
use crate::clock::Phase;
use crate::layout::Job;
use crate::layout::broadcasts::Distribution;
use crate::local::gpu::{Gpu, OnGpu};
use crate::share_out::Block;

/// The blocks of one dimension of the grid, in its order; none of this rank itself, and of ranks
/// that hold nothing.
pub(super) type Line<T> = Vec<Option<OnGpu<T>>>;

/// What other ranks hold of A in this rank's row of the grid, and of B in its column. All ranks of
/// the job call it, each when its own blocks are complete: so none gets to know of another's before.
///
/// # Errors
///
/// The driver cannot share or open the memory.
pub(super) fn open<T: Element>(
    distribution: &Distribution,
    job: &Job<'_, T>,
    gpu: &Gpu,
    own: &Parts<'_, T>,
) -> Result<[Line<T>; 2], DeviceError> {
    job.clock.time(Phase::Distribute, || {
        let export = |part: OnGpu<T>| match part.elements() {
            0 => Ok(Exported::default()),
            _ => gpu.peers().export(part.start),
        };
        let words = [export(own.a)?.words(), export(own.b)?.words()];
        let all = job.ranks.all_gather(words.as_flattened());
        let (all, _) = all.as_chunks::<WORDS>();
        let (grid, this) = (distribution.grid, job.ranks.rank());
        let open = |rank: usize, of_b: bool| {
            let held = distribution.held(&job.case, rank);
            let Block { rows, columns } = if of_b { held.1 } else { held.0 };
            if rank == this || rows.is_empty() || columns.is_empty() {
                return Ok::<_, DeviceError>(None);
            }
            let exported = Exported::from_words(&all[2 * rank + usize::from(of_b)]);
            let start = gpu.peers().open(&exported)?;
            Ok(Some(OnGpu::compact(start, rows.len(), columns.len())))
        };
        let (row, column) = grid.place(this);
        let of_a = (0..grid.columns).map(|column| open(grid.rank(row, column), false));
        let of_b = (0..grid.rows).map(|row| open(grid.rank(row, column), true));
        Ok([
            of_a.collect::<Result<_, _>>()?,
            of_b.collect::<Result<_, _>>()?,
        ])
    })
}
