//! SUMMA: ranks in a grid hold blocks of A, B and C, and nothing twice; panels of A are broadcast
//! along rows of the grid, panels of B along columns.
//!
//! Over `scatter-blocks`: no rank sends for all others, and none holds more than its share of A,
//! B and C, and two panels. On a grid of p x q = P ranks, with panels of W columns of A and rows
//! of B, a rank
//!
//! ```text
//! holds         (M K + K N + M N) / P       elements, and 2 W (M / p + N / q) of panels
//! receives      M W / p + W N / q           elements a panel, ceil(K / W) panels at least, but
//!                                           nothing of what it holds itself
//! computes    2 M N W / P                   flops a panel
//! ```
//!
//! and all ranks together receive (q-1) M K + (p-1) K N: each element of A travels to q - 1 ranks,
//! each of B to p - 1 (R. A. van de Geijn and J. Watts, "SUMMA: scalable universal matrix
//! multiplication algorithm", Concurrency: Practice and Experience 9(4), 1997). A rank so receives
//! about (M K + K N) / sqrt(P), which shrinks as ranks are added. Pipelined: the broadcasts of the
//! next panel are started before this one is multiplied. A panel ends where a rank's share of k
//! does, so that it has one owner.
//!
//! Here rank 0 has A and B, so it distributes blocks first, M K + K N elements, and collects C; in
//! programs that use SUMMA they are where they are, and stay there.

use std::ops::Range;

use host::cpu::view::View;

use super::product::{Product, distribute};
use super::{Job, Layout, LayoutError, Multiply};
use crate::Element;
use crate::clock::Phase;
use crate::comm::{Compact, Panel, Ranks, UnderWay};
use crate::model::{Case, Elements, Machine, Memory, not_hidden};
use crate::share_out::{Block, Grid, Shares, panels};
use crate::volume::{Bytes, Volume};

/// See the module.
pub struct Summa;

/// Panels that travel or are multiplied at a time.
const STAGES: usize = 2;

/// Who holds which part of A and of B while panels of them are broadcast.
#[derive(Clone, Copy)]
struct Distribution {
    grid: Grid,
    /// How the columns of A are spread along a row of the grid, and the rows of B along a column.
    along_row: Shares,
    along_column: Shares,
}

impl Distribution {
    fn of(case: &Case) -> Distribution {
        let grid = Grid::of(case.ranks, case.shape);
        let shares = |holders| Shares {
            size: case.shape.k,
            holders,
        };
        Distribution {
            grid,
            along_row: shares(grid.columns),
            along_column: shares(grid.rows),
        }
    }

    /// Ranges of k, each of which has one owner along a row of the grid, and one along a column.
    fn panels(&self, case: &Case) -> Vec<Range<usize>> {
        let holders = [self.grid.columns, self.grid.rows];
        panels(case.shape.k, case.panel, &holders)
    }

    /// The blocks of A and of B that a rank holds.
    fn held(&self, case: &Case, rank: usize) -> (Block, Block) {
        let (row, column) = self.grid.place(rank);
        let c = self.grid.block(case.shape, rank);
        let of_a = Block {
            rows: c.rows,
            columns: self.along_row.held_by(column),
        };
        let of_b = Block {
            rows: self.along_column.held_by(row),
            columns: c.columns,
        };
        (of_a, of_b)
    }
}

