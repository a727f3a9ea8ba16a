//! Panels that are broadcast: what `summa` and `broadcast-b` share.
//!
//! C is computed panel by panel, and the next panel travels while this one is multiplied. There are
//! two ways to cut a product into panels:
//!
//! ```text
//! along k          columns of A and rows of B: their product is added to all of a rank's block
//! columns of B     and all of A, which stays: their product is these columns of the block
//! ```
//!
//! The first lets A be on several ranks of a row of the grid, but C is read and written for each
//! panel; the second writes C once.

use std::ops::Range;

use gpu_gemm::Shape;
use host::cpu::view::View;

use super::product::{Product, distribute};
use super::{Job, Layout, LayoutError, Multiply};
use crate::Element;
use crate::clock::Phase;
use crate::comm::{Panel, Ranks, UnderWay};
use crate::local::gpu::Addend;
use crate::model::{Bytes, Case, Elements, Machine, Memory, not_hidden};
use crate::share_out::{Block, Grid, Shares, panels};
use crate::volume::Volume;

/// Panels that travel or are multiplied at a time.
pub(super) const STAGES: usize = 2;

/// Who holds which part of A and of B while panels of them are broadcast.
#[derive(Clone, Copy)]
pub struct Distribution {
    pub grid: Grid,
    /// How the columns of A lie along a row of the grid, if panels are cut along k. If they are
    /// columns of B, each rank holds its rows of A.
    pub along_row: Option<Shares>,
    /// How B lies along a column of the grid: its rows if panels are cut along k, else its columns,
    /// all of them in a grid of one column.
    pub along_column: Shares,
}

/// What a panel is of a block.
#[derive(Clone, Copy)]
pub(super) enum Cut {
    Rows,
    Columns,
}

impl Cut {
    /// The rows and columns of such a panel, of a block of so many rows and columns.
    pub fn of(
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
    pub fn size(self, block: (usize, usize), panel: usize) -> (usize, usize) {
        let (rows, columns) = self.of(block, 0..panel);
        (rows.len(), columns.len())
    }
}

impl Distribution {
    /// What a panel is of B. Of A it is columns, or all.
    pub(super) fn cut_of_b(&self) -> Cut {
        match self.along_row {
            Some(_) => Cut::Rows,
            None => Cut::Columns,
        }
    }

    /// Panels, each of which has one owner along a row, and one along a column: ranges of k, or of
    /// the columns of B.
    pub fn panels(&self, case: &Case) -> Vec<Range<usize>> {
        let of_b = self.along_column;
        let of_a = self.along_row.map(|of_a| of_a.holders);
        let holders: Vec<usize> = of_a.into_iter().chain([of_b.holders]).collect();
        panels(of_b.size, case.panel, &holders)
    }

    /// The blocks of A and of B that a rank holds: rows and columns of each.
    pub fn held(&self, case: &Case, rank: usize) -> (Block, Block) {
        let (row, column) = self.grid.place(rank);
        let c = self.grid.block(case.shape, rank);
        let (all, of_b) = (0..case.shape.k, self.along_column.held_by(row));
        let (of_a, (rows, columns)) = match self.along_row {
            Some(of_a) => (of_a.held_by(column), (of_b, c.columns)),
            None => (all.clone(), (all, of_b)),
        };
        let of_a = Block {
            rows: c.rows,
            columns: of_a,
        };
        (of_a, Block { rows, columns })
    }

    /// What is sent before the product, and beside it.
    pub fn inputs_sent(&self, case: &Case, rank: usize) -> (Volume, Volume) {
        let grid = self.grid;
        let panels = self.panels(case);
        let (of_a, of_b) = self.held(case, rank);
        let (row, column) = grid.place(rank);
        let distribute = match rank {
            0 => (1..case.ranks).fold(Volume::default(), |sum, rank| {
                let (of_a, of_b) = self.held(case, rank);
                sum + Volume::of(1, of_a.elements() + of_b.elements())
            }),
            _ => Volume::default(),
        };
        let along_row = self.along_row.map(|shares| {
            let own = shares.held_by(column);
            broadcast(&panels, &of_a, &own, grid.columns - 1)
        });
        let own = self.along_column.held_by(row);
        let along_column = broadcast(&panels, &of_b, &own, grid.rows - 1);
        (distribute, along_row.unwrap_or_default() + along_column)
    }

