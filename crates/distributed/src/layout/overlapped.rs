//! Overlap: `scatter-rows` with k cut into panels; the next panel travels while this one is
//! multiplied.
//!
//! Over `scatter-rows`: a rank waits for the first panel alone, not for its rows of A and all of B.
//! Panels are non-blocking messages: columns of A's rows and rows of B, W of each, so a rank
//!
//! ```text
//! receives      (M / P + N) W         elements a panel, in 2 messages; ceil(K / W) panels
//! computes    2 M N W / P             flops a panel
//! sends         M N / P               elements, in 1 message
//! ```
//!
//! (report 003, section 2.2.3, advice 3 and 4: hide transfers behind arithmetic, in finer
//! pieces.) In total as `scatter-rows`, in 2 ceil(K / W) times the messages. MPI moves data only
//! while the program is inside of MPI, unless an adapter does it: so the product is cut into
//! strips of rows, and calls between them let MPI go on. C is read and written once a panel.
//!
//! Elements of a message are contiguous on either side, so rank 0 copies columns of A: then one
//! call of MPI moves the whole message. A message with gaps is packed in pieces; each needs a call
//! on both sides, and a strip is computed between two calls.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::{Add, Range};

use verification::cpu::view::View;

use super::product::Product;
use super::{Job, Layout, LayoutError, Multiply, scattered};
use crate::Element;
use crate::clock::Phase;
use crate::comm::{Compact, UnderWay};
use crate::model::{Case, Elements, Machine, Memory, not_hidden};
use crate::share_out::{Block, Grid, largest_share, panels};
use crate::volume::{Bytes, Volume};

/// See the module.
pub struct Overlapped;

/// Panels that a rank has room for: one is multiplied, the others travel.
const STAGES: usize = 2;
/// Panels that rank 0 has sent, or starts to send, before it multiplies one.
const AHEAD: usize = 2;

fn panels_of(case: &Case) -> Vec<Range<usize>> {
    panels(case.shape.k, case.panel, &[])
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

    fn is_resident(&self) -> bool {
        // All but the first panel come from rank 0's memory meanwhile.
        false
    }

    fn inputs_sent(&self, case: &Case, rank: usize) -> (Volume, Volume) {
        let mut volumes = panels_of(case).into_iter().map(|panel| {
            let volume = scattered(case, self.grid(case), panel.len());
            // Those of A and of B apart.
            Volume {
                messages: 2 * volume.messages,
                ..volume
            }
        });
        match rank {
            0 => {
                let first = volumes.next().unwrap_or_default();
                (first, volumes.fold(Volume::default(), Add::add))
            }
            _ => Default::default(),
        }
    }

    fn memory(&self, case: &Case) -> Memory {
        let [m, n, k] = [case.shape.m, case.shape.n, case.shape.k].map(|size| size as u64);
        let rows = largest_share(case.shape.m, case.ranks) as u64;
        let room = |panels: usize| (panels as u64 * case.panel as u64).min(panels as u64 * k);
        let all = Elements::all(case.shape);
        Memory {
            first: Elements {
                inputs: all.inputs + room(AHEAD + 1) * (m - rows),
                ..all
            },
            others: match case.ranks {
                1 => Elements::default(),
                _ => Elements {
                    inputs: room(STAGES) * (rows + n),
                    sums: rows * n,
                },
            },
        }
    }

    fn waiting(&self, case: &Case, machine: &Machine, bytes: Bytes, compute_s: f64) -> f64 {
        let (_, others) = self.inputs_sent(case, 0);
        not_hidden(machine.sending(others, bytes.inputs), compute_s)
    }
}

impl<T: Element> Multiply<T> for Overlapped {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        let mut product = Product::new(job, self.grid(&job.case))?;
        match job.operands {
            Some((a, b)) => first_rank(self, job, a, b, &mut product)?,
            None => other_rank(self, job, &mut product)?,
        }
        product.collect(job)
    }
}

