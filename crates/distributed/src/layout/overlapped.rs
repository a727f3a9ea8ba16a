//! Overlap: `scatter-rows` with k cut into panels; the next panel travels while this one is
//! multiplied.
//!
//! Over `scatter-rows`: a rank waits for the first panel alone, not for its rows of A and all of B.
//! Panels are non-blocking messages: columns of A's rows and rows of B, W of each, so a rank
//!
//! ```text
//! receives      (M / P + N) W         elements a panel, in 1 message; ceil(K / W) panels
//! computes    2 M N W / P             flops a panel
//! sends         M N / P               elements, in 1 message
//! ```
//!
//! (report 003, section 2.2.3, advice 3 and 4: hide transfers behind arithmetic, in finer
//! pieces.) In total as `scatter-rows`, in ceil(K / W) times the messages. MPI moves data only
//! while the program is inside of MPI, unless an adapter does it: so the product is cut into
//! strips of rows, and between them MPI is asked to go on. C is read and written once a panel.

use std::ops::Range;

use host::cpu::view::View;

use super::product::{Product, collected};
use super::scatter_rows::{collecting, scattered};
use super::{Job, Layout, LayoutError, Multiply, zeros};
use crate::Element;
use crate::clock::Phase;
use crate::comm::Incoming;
use crate::model::{Case, Cost, Machine, Memory};
use crate::share_out::{Block, Grid, largest_share, panels};
use crate::volume::{Sent, Volume};

/// See the module.
pub struct Overlapped;

/// Panels that travel or are multiplied at a time.
const STAGES: usize = 2;

fn panels_of(case: &Case) -> Vec<Range<usize>> {
    panels(case.shape.k, case.panel, &[])
}

/// What rank 0 sends of the first panel, and of all others.
fn first_and_others(case: &Case) -> (Volume, Volume) {
    let mut volumes = panels_of(case)
        .into_iter()
        .map(|panel| scattered(case, panel.len()));
    let first = volumes.next().unwrap_or_default();
    (
        first,
        volumes.fold(Volume::default(), |sum, volume| sum + volume),
    )
}

impl Layout for Overlapped {
    fn name(&self) -> &'static str {
        "overlapped"
    }

    fn idea(&self) -> &'static str {
        "k in panels: the next one travels while this one is multiplied"
    }

    fn grid(&self, case: &Case) -> Grid {
        Grid::column(case.ranks)
    }

    fn blocks(&self, case: &Case) -> Vec<Block> {
        let block = |rank| self.grid(case).block(case.shape, rank);
        (0..case.ranks).map(block).collect()
    }

    fn sent(&self, case: &Case, rank: usize) -> Sent {
        let (distribute, multiply) = match rank {
            0 => first_and_others(case),
            _ => Default::default(),
        };
        Sent {
            distribute,
            multiply,
            collect: collected(self.grid(case), case.shape, rank),
        }
    }

    fn memory(&self, case: &Case) -> Memory {
        let [m, n, k] = [case.shape.m, case.shape.n, case.shape.k].map(|size| size as u64);
        let rows = largest_share(case.shape.m, case.ranks) as u64;
        let stages = (STAGES * case.panel) as u64;
        Memory {
            first: m * k + k * n + m * n,
            others: match case.ranks {
                1 => 0,
                _ => stages.min(k) * (rows + n) + rows * n,
            },
        }
    }

    fn cost(&self, case: &Case, machine: &Machine, element_bytes: usize) -> Cost {
        let (first, others) = first_and_others(case);
        let rows = largest_share(case.shape.m, case.ranks);
        let compute_s = machine.multiplying(rows, case.shape.n, case.shape.k);
        let travelling = machine.sending(others, element_bytes);
        Cost {
            distribute_s: machine.sending(first, element_bytes),
            compute_s,
            wait_s: machine.not_hidden(travelling, compute_s),
            collect_s: collecting(case, self.grid(case), machine, element_bytes),
            ..Cost::default()
        }
    }
}