impl Layout for Summa {
    fn name(&self) -> &'static str {
        "summa"
    }

    fn idea(&self) -> &'static str {
        "ranks hold blocks; panels are broadcast along rows and columns of a grid"
    }

    fn grid(&self, case: &Case) -> Grid {
        Distribution::of(case).grid
    }

    fn inputs_sent(&self, case: &Case, rank: usize) -> (Volume, Volume) {
        let distribution = Distribution::of(case);
        let Distribution {
            grid,
            along_row,
            along_column,
        } = distribution;
        let distribute = match rank {
            0 => (1..case.ranks).fold(Volume::default(), |sum, rank| {
                let (of_a, of_b) = distribution.held(case, rank);
                sum + Volume::of(1, of_a.elements() + of_b.elements())
            }),
            _ => Volume::default(),
        };
        let panels = distribution.panels(case);
        let (of_a, of_b) = distribution.held(case, rank);
        let (row, column) = grid.place(rank);
        let of_a = broadcast(&panels, &of_a, &along_row.held_by(column), grid.columns - 1);
        let of_b = broadcast(&panels, &of_b, &along_column.held_by(row), grid.rows - 1);
        (distribute, of_a + of_b)
    }

    /// A rank besides rank 0 holds its blocks, and two panels of what others have.
    fn memory(&self, case: &Case) -> Memory {
        let of_rank_1 = || {
            let distribution = Distribution::of(case);
            let (of_a, of_b) = distribution.held(case, 1);
            let c = distribution.grid.block(case.shape, 1);
            let panels = case.panel.min(case.shape.k) * (c.rows.len() + c.columns.len());
            Elements {
                inputs: of_a.elements() + of_b.elements() + (STAGES * panels) as u64,
                sums: c.elements(),
            }
        };
        Memory {
            first: Elements::all(case.shape),
            others: match case.ranks {
                1 => Elements::default(),
                _ => of_rank_1(),
            },
        }
    }

    /// The first panel, and what the product does not hide of the others.
    fn waiting(&self, case: &Case, machine: &Machine, bytes: Bytes, compute_s: f64) -> f64 {
        let distribution = Distribution::of(case);
        let grid = distribution.grid;
        let block = grid.block(case.shape, 0);
        let travelling = |panel: &Range<usize>| {
            let of = |side, elements| machine.broadcasting(elements, side, bytes.inputs);
            of(grid.columns, block.rows.len() * panel.len())
                + of(grid.rows, panel.len() * block.columns.len())
        };
        let panels = distribution.panels(case);
        let first = panels.first().map_or(0.0, travelling);
        let others: f64 = panels.iter().skip(1).map(travelling).sum();
        first + not_hidden(others, compute_s)
    }
}

impl<T: Element> Multiply<T> for Summa {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        let distribution = Distribution::of(&job.case);
        let mut product = Product::new(job, distribution.grid)?;
        let held = distribute(job, |rank| distribution.held(&job.case, rank))?;
        let (of_a, of_b) = held.views();
        multiply_panels(job, &distribution, of_a, of_b, &mut product)?;
        product.collect(job)
    }
}

/// What a rank broadcasts of its block: it goes to `others`, in as many messages as its share has
/// panels.
fn broadcast(panels: &[Range<usize>], block: &Block, own: &Range<usize>, others: usize) -> Volume {
    let own = panels.iter().filter(|panel| own.contains(&panel.start));
    match block.elements() {
        0 => Volume::default(),
        elements => Volume {
            elements: elements * others as u64,
            messages: (own.count() * others) as u64,
        },
    }
}

/// Whether panels of a block are slices of its rows, as those of B, or of its columns, as those of
/// A.
#[derive(Clone, Copy)]
enum Cut {
    Rows,
    Columns,
}

impl Cut {
    /// The rows and columns of a panel of a block of the given size.
    fn of(
        self,
        (rows, columns): (usize, usize),
        panel: Range<usize>,
    ) -> (Range<usize>, Range<usize>) {
        match self {
            Cut::Rows => (panel, 0..columns),
            Cut::Columns => (0..rows, panel),
        }
    }

    /// How many rows and columns those are.
    fn size(self, block: (usize, usize), panel: usize) -> (usize, usize) {
        let (rows, columns) = self.of(block, 0..panel);
        (rows.len(), columns.len())
    }
}

/// One dimension of the grid: the ranks that panels of A, or of B, are broadcast among.
struct Line<'a, T> {
    ranks: Ranks,
    /// The dimension along it, and its shares.
    shares: Shares,
    /// This rank's block.
    block: View<'a, T>,
    cut: Cut,
    /// Buffers for the panels of others.
    free: Vec<Vec<T>>,
}