/// A panel on its way to one rank: a copy of A's part, and B's in place.
type Sent<'a, T> = (UnderWay<Compact<T>>, UnderWay<PhantomData<&'a [T]>>);

/// Rank 0 sends panels some ahead of its own product.
fn first_rank<T: Element>(
    layout: &Overlapped,
    job: &Job<'_, T>,
    a: View<'_, T>,
    b: View<'_, T>,
    product: &mut Product<T>,
) -> Result<(), LayoutError> {
    let blocks = layout.blocks(&job.case);
    let others = || {
        let others = blocks.iter().enumerate().skip(1);
        others.filter(|(_, block)| !block.is_empty())
    };
    let panels = panels_of(&job.case);
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    let mut free = Vec::new();
    let highest = others().map(|(_, block)| block.rows.len()).max();
    for _ in 0..(AHEAD + 1) * others().count() {
        free.push(job.zeros(highest.unwrap_or(0) * widest)?);
    }
    let start = |panel: &Range<usize>, free: &mut Vec<Vec<T>>| {
        let send = |(rank, block): (usize, &Block)| {
            let of_a = a.part(block.rows.clone(), panel.clone());
            let of_b = b.part(panel.clone(), 0..b.columns());
            let buffer = free.pop().expect("a buffer for each panel under way");
            let of_a = job.ranks.start_send_of_copy(of_a, buffer, rank);
            (of_a, job.ranks.start_send(&[of_b], rank))
        };
        others().map(send).collect::<Vec<_>>()
    };
    let mut under_way = VecDeque::new();
    let mut ahead = panels.iter();
    if let Some(first) = ahead.next() {
        under_way.push_back(
            job.clock
                .time(Phase::Distribute, || start(first, &mut free)),
        );
        job.sent_in(Phase::Distribute);
    }
    for (index, panel) in panels.iter().enumerate() {
        job.clock.time(Phase::Wait, || {
            while under_way.len() > AHEAD {
                let arrived: Vec<Sent<'_, T>> = under_way.pop_front().unwrap_or_default();
                free.extend(arrived.into_iter().map(|(of_a, _)| of_a.wait().buffer));
            }
            let next = ahead.by_ref().take(if index == 0 { AHEAD } else { 1 });
            under_way.extend(next.map(|panel| start(panel, &mut free)));
        });
        job.sent_in(Phase::Wait);
        let of_a = a.part(blocks[0].rows.clone(), panel.clone());
        let of_b = b.part(panel.clone(), 0..b.columns());
        product.add(job, Phase::Wait, of_a, of_b, || {
            for (of_a, of_b) in under_way.iter_mut().flatten() {
                of_a.progress();
                of_b.progress();
            }
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
    let mut free: Vec<[Vec<T>; 2]> = Vec::new();
    for _ in 0..STAGES {
        free.push([job.zeros(rows * widest)?, job.zeros(widest * n)?]);
    }
    let receive = |panel: &Range<usize>, free: &mut Vec<[Vec<T>; 2]>| {
        let [of_a, of_b] = free.pop().expect("a buffer for each panel under way");
        let of_a = Compact::new(of_a, rows, panel.len());
        let of_b = Compact::new(of_b, panel.len(), n);
        [of_a, of_b].map(|matrix| job.ranks.start_receive(matrix, 0))
    };
    let mut next: Option<[UnderWay<Compact<T>>; 2]> = None;
    for (index, panel) in panels.iter().enumerate() {
        let phase = match index {
            0 => Phase::Distribute,
            _ => Phase::Wait,
        };
        let [of_a, of_b] = job.clock.time(phase, || {
            let this = next.take().unwrap_or_else(|| receive(panel, &mut free));
            this.map(UnderWay::wait)
        });
        next = job.clock.time(Phase::Wait, || {
            panels.get(index + 1).map(|panel| receive(panel, &mut free))
        });
        product.add(job, Phase::Wait, of_a.view(), of_b.view(), || {
            next.iter_mut().flatten().for_each(UnderWay::progress);
        })?;
        free.push([of_a.buffer, of_b.buffer]);
    }
    Ok(())
}
