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

use verification::cpu::view::View;

use super::product::{Product, distribute};
use super::{Job, Layout, LayoutError, Multiply};
use crate::Element;
use crate::clock::Phase;
use crate::comm::{Compact, Panel, Ranks, UnderWay};
use crate::model::{Case, Elements, Machine, Memory, not_hidden};
use crate::share_out::{Block, Grid, panels, share};
use crate::volume::{Bytes, Volume};

/// See the module.
pub struct Summa;

/// Panels that travel or are multiplied at a time.
const STAGES: usize = 2;

/// Ranges of k, each of which has one owner along a row of the grid, and one along a column: ranks
/// have equal shares of the columns of A along a row, and of the rows of B along a column.
fn panels_of(case: &Case, grid: Grid) -> Vec<Range<usize>> {
    panels(case.shape.k, case.panel, &[grid.columns, grid.rows])
}

/// The blocks of A and of B that a rank holds.
fn held(case: &Case, grid: Grid, rank: usize) -> (Block, Block) {
    let ((row, column), k) = (grid.place(rank), case.shape.k);
    let Block { rows, columns } = grid.block(case.shape, rank);
    let of_a = Block {
        rows,
        columns: share(k, grid.columns, column),
    };
    let of_b = Block {
        rows: share(k, grid.rows, row),
        columns,
    };
    (of_a, of_b)
}

impl Layout for Summa {
    fn name(&self) -> &'static str {
        "summa"
    }

    fn idea(&self) -> &'static str {
        "ranks hold blocks; panels are broadcast along rows and columns of a grid"
    }

    fn grid(&self, case: &Case) -> Grid {
        Grid::of(case.ranks, case.shape)
    }

    fn inputs_sent(&self, case: &Case, rank: usize) -> (Volume, Volume) {
        let grid = self.grid(case);
        let distribute = match rank {
            0 => (1..case.ranks).fold(Volume::default(), |sum, rank| {
                let (of_a, of_b) = held(case, grid, rank);
                sum + Volume::of(1, of_a.elements() + of_b.elements())
            }),
            _ => Volume::default(),
        };
        let panels = panels_of(case, grid);
        let (of_a, of_b) = held(case, grid, rank);
        let of_a = broadcast(&panels, &of_a, &of_a.columns, grid.columns - 1);
        let of_b = broadcast(&panels, &of_b, &of_b.rows, grid.rows - 1);
        (distribute, of_a + of_b)
    }

    /// A rank besides rank 0 holds its blocks, and two panels of what others have.
    fn memory(&self, case: &Case) -> Memory {
        let of_rank_1 = || {
            let grid = self.grid(case);
            let (of_a, of_b) = held(case, grid, 1);
            let c = grid.block(case.shape, 1);
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
        let grid = self.grid(case);
        let block = grid.block(case.shape, 0);
        let travelling = |panel: &Range<usize>| {
            let of = |side, elements| machine.broadcasting(elements, side, bytes.inputs);
            of(grid.columns, block.rows.len() * panel.len())
                + of(grid.rows, panel.len() * block.columns.len())
        };
        let panels = panels_of(case, grid);
        let first = panels.first().map_or(0.0, travelling);
        let others: f64 = panels.iter().skip(1).map(travelling).sum();
        first + not_hidden(others, compute_s)
    }
}

impl<T: Element> Multiply<T> for Summa {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        let grid = self.grid(&job.case);
        let mut product = Product::new(job, grid)?;
        let held = distribute(job, |rank| held(&job.case, grid, rank))?;
        multiply_panels(job, grid, held.views(), &mut product)?;
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

/// The rows and columns of a panel of a block of the given size: of A a slice of its columns, of B
/// one of its rows.
type Cut = fn((usize, usize), Range<usize>) -> (Range<usize>, Range<usize>);

/// One dimension of the grid: the ranks that panels of A, or of B, are broadcast among. Each has an
/// equal share of k.
struct Line<'a, T> {
    ranks: Ranks,
    /// K.
    depth: usize,
    /// This rank's block.
    block: View<'a, T>,
    cut: Cut,
    /// Buffers for the panels of others.
    free: Vec<Vec<T>>,
}

impl<'a, T: Element> Line<'a, T> {
    /// All ranks of the job call it, those of this line with the same `color`. Panels are `widest`
    /// rows or columns at most.
    fn new(
        job: &Job<'_, T>,
        color: usize,
        block: View<'a, T>,
        cut: Cut,
        widest: usize,
    ) -> Result<Self, LayoutError> {
        let ranks = job.ranks.split(Some(color)).expect("a color is given");
        let (rows, columns) = cut((block.rows(), block.columns()), 0..widest);
        // A rank that has all of it receives nothing.
        let others = if ranks.size() == 1 { 0 } else { STAGES };
        let buffers = (0..others).map(|_| job.zeros(rows.len() * columns.len()));
        Ok(Line {
            ranks,
            depth: job.case.shape.k,
            block,
            cut,
            free: buffers.collect::<Result<_, LayoutError>>()?,
        })
    }

    /// Starts the broadcast of a panel.
    fn start(&mut self, panel: &Range<usize>) -> UnderWay<Panel<'a, T>> {
        let block = (self.block.rows(), self.block.columns());
        let ranks = self.ranks.size();
        let share = |rank: &usize| share(self.depth, ranks, *rank);
        let root = (0..ranks).find(|rank| share(rank).contains(&panel.start));
        let root = root.expect("each panel is in a share");
        let part = match root == self.ranks.rank() {
            true => {
                let from = share(&root).start;
                let (rows, columns) = (self.cut)(block, panel.start - from..panel.end - from);
                Panel::Own(self.block.part(rows, columns))
            }
            false => {
                let (rows, columns) = (self.cut)(block, 0..panel.len());
                let buffer = self.free.pop().expect("a buffer for each panel under way");
                Panel::Copy(Compact::new(buffer, rows.len(), columns.len()))
            }
        };
        self.ranks.start_broadcast(root, part)
    }
}

/// Panel after panel: the next one travels while this one is multiplied.
fn multiply_panels<T: Element>(
    job: &Job<'_, T>,
    grid: Grid,
    (of_a, of_b): (View<'_, T>, View<'_, T>),
    product: &mut Product<T>,
) -> Result<(), LayoutError> {
    let (row, column) = grid.place(job.ranks.rank());
    let panels = panels_of(&job.case, grid);
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    let of_columns: Cut = |(rows, _), panel| (0..rows, panel);
    let of_rows: Cut = |(_, columns), panel| (panel, 0..columns);
    let mut along_row = Line::new(job, row, of_a, of_columns, widest)?;
    let mut along_column = Line::new(job, column, of_b, of_rows, widest)?;
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