impl<'a, T: Element> Line<'a, T> {
    /// All ranks of the job call it, those of this line with the same `color`; this is the rank
    /// with that number of the line. Panels are `widest` rows or columns at most.
    fn new(
        job: &Job<'_, T>,
        (color, number): (usize, usize),
        shares: Shares,
        block: View<'a, T>,
        cut: Cut,
        widest: usize,
    ) -> Result<Self, LayoutError> {
        let (rows, columns) = cut.size((block.rows(), block.columns()), widest);
        // A rank that has all of it receives nothing.
        let others = match shares.held_by(number) == (0..shares.size) {
            true => 0,
            false => STAGES,
        };
        let buffers = (0..others).map(|_| job.zeros(rows * columns));
        Ok(Line {
            ranks: job.ranks.split(Some(color)).expect("a color is given"),
            shares,
            block,
            cut,
            free: buffers.collect::<Result<_, LayoutError>>()?,
        })
    }

    /// Starts the broadcast of a panel.
    fn start(&mut self, panel: &Range<usize>) -> UnderWay<Panel<'a, T>> {
        let block = (self.block.rows(), self.block.columns());
        let root = self.shares.owner(panel.start);
        let part = match root == self.ranks.rank() {
            true => {
                let from = self.shares.held_by(root).start;
                let own = panel.start - from..panel.end - from;
                let (rows, columns) = self.cut.of(block, own);
                Panel::Own(self.block.part(rows, columns))
            }
            false => {
                let (rows, columns) = self.cut.size(block, panel.len());
                let buffer = self.free.pop().expect("a buffer for each panel under way");
                Panel::Copy(Compact::new(buffer, rows, columns))
            }
        };
        self.ranks.start_broadcast(root, part)
    }
}

/// Panel after panel: the next one travels while this one is multiplied.
fn multiply_panels<T: Element>(
    job: &Job<'_, T>,
    distribution: &Distribution,
    of_a: View<'_, T>,
    of_b: View<'_, T>,
    product: &mut Product<T>,
) -> Result<(), LayoutError> {
    let (row, column) = distribution.grid.place(job.ranks.rank());
    let panels = distribution.panels(&job.case);
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    let line = |place, shares, block, cut| Line::new(job, place, shares, block, cut, widest);
    let mut along_row = line((row, column), distribution.along_row, of_a, Cut::Columns)?;
    let mut along_column = line((column, row), distribution.along_column, of_b, Cut::Rows)?;
    let mut next = None;
    for (index, panel) in panels.iter().enumerate() {
        let mut start = |panel: &Range<usize>| (along_row.start(panel), along_column.start(panel));
        let (a, b) = job.clock.time(Phase::Wait, || {
            let (a, b) = next.take().unwrap_or_else(|| start(panel));
            let panels_here = (a.wait(), b.wait());
            next = panels.get(index + 1).map(&mut start);
            panels_here
        });
        product.add(job, Phase::Wait, a.view(), b.view(), || {
            if let Some((a, b)) = &mut next {
                a.progress();
                b.progress();
            }
        })?;
        along_row.free.extend(a.into_buffer());
        along_column.free.extend(b.into_buffer());
    }
    job.sent_in(Phase::Wait);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use gpu_gemm::Shape;

    #[test]
    fn together_ranks_send_what_van_de_geijn_and_watts_say() {
        let (m, n, k) = (13, 11, 17);
        for ranks in 1..13 {
            let case = Case {
                shape: Shape::new(m, n, k),
                ranks,
                panel: 3,
                gathers: true,
            };
            let grid = Summa.grid(&case);
            let sent = (0..ranks).map(|rank| Summa.sent(&case, rank).multiply.elements);
            let expected = (grid.columns - 1) * m * k + (grid.rows - 1) * k * n;
            assert_eq!(sent.sum::<u64>() as usize, expected, "{ranks} ranks");
        }
    }
}
