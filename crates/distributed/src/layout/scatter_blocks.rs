//! Blocks of C: a rank gets some rows of A and some columns of B, no longer all of B.
//!
//! Over `scatter-rows`: with P = p q ranks in a grid, a rank
//!
//! ```text
//! receives      M K / p + K N / q     elements, in 1 message
//! computes    2 M N K / P             flops
//! sends         M N / P               elements, in 1 message
//! ```
//!
//! (report 003, section 2.2.1, equations 4 and 5, with all P ranks computing). On a square grid
//! rank 0 sends about sqrt(P) (M K + K N): it grows with the square root of P. p and q are those
//! for which M / p + N / q is the least; a prime P has only one row or one column of ranks.
//! Columns of B lie apart in its rows: they travel by an MPI vector type, and arrive as a compact
//! matrix.

use gpu_gemm::Shape;

use super::product::collected;
use super::scatter_rows::{collecting, scatter_and_multiply};
use super::{Job, Layout, LayoutError, Multiply};
use crate::Element;
use crate::model::{Bytes, Case, Cost, Elements, Machine, Memory};
use crate::share_out::Grid;
use crate::volume::{Sent, Volume};

/// See the module.
pub struct ScatterBlocks;

/// What rank 0 sends: to each rank of the grid with a block of C its rows of A and columns of B.
fn scattered(case: &Case, grid: Grid) -> Volume {
    let [m, n, k] = [case.shape.m, case.shape.n, case.shape.k].map(|size| size as u64);
    // Those that have elements of C.
    let (p, q) = (m.min(grid.rows as u64), n.min(grid.columns as u64));
    if p * q == 0 || k == 0 {
        return Volume::default();
    }
    let own = grid.block(case.shape, 0);
    Volume {
        elements: k * (q * m + p * n - own.rows.len() as u64 - own.columns.len() as u64),
        messages: p * q - 1,
    }
}

impl Layout for ScatterBlocks {
    fn name(&self) -> &'static str {
        "scatter-blocks"
    }

    fn idea(&self) -> &'static str {
        "one collective gives every rank some rows of A and some columns of B"
    }

    fn grid(&self, case: &Case) -> Grid {
        Grid::of(case.ranks, case.shape)
    }

    fn sent(&self, case: &Case, rank: usize) -> Sent {
        let grid = self.grid(case);
        Sent {
            distribute: match rank {
                0 => scattered(case, grid),
                _ => Volume::default(),
            },
            collect: collected(case, grid, rank),
            ..Sent::default()
        }
    }

    fn memory(&self, case: &Case) -> Memory {
        let k = case.shape.k as u64;
        let block = self.grid(case).block(case.shape, 0);
        let (rows, columns) = (block.rows.len() as u64, block.columns.len() as u64);
        Memory {
            first: Elements::all(case.shape),
            others: match case.ranks {
                1 => Elements::default(),
                _ => Elements {
                    inputs: rows * k + k * columns,
                    sums: rows * columns,
                },
            },
        }
    }

    fn cost(&self, case: &Case, machine: &Machine, bytes: Bytes) -> Cost {
        let grid = self.grid(case);
        let block = grid.block(case.shape, 0);
        let (rows, columns) = (block.rows.len(), block.columns.len());
        Cost {
            distribute_s: machine.sending(scattered(case, grid), bytes.inputs),
            compute_s: machine.multiplying(Shape::new(rows, columns, case.shape.k)),
            collect_s: collecting(case, grid, machine, bytes),
            ..Cost::default()
        }
    }
}

impl<T: Element> Multiply<T> for ScatterBlocks {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        scatter_and_multiply(self.grid(&job.case), job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_of_the_report_holds_for_even_shares() {
        let (m, n, k) = (24, 24, 7);
        for (ranks, p, q) in [(1, 1, 1), (2, 2, 1), (4, 2, 2), (6, 3, 2), (16, 4, 4)] {
            let case = Case {
                shape: Shape::new(m, n, k),
                ranks,
                panel: 4,
                gathers: true,
            };
            let sent = ScatterBlocks.sent(&case, 0).distribute;
            assert_eq!(
                sent.elements as usize,
                (ranks - 1) * (m * k / p + k * n / q)
            );
        }
    }
}
