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
use host::cpu::view::{View, ViewMut};

use super::product::{Product, collected};
use super::scatter_rows::collecting;
use super::{Job, LayoutError};
use crate::Element;
use crate::clock::Phase;
use crate::comm::{Broadcasting, Panel, Ranks};
use crate::local::gpu::Addend;
use crate::model::{Bytes, Case, Cost, Machine, not_hidden};
use crate::share_out::{Block, Grid, Shares, panels};
use crate::volume::{Sent, Volume};

/// Panels that travel or are multiplied at a time.
pub(super) const STAGES: usize = 2;

/// Who holds which part of A and of B while panels of them are broadcast.
#[derive(Clone, Copy)]
pub(super) struct Distribution {
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
    pub fn cut_of_b(&self) -> Cut {
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

    /// What rank 0 multiplies of a panel.
    pub fn product(&self, case: &Case, panel: &Range<usize>) -> Shape {
        let block = self.grid.block(case.shape, 0);
        let (rows, columns) = (block.rows.len(), block.columns.len());
        match self.along_row {
            Some(_) => Shape::new(rows, columns, panel.len()),
            None => Shape::new(rows, panel.len(), case.shape.k),
        }
    }

    pub fn sent(&self, case: &Case, rank: usize) -> Sent {
        let grid = self.grid;
        let panels = self.panels(case);
        let (of_a, of_b) = self.held(case, rank);
        let (row, column) = grid.place(rank);
        let distribute = match rank {
            0 => (1..case.ranks).fold(Volume::default(), |sum, rank| {
                let (of_a, of_b) = self.held(case, rank);
                sum + Volume::of(1, elements(&of_a) + elements(&of_b))
            }),
            _ => Volume::default(),
        };
        let along_row = self.along_row.map(|shares| {
            let own = shares.held_by(column);
            broadcast(&panels, &of_a, &own, grid.columns - 1)
        });
        let own = self.along_column.held_by(row);
        Sent {
            distribute,
            multiply: along_row.unwrap_or_default()
                + broadcast(&panels, &of_b, &own, grid.rows - 1),
            collect: collected(case, grid, rank),
        }
    }

    /// What it should take.
    pub fn cost(&self, case: &Case, machine: &Machine, bytes: Bytes) -> Cost {
        let grid = self.grid;
        let panels = self.panels(case);
        let block = grid.block(case.shape, 0);
        let products = panels.iter().map(|panel| self.product(case, panel));
        let compute_s = products.map(|product| machine.multiplying(product)).sum();
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
        Cost {
            distribute_s: machine.sending(self.sent(case, 0).distribute, bytes.inputs),
            compute_s,
            wait_s: first + not_hidden(others, compute_s),
            collect_s: collecting(case, grid, machine, bytes),
            ..Cost::default()
        }
    }

    /// [`super::Multiply::multiply`].
    pub fn multiply<T: Element>(
        &self,
        job: &Job<'_, T>,
    ) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        let mut product = Product::new(job, self.grid)?;
        let blocks = distribute(job, self)?;
        let (of_a, of_b) = match (&blocks, job.operands) {
            (Some(held), _) => (held.of_a.view(), held.of_b.view()),
            (None, Some((a, b))) => {
                let (of_a, of_b) = self.held(&job.case, 0);
                (
                    a.part(of_a.rows, of_a.columns),
                    b.part(of_b.rows, of_b.columns),
                )
            }
            (None, None) => unreachable!("rank 0 has operands, and every other its blocks"),
        };
        multiply_panels(job, self, of_a, of_b, &mut product)?;
        product.collect(job)
    }
}

pub(super) fn elements(block: &Block) -> u64 {
    (block.rows.len() * block.columns.len()) as u64
}

/// What a rank broadcasts of its block: it goes to `others`, in as many messages as its share has
/// panels.
fn broadcast(panels: &[Range<usize>], block: &Block, own: &Range<usize>, others: usize) -> Volume {
    let own = panels.iter().filter(|panel| own.contains(&panel.start));
    match elements(block) {
        0 => Volume::default(),
        elements => Volume {
            elements: elements * others as u64,
            messages: (own.count() * others) as u64,
        },
    }
}

/// A block that came from rank 0.
struct Held<T> {
    elements: Vec<T>,
    rows: usize,
    columns: usize,
}

/// Those of one rank.
struct HeldBlocks<T> {
    of_a: Held<T>,
    of_b: Held<T>,
}

impl<T: Element> Held<T> {
    fn new(job: &Job<'_, T>, block: &Block) -> Result<Self, LayoutError> {
        let (rows, columns) = (block.rows.len(), block.columns.len());
        Ok(Held {
            elements: job.zeros(rows * columns)?,
            rows,
            columns,
        })
    }

    fn view(&self) -> View<'_, T> {
        View::new(&self.elements, self.rows, self.columns, self.columns)
    }

    fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut::new(&mut self.elements, self.rows, self.columns, self.columns)
    }
}

/// Rank 0 gives each other rank its blocks of A and B; its own stay where they are.
fn distribute<T: Element>(
    job: &Job<'_, T>,
    distribution: &Distribution,
) -> Result<Option<HeldBlocks<T>>, LayoutError> {
    let blocks = match job.operands {
        Some((a, b)) => {
            let parts = |rank| {
                let (of_a, of_b) = distribution.held(&job.case, rank);
                let of_a = a.part(of_a.rows, of_a.columns);
                let of_b = b.part(of_b.rows, of_b.columns);
                (rank, vec![of_a, of_b])
            };
            let outgoing: Vec<_> = (1..distribution.grid.ranks()).map(parts).collect();
            job.clock.time(Phase::Distribute, || {
                job.ranks.exchange(&outgoing, Vec::new())
            });
            None
        }
        None => {
            let (of_a, of_b) = distribution.held(&job.case, job.ranks.rank());
            let (mut of_a, mut of_b) = (Held::new(job, &of_a)?, Held::new(job, &of_b)?);
            let parts = vec![of_a.view_mut(), of_b.view_mut()];
            job.clock.time(Phase::Distribute, || {
                job.ranks.exchange(&[], vec![(0, parts)])
            });
            Some(HeldBlocks { of_a, of_b })
        }
    };
    job.sent_in(Phase::Distribute);
    Ok(blocks)
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
    fn start(&mut self, panel: &Range<usize>) -> Broadcasting<'a, T> {
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
            let panels_here = (a.map(Broadcasting::wait), b.wait());
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
                    a.test();
                }
                b.test();
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