    /// A rank besides rank 0 holds its blocks, and two panels of what others have.
    pub fn memory(&self, case: &Case) -> Memory {
        let Shape { n, k, .. } = case.shape;
        let of_rank_1 = || {
            let (of_a, of_b) = self.held(case, 1);
            let c = self.grid.block(case.shape, 1);
            let panels = match self.along_row {
                Some(_) => case.panel.min(k) * (c.rows.len() + c.columns.len()),
                None => case.panel.min(n) * k,
            };
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
    pub fn waiting(&self, case: &Case, machine: &Machine, bytes: Bytes, compute_s: f64) -> f64 {
        let grid = self.grid;
        let panels = self.panels(case);
        let block = grid.block(case.shape, 0);
        let one = |side, elements| machine.broadcasting(elements, side, bytes.inputs);
        let travelling = |panel: &Range<usize>| match self.along_row {
            Some(_) => {
                one(grid.columns, block.rows.len() * panel.len())
                    + one(grid.rows, panel.len() * block.columns.len())
            }
            None => one(grid.rows, case.shape.k * panel.len()),
        };
        let first = panels.first().map_or(0.0, travelling);
        let others: f64 = panels.iter().skip(1).map(travelling).sum();
        first + not_hidden(others, compute_s)
    }

    /// [`super::Multiply::multiply`].
    pub fn multiply<T: Element>(
        &self,
        job: &Job<'_, T>,
    ) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        let mut product = Product::new(job, self.grid)?;
        let held = distribute(job, |rank| self.held(&job.case, rank))?;
        let (of_a, of_b) = held.views();
        multiply_panels(job, self, of_a, of_b, &mut product)?;
        product.collect(job)
    }
}

/// A layout whose panels are broadcast, by how it is distributed.
pub trait OfPanels: Sync {
    const NAME: &'static str;
    const IDEA: &'static str;

    fn distribution(case: &Case) -> Distribution;
}

impl<L: OfPanels> Layout for L {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn idea(&self) -> &'static str {
        L::IDEA
    }

    fn grid(&self, case: &Case) -> Grid {
        L::distribution(case).grid
    }

    fn inputs_sent(&self, case: &Case, rank: usize) -> (Volume, Volume) {
        L::distribution(case).inputs_sent(case, rank)
    }

    fn memory(&self, case: &Case) -> Memory {
        L::distribution(case).memory(case)
    }

    fn waiting(&self, case: &Case, machine: &Machine, bytes: Bytes, compute_s: f64) -> f64 {
        L::distribution(case).waiting(case, machine, bytes, compute_s)
    }
}

impl<L: OfPanels, T: Element> Multiply<T> for L {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        L::distribution(&job.case).multiply(job)
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

/// One dimension of the grid: the ranks that panels of A, or of B, are broadcast among.
struct Line<'a, T> {
    ranks: Ranks,
    /// What lies along it, and how.
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
                Panel::Copy {
                    buffer: self.free.pop().expect("a buffer for each panel under way"),
                    rows,
                    columns,
                }
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
    product: &mut Product<'_, T>,
) -> Result<(), LayoutError> {
    let (row, column) = distribution.grid.place(job.ranks.rank());
    let panels = distribution.panels(&job.case);
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    let line = |place, shares, block, cut| Line::new(job, place, shares, block, cut, widest);
    let along_row = distribution.along_row;
    let along_row = along_row.map(|shares| line((row, column), shares, of_a, Cut::Columns));
    let mut along_row = along_row.transpose()?;
    let (shares, cut) = (distribution.along_column, distribution.cut_of_b());
    let mut along_column = line((column, row), shares, of_b, cut)?;
    let mut next = None;
    for (index, panel) in panels.iter().enumerate() {
        let mut start = |panel: &Range<usize>| {
            let a = along_row.as_mut().map(|line| line.start(panel));
            (a, along_column.start(panel))
        };
        let (a, b) = job.clock.time(Phase::Wait, || {
            let (a, b) = next.take().unwrap_or_else(|| start(panel));
            let panels_here = (a.map(UnderWay::wait), b.wait());
            next = panels.get(index + 1).map(&mut start);
            panels_here
        });
        let b_view = b.view();
        let addend = match &a {
            Some(a) => Addend::whole(a.view(), b_view),
            None => Addend {
                a: of_a,
                same_a: true,
                b: b_view,
                columns: panel.clone(),
            },
        };
        product.add(job, Phase::Wait, addend, || {
            if let Some((a, b)) = &mut next {
                if let Some(a) = a {
                    a.progress();
                }
                b.progress();
            }
        })?;
        if let (Some(along_row), Some(a)) = (&mut along_row, a) {
            along_row.free.extend(a.into_buffer());
        }
        along_column.free.extend(b.into_buffer());
    }
    job.sent_in(Phase::Wait);
    Ok(())
}
