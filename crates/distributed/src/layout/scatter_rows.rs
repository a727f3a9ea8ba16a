//! One collective: every rank, rank 0 among them, gets its rows of A and all of B in one message.
//!
//! Over `point-to-point`: half the messages, all ranks multiply, and MPI orders the transfers. A
//! derived datatype describes rows of A and B where they lie, so that nothing is copied together
//! first (the report's buffer holds B once for each rank). With P ranks, a rank
//!
//! ```text
//! receives      M K / P + K N     elements, in 1 message
//! computes    2 M N K / P         flops
//! sends         M N / P           elements, in 1 message
//! ```
//!
//! (report 003, section 2.2.1, equations 2 and 3, with all P ranks computing). Rank 0 sends
//! (P-1)/P M K + (P-1) K N: all of B to every other rank, whatever their number.

use gpu_gemm::Shape;
use host::cpu::view::{View, ViewMut};

use super::product::{Product, collected};
use super::{Job, Layout, LayoutError, Multiply};
use crate::Element;
use crate::clock::Phase;
use crate::model::{Bytes, Case, Cost, Elements, Machine, Memory};
use crate::share_out::{Block, Grid, largest_share};
use crate::volume::{Sent, Volume};

/// See the module.
pub struct ScatterRows;

/// Ranks that have elements of C.
fn busy(case: &Case) -> usize {
    match case.shape.n {
        0 => 0,
        _ => case.shape.m.min(case.ranks),
    }
}

/// What rank 0 sends of `depth` columns of A and as many rows of B: rows of A and all of B to each
/// other rank that has elements of C, in one message.
pub(super) fn scattered(case: &Case, depth: usize) -> Volume {
    let others = busy(case).saturating_sub(1) as u64;
    if others == 0 || depth == 0 {
        return Volume::default();
    }
    let rows = case.shape.m - largest_share(case.shape.m, case.ranks);
    Volume {
        elements: depth as u64 * (rows as u64 + others * case.shape.n as u64),
        messages: others,
    }
}

/// Of layouts whose ranks hold rows of A and all of B.
pub(super) fn memory_by_rows(case: &Case, parts: usize) -> Memory {
    let [n, k] = [case.shape.n, case.shape.k].map(|size| size as u64);
    let rows = largest_share(case.shape.m, parts) as u64;
    Memory {
        first: Elements::all(case.shape),
        others: match case.ranks {
            1 => Elements::default(),
            _ => Elements {
                inputs: rows * k + k * n,
                sums: rows * n,
            },
        },
    }
}

/// The time in which rank 0 receives all blocks but its own, if it collects them.
pub(super) fn collecting(case: &Case, grid: Grid, machine: &Machine, bytes: Bytes) -> f64 {
    if !case.gathers {
        return 0.0;
    }
    let own = grid.block(case.shape, 0);
    let own = own.rows.len() * own.columns.len();
    let volume = Volume {
        elements: (case.shape.m * case.shape.n - own) as u64,
        messages: case.ranks as u64 - 1,
    };
    machine.sending(volume, bytes.sums)
}

impl Layout for ScatterRows {
    fn name(&self) -> &'static str {
        "scatter-rows"
    }

    fn idea(&self) -> &'static str {
        "one collective gives every rank its rows of A and all of B in one message"
    }

    fn grid(&self, case: &Case) -> Grid {
        Grid::column(case.ranks)
    }

    fn sent(&self, case: &Case, rank: usize) -> Sent {
        Sent {
            distribute: match rank {
                0 => scattered(case, case.shape.k),
                _ => Volume::default(),
            },
            collect: collected(case, self.grid(case), rank),
            ..Sent::default()
        }
    }

    fn memory(&self, case: &Case) -> Memory {
        memory_by_rows(case, case.ranks)
    }

    fn cost(&self, case: &Case, machine: &Machine, bytes: Bytes) -> Cost {
        Cost {
            distribute_s: machine.sending(scattered(case, case.shape.k), bytes.inputs),
            compute_s: machine.multiplying(Shape {
                m: largest_share(case.shape.m, case.ranks),
                ..case.shape
            }),
            collect_s: collecting(case, self.grid(case), machine, bytes),
            ..Cost::default()
        }
    }
}

impl<T: Element> Multiply<T> for ScatterRows {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        scatter_and_multiply(self.grid(&job.case), job)
    }
}

/// One collective from rank 0 gives each rank of a grid the rows of A and the columns of B that
/// its block of C needs; another collects the blocks.
pub(super) fn scatter_and_multiply<T: Element>(
    grid: Grid,
    job: &Job<'_, T>,
) -> Result<Option<Vec<T::Sum>>, LayoutError> {
    let (shape, rank) = (job.case.shape, job.ranks.rank());
    let k = shape.k;
    let block = grid.block(shape, rank);
    let (rows, columns) = (block.rows.len(), block.columns.len());
    let is_busy = !block.is_empty();
    let mut product = Product::new(job, grid)?;
    match job.operands {
        Some((a, b)) => {
            let parts = |rank| {
                let Block { rows, columns } = grid.block(shape, rank);
                (rank, vec![a.part(rows, 0..k), b.part(0..k, columns)])
            };
            let others = 1..grid.ranks();
            let busy = others.filter(|rank| !grid.block(shape, *rank).is_empty());
            let outgoing: Vec<_> = busy.map(parts).collect();
            job.clock.time(Phase::Distribute, || {
                job.ranks.exchange(&outgoing, Vec::new())
            });
            job.sent_in(Phase::Distribute);
            let (a, b) = (a.part(block.rows, 0..k), b.part(0..k, block.columns));
            product.compute(job, a, b)?;
        }
        None => {
            let (mut a, mut b) = match is_busy {
                true => (job.zeros(rows * k)?, job.zeros(k * columns)?),
                false => (Vec::new(), Vec::new()),
            };
            let parts = match is_busy {
                true => vec![
                    ViewMut::new(&mut a, rows, k, k),
                    ViewMut::new(&mut b, k, columns, columns),
                ],
                false => Vec::new(),
            };
            job.clock.time(Phase::Distribute, || {
                job.ranks.exchange(&[], vec![(0, parts)])
            });
            if is_busy {
                let a = View::new(&a, rows, k, k);
                let b = View::new(&b, k, columns, columns);
                product.compute(job, a, b)?;
            }
        }
    }
    product.collect(job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::plain;

    #[test]
    fn the_formula_of_the_report_holds_for_even_shares() {
        let (m, n, k) = (12, 5, 7);
        for ranks in [1, 2, 3, 4, 6, 12] {
            let case = Case {
                shape: Shape::new(m, n, k),
                ranks,
                panel: 4,
                gathers: true,
            };
            let sent = ScatterRows.sent(&case, 0).distribute;
            let others = ranks - 1;
            assert_eq!(sent.elements as usize, others * (m * k / ranks + k * n));
            assert_eq!(sent.messages as usize, others);
        }
    }

    #[test]
    fn distributing_costs_more_with_more_ranks_and_computing_less() {
        let cost = |ranks| {
            let case = Case {
                shape: Shape::cube(1024),
                ranks,
                panel: 4,
                gathers: true,
            };
            ScatterRows.cost(&case, &plain(), Bytes::of::<f32>())
        };
        assert_eq!((cost(1).distribute_s, cost(1).collect_s), (0.0, 0.0));
        assert!(cost(4).distribute_s > 2.0 * cost(2).distribute_s);
        assert!((cost(1).compute_s / cost(4).compute_s - 4.0).abs() < 1e-9);
    }
}
