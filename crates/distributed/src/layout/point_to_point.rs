//! Master and workers: rank 0 sends each worker its rows of A and all of B, and receives its rows
//! of C. It multiplies nothing itself, unless it is alone.
//!
//! With P ranks, so P - 1 workers, a worker
//!
//! ```text
//! receives      M K / (P-1) + K N     elements, in 2 messages
//! computes    2 M N K / (P-1)         flops
//! sends         M N / (P-1)           elements, in 1 message
//! ```
//!
//! (report 003, section 2.2.1, equations 2 and 3, in its letters M N / (P-1) + N K and
//! 2 M N K / (P-1)). Rank 0 sends all that they receive, one blocking message after the other:
//! M K + (P-1) K N. So time to distribute grows with P, and the last worker waits for all others'
//! B.

use verification::cpu::view::{View, ViewMut};

use super::{Job, Layout, LayoutError, Multiply};
use crate::Element;
use crate::clock::Phase;
use crate::model::Case;
use crate::share_out::{Block, Grid, share};
use crate::volume::Volume;

/// See the module.
pub struct PointToPoint;

/// How many ranks multiply: all but the first, unless there is no other.
fn workers(ranks: usize) -> usize {
    (ranks - 1).max(1)
}

/// The rank of the first of them.
fn first_worker(ranks: usize) -> usize {
    usize::from(ranks > 1)
}

impl Layout for PointToPoint {
    fn name(&self) -> &'static str {
        "point-to-point"
    }

    fn idea(&self) -> &'static str {
        "a master sends rows of A and all of B to workers, one message after the other"
    }

    fn grid(&self, case: &Case) -> Grid {
        Grid::column(workers(case.ranks))
    }

    fn blocks(&self, case: &Case) -> Vec<Block> {
        let (shape, first) = (case.shape, first_worker(case.ranks));
        let rows = |rank: usize| match rank.checked_sub(first) {
            Some(worker) => share(shape.m, workers(case.ranks), worker),
            None => 0..0,
        };
        let block = |rank| Block {
            rows: rows(rank),
            columns: 0..shape.n,
        };
        (0..case.ranks).map(block).collect()
    }

    fn inputs_sent(&self, case: &Case, rank: usize) -> (Volume, Volume) {
        let [m, n, k] = [case.shape.m, case.shape.n, case.shape.k].map(|size| size as u64);
        if rank > 0 || case.ranks == 1 || n == 0 {
            return Default::default();
        }
        // Those that have rows.
        let busy = m.min(workers(case.ranks) as u64);
        let of_a = Volume {
            elements: m * k,
            messages: if k > 0 { busy } else { 0 },
        };
        (of_a + Volume::of(busy, k * n), Volume::default())
    }
}

impl<T: Element> Multiply<T> for PointToPoint {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        match (job.ranks.rank(), job.operands) {
            (0, Some((a, b))) => master(self, job, a, b).map(Some),
            (rank, _) => worker(job, self.blocks(&job.case)[rank].rows.len()),
        }
    }
}

fn master<T: Element>(
    layout: &PointToPoint,
    job: &Job<'_, T>,
    a: View<'_, T>,
    b: View<'_, T>,
) -> Result<Vec<T::Sum>, LayoutError> {
    let shape = job.case.shape;
    let blocks = layout.blocks(&job.case);
    let rows = match job.case.gathers {
        true => shape.m,
        false => blocks[0].rows.len(),
    };
    let mut c = job.zeros(rows * shape.n)?;
    let workers = || blocks.iter().enumerate().skip(1);
    job.clock.time(Phase::Distribute, || {
        for (rank, block) in workers().filter(|(_, block)| !block.is_empty()) {
            job.ranks
                .send(&[a.part(block.rows.clone(), 0..shape.k)], rank);
            job.ranks.send(&[b], rank);
        }
    });
    job.sent_in(Phase::Distribute);
    let mut below = ViewMut::new(&mut c, rows, shape.n, shape.n);
    if let [alone] = &blocks[..] {
        let rows = alone.rows.clone();
        job.multiply(a.part(rows, 0..shape.k), b, below.reborrow())?;
    }
    job.clock.time(Phase::Idle, || job.ranks.barrier());
    if !job.case.gathers {
        return Ok(c);
    }
    job.clock.time(Phase::Collect, || {
        for (rank, block) in workers() {
            let (rows, rest) = below.split_rows(block.rows.len());
            below = rest;
            job.ranks.receive(vec![rows], rank);
        }
    });
    Ok(c)
}

fn worker<T: Element>(job: &Job<'_, T>, rows: usize) -> Result<Option<Vec<T::Sum>>, LayoutError> {
    let (n, k) = (job.case.shape.n, job.case.shape.k);
    let is_busy = rows > 0 && n > 0;
    let mut c = job.room(rows, n)?;
    if is_busy {
        let (mut a, mut b) = (job.room(rows, k)?, job.room(k, n)?);
        job.clock.time(Phase::Distribute, || {
            job.ranks.receive(vec![a.view_mut()], 0);
            job.ranks.receive(vec![b.view_mut()], 0);
        });
        job.multiply(a.view(), b.view(), c.view_mut())?;
    }
    job.clock.time(Phase::Idle, || job.ranks.barrier());
    if !job.case.gathers {
        return Ok(Some(c.buffer));
    }
    job.clock
        .time(Phase::Collect, || job.ranks.send(&[c.view()], 0));
    job.sent_in(Phase::Collect);
    Ok(None)
}
