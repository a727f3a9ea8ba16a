//! C while it is computed: on rank 0 all of it, on another rank its block alone. If C is not
//! gathered, so it is on rank 0.

use verification::cpu::view::{View, ViewMut};

use super::{Job, LayoutError};
use crate::Element;
use crate::clock::Phase;
use crate::comm::Compact;
use crate::share_out::{Block, Grid};
use gpu_gemm::Shape;

/// C of a job whose ranks form a grid, whose first rank is rank 0.
pub(super) struct Product<T: Element> {
    buffer: Vec<T::Sum>,
    block: Block,
    shape: Shape,
    grid: Grid,
    /// All of C is in the buffer.
    is_all: bool,
    gathers: bool,
}

impl<T: Element> Product<T> {
    /// Zeros.
    pub fn new(job: &Job<'_, T>, grid: Grid) -> Result<Self, LayoutError> {
        let (shape, rank) = (job.case.shape, job.ranks.rank());
        let block = grid.block(shape, rank);
        let is_all = rank == 0 && job.case.gathers;
        let elements = match is_all {
            true => shape.m * shape.n,
            false => block.rows.len() * block.columns.len(),
        };
        job.local.begin(block.rows.len(), block.columns.len())?;
        Ok(Product {
            buffer: job.zeros(elements)?,
            block,
            shape,
            grid,
            is_all,
            gathers: job.case.gathers,
        })
    }

    /// Adds `A * B` to this rank's block. On a CPU, strips of rows are multiplied, and after each,
    /// `progress` lets MPI work on what travels. A device gets copies of both, which counts as
    /// `phase`, and a GPU multiplies while the host goes on.
    pub fn add(
        &mut self,
        job: &Job<'_, T>,
        phase: Phase,
        a: View<'_, T>,
        b: View<'_, T>,
        mut progress: impl FnMut(),
    ) -> Result<(), LayoutError> {
        let progress: &mut dyn FnMut() = &mut progress;
        let added = (job.local).add(job.clock, phase, (a, b), self.block(), Some(progress));
        Ok(added?)
    }

    /// All of it at once.
    pub fn compute(
        &mut self,
        job: &Job<'_, T>,
        a: View<'_, T>,
        b: View<'_, T>,
    ) -> Result<(), LayoutError> {
        let phase = Phase::Distribute;
        Ok((job.local).add(job.clock, phase, (a, b), self.block(), None)?)
    }

    /// This rank's block.
    fn block(&mut self) -> ViewMut<'_, T::Sum> {
        let (rows, columns) = (self.block.rows.len(), self.block.columns.len());
        match self.is_all {
            // The block of rank 0 is the top left one.
            true => {
                let Shape { m, n, .. } = self.shape;
                let all = ViewMut::new(&mut self.buffer, m, n, n);
                all.split_rows(rows).0.split_columns(columns).0
            }
            false => ViewMut::new(&mut self.buffer, rows, columns, columns),
        }
    }

    /// Waits until all ranks have computed theirs, and returns C on rank 0: one collective, in
    /// which each block goes to its place among the rows of C by a derived datatype. If C is not
    /// gathered, each rank's block stays where it is.
    pub fn collect(mut self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        job.local.fetch(job.clock, self.block())?;
        job.clock.time(Phase::Idle, || job.ranks.barrier());
        if !self.gathers {
            return Ok(Some(self.buffer));
        }
        job.clock.time(Phase::Collect, || match self.is_all {
            true => {
                let Shape { m, n, .. } = self.shape;
                let all = ViewMut::new(&mut self.buffer, m, n, n);
                let blocks = cut(all, self.grid).into_iter().enumerate().skip(1);
                let incoming = blocks.map(|(rank, block)| (rank, vec![block])).collect();
                job.ranks.exchange(&[], incoming);
            }
            false => {
                let (rows, columns) = (self.block.rows.len(), self.block.columns.len());
                let block = View::new(&self.buffer, rows, columns, columns);
                job.ranks.exchange(&[(0, vec![block])], Vec::new());
            }
        });
        job.sent_in(Phase::Collect);
        Ok(self.is_all.then_some(self.buffer))
    }
}

/// The blocks of C, in the order of ranks.
fn cut<T>(c: ViewMut<'_, T>, grid: Grid) -> Vec<ViewMut<'_, T>> {
    let shape = Shape::new(c.rows(), c.columns(), 0);
    let mut blocks = Vec::new();
    let mut below = c;
    for row in 0..grid.rows {
        let height = grid.block(shape, row * grid.columns).rows.len();
        let (mut band, rest) = below.split_rows(height);
        below = rest;
        for column in 0..grid.columns {
            let width = grid.block(shape, column).columns.len();
            let (block, rest) = band.split_columns(width);
            band = rest;
            blocks.push(block);
        }
    }
    blocks
}

/// A rank's blocks of A and B: those of rank 0 in place, another's as received.
pub(super) enum Held<'a, T> {
    Own(View<'a, T>, View<'a, T>),
    Received([Compact<T>; 2]),
}

impl<T> Held<'_, T> {
    pub fn views(&self) -> (View<'_, T>, View<'_, T>) {
        match self {
            Held::Own(a, b) => (*a, *b),
            Held::Received([a, b]) => (a.view(), b.view()),
        }
    }
}

/// One collective from rank 0 gives each rank its blocks of A and B, which `held` says.
pub(super) fn distribute<'a, T: Element>(
    job: &Job<'a, T>,
    held: impl Fn(usize) -> (Block, Block),
) -> Result<Held<'a, T>, LayoutError> {
    let held = match job.operands {
        Some((a, b)) => {
            let parts = |rank| {
                let (of_a, of_b) = held(rank);
                let a = a.part(of_a.rows, of_a.columns);
                (a, b.part(of_b.rows, of_b.columns))
            };
            let message = |rank| {
                let (a, b) = parts(rank);
                (rank, vec![a, b])
            };
            let outgoing: Vec<_> = (1..job.case.ranks).map(message).collect();
            job.clock.time(Phase::Distribute, || {
                job.ranks.exchange(&outgoing, Vec::new())
            });
            let (a, b) = parts(0);
            Held::Own(a, b)
        }
        None => {
            let (of_a, of_b) = held(job.ranks.rank());
            let room = |block: Block| job.room(block.rows.len(), block.columns.len());
            let mut blocks = [room(of_a)?, room(of_b)?];
            let parts = blocks.iter_mut().map(Compact::view_mut).collect();
            job.clock.time(Phase::Distribute, || {
                job.ranks.exchange(&[], vec![(0, parts)])
            });
            Held::Received(blocks)
        }
    };
    job.sent_in(Phase::Distribute);
    Ok(held)
}

/// Each rank of a grid gets the rows of A and the columns of B that its block of C needs, and
/// multiplies them.
pub(super) fn scatter_and_multiply<T: Element>(
    grid: Grid,
    job: &Job<'_, T>,
) -> Result<Option<Vec<T::Sum>>, LayoutError> {
    let Shape { k, .. } = job.case.shape;
    let mut product = Product::new(job, grid)?;
    let held = distribute(job, |rank| {
        let Block { rows, columns } = grid.block(job.case.shape, rank);
        // A rank without elements of C needs none of A and B.
        let depth = match rows.is_empty() || columns.is_empty() {
            true => 0..0,
            false => 0..k,
        };
        let of_a = Block {
            rows,
            columns: depth.clone(),
        };
        let of_b = Block {
            rows: depth,
            columns,
        };
        (of_a, of_b)
    })?;
    let (a, b) = held.views();
    product.compute(job, a, b)?;
    product.collect(job)
}