impl<T: Element> Multiply<T> for Overlapped {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T>>, LayoutError> {
        let mut product = Product::new(job, self.grid(&job.case))?;
        match job.operands {
            Some((a, b)) => first_rank(self, job, a, b, &mut product)?,
            None => other_rank(self, job, &mut product)?,
        }
        Ok(product.collect(job))
    }
}

/// Rank 0 starts to send panel after panel, and multiplies its own rows meanwhile.
fn first_rank<T: Element>(
    layout: &Overlapped,
    job: &Job<'_, T>,
    a: View<'_, T>,
    b: View<'_, T>,
    product: &mut Product<T>,
) -> Result<(), LayoutError> {
    let blocks = layout.blocks(&job.case);
    let start = |panel: &Range<usize>| {
        let others = blocks.iter().enumerate().skip(1);
        let busy = others.filter(|(_, block)| !block.is_empty());
        let send = |(rank, block): (usize, &Block)| {
            let of_a = a.part(block.rows.clone(), panel.clone());
            let of_b = b.part(panel.clone(), 0..b.columns());
            job.ranks.start_send(&[of_a, of_b], rank)
        };
        busy.map(send).collect::<Vec<_>>()
    };
    let panels = panels_of(&job.case);
    let Some((first, others)) = panels.split_first() else {
        return Ok(());
    };
    let mut under_way = job.clock.time(Phase::Distribute, || start(first));
    job.sent_in(Phase::Distribute);
    // All are queued at once: a rank takes the next one when it has room for it.
    let queued = || others.iter().flat_map(start).collect::<Vec<_>>();
    under_way.extend(job.clock.time(Phase::Wait, queued));
    job.sent_in(Phase::Wait);
    for panel in &panels {
        let of_a = a.part(blocks[0].rows.clone(), panel.clone());
        let of_b = b.part(panel.clone(), 0..b.columns());
        job.add_product_in_strips(of_a, of_b, product.block(), || {
            under_way.retain_mut(|message| !message.test());
        })?;
    }
    job.clock.time(Phase::Wait, || drop(under_way));
    Ok(())
}

/// Another rank receives the next panel while it multiplies this one.
fn other_rank<T: Element>(
    layout: &Overlapped,
    job: &Job<'_, T>,
    product: &mut Product<T>,
) -> Result<(), LayoutError> {
    let block = &layout.blocks(&job.case)[job.ranks.rank()];
    if block.is_empty() {
        return Ok(());
    }
    let (rows, n) = (block.rows.len(), job.case.shape.n);
    let panels = panels_of(&job.case);
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    let mut free: Vec<Vec<Vec<T>>> = Vec::new();
    for _ in 0..STAGES {
        free.push(vec![zeros(rows * widest)?, zeros(widest * n)?]);
    }
    let receive = |panel: &Range<usize>, buffers| {
        let sizes = [(rows, panel.len()), (panel.len(), n)];
        job.ranks.start_receive(buffers, &sizes, 0)
    };
    let mut next: Option<Incoming<T>> = None;
    for (index, panel) in panels.iter().enumerate() {
        let phase = match index {
            0 => Phase::Distribute,
            _ => Phase::Wait,
        };
        let this = match next.take() {
            Some(next) => next,
            None => receive(panel, free.pop().unwrap_or_default()),
        };
        let buffers = job.clock.time(phase, || this.wait());
        next = panels
            .get(index + 1)
            .map(|panel| receive(panel, free.pop().unwrap_or_default()));
        let [a, b] = &buffers[..] else {
            unreachable!("a panel has a part of A and one of B");
        };
        let a = View::new(a, rows, panel.len(), panel.len());
        let b = View::new(b, panel.len(), n, n);
        job.add_product_in_strips(a, b, product.block(), || {
            if let Some(next) = &mut next {
                next.test();
            }
        })?;
        free.push(buffers);
    }
    Ok(())
}
