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

use gpu_gemm::Shape;
use host::cpu::view::{View, ViewMut};

use super::between_gpus::{self, Costs};
use super::product::{Product, collected};
use super::scatter_rows::collecting;
use super::{Job, Layout, LayoutError, Moves, Multiply, Strip};
use crate::Element;
use crate::clock::Phase;
use crate::comm::{Broadcasting, Panel, Ranks};
use crate::model::{Bytes, Case, Cost, Elements, Lie, Machine, Memory};
use crate::share_out::{Block, Grid, Shares, panels};
use crate::volume::{Sent, Volume};

/// See the module.
pub struct Summa;

/// Panels that travel or are multiplied at a time.
pub(super) const STAGES: usize = 2;

/// Who holds which part of A and of B while panels of them are broadcast. Of the rows of A and the
/// columns of B that its block of C needs, a rank holds its shares of k.
#[derive(Clone, Copy)]
pub(super) struct Distribution {
    pub grid: Grid,
    /// Columns of A, along a row of the grid.
    pub along_row: Shares,
    /// Rows of B, along a column.
    pub along_column: Shares,
}

impl Distribution {
    /// Panels, each of which has one owner along a row, and one along a column.
    pub fn panels(&self, case: &Case) -> Vec<Range<usize>> {
        let holders = [self.along_column.holders, self.along_row.holders];
        panels(case.shape.k, case.panel, &holders)
    }

    /// The blocks of A and of B that a rank holds: rows and columns of each.
    pub fn held(&self, case: &Case, rank: usize) -> (Block, Block) {
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

pub(super) fn elements(block: &Block) -> u64 {
    (block.rows.len() * block.columns.len()) as u64
}

/// What a rank broadcasts of its block: it goes to `others`, in as many messages as its share of
/// k has panels.
fn broadcast(panels: &[Range<usize>], block: &Block, of_k: &Range<usize>, others: usize) -> Volume {
    let own = panels.iter().filter(|panel| of_k.contains(&panel.start));
    match elements(block) {
        0 => Volume::default(),
        elements => Volume {
            elements: elements * others as u64,
            messages: (own.count() * others) as u64,
        },
    }
}

impl Summa {
    fn distribution(case: &Case) -> Distribution {
        let grid = Grid::of(case.ranks, case.shape);
        Distribution {
            grid,
            along_row: Shares::equal(case.shape.k, grid.columns),
            along_column: Shares::equal(case.shape.k, grid.rows),
        }
    }
}

/// What a layout says of itself whose panels are broadcast.
impl Distribution {
    pub fn sent(&self, case: &Case, rank: usize) -> Sent {
        let grid = self.grid;
        let panels = self.panels(case);
        let (of_a, of_b) = self.held(case, rank);
        let distribute = match rank {
            0 => (1..case.ranks).fold(Volume::default(), |sum, rank| {
                let (of_a, of_b) = self.held(case, rank);
                sum + Volume::of(1, elements(&of_a) + elements(&of_b))
            }),
            _ => Volume::default(),
        };
        Sent {
            distribute,
            multiply: broadcast(&panels, &of_a, &of_a.columns, grid.columns - 1)
                + broadcast(&panels, &of_b, &of_b.rows, grid.rows - 1),
            collect: collected(grid, case.shape, rank),
        }
    }

    pub fn local_product(&self, case: &Case) -> Shape {
        let block = self.grid.block(case.shape, 0);
        let panels = self.panels(case);
        let widest = panels.iter().map(Range::len).max().unwrap_or(0);
        Shape::new(block.rows.len(), block.columns.len(), widest)
    }

    pub fn moves(&self, case: &Case) -> Moves {
        let mut moves = Moves::of_blocks(case, self.grid);
        let held = self.held(case, 0).0.columns.len();
        if held < case.shape.k {
            moves.uploads.push(Strip {
                columns: held,
                of_columns: case.shape.k,
            });
        }
        moves.broadcasts = Some(Strip {
            // In a row of one rank, A does not travel.
            columns: match self.grid.columns {
                1 => held,
                _ => self.local_product(case).k,
            },
            of_columns: held,
        });
        moves
    }

    /// What it should take, where all ranks have room after `making_room` seconds.
    pub fn cost(&self, case: &Case, machine: &Machine, bytes: Bytes, making_room: f64) -> Cost {
        let (shape, grid) = (case.shape, self.grid);
        if let Some(costs) = Costs::new(case, grid, machine, bytes) {
            return costs.summa(&self.panels(case), |rank| self.held(case, rank));
        }
        let block = grid.block(shape, 0);
        let (rows, columns) = (block.rows.len(), block.columns.len());
        let panels = self.panels(case);
        let products = panels
            .iter()
            .map(|panel| machine.multiplying(rows, columns, panel.len()));
        let compute_s = products.sum();
        // Along a tree: as many steps as the number of ranks has bits.
        let one = |side: usize, elements: usize, lie| {
            let steps = side.next_power_of_two().trailing_zeros();
            let message = Volume::of(1, elements as u64);
            machine.sending(message, lie, bytes.inputs) * f64::from(steps)
        };
        // Columns of A are cut from longer rows, rows of B are not.
        let travelling = |panel: &Range<usize>| {
            one(grid.columns, rows * panel.len(), Lie::Apart)
                + one(grid.rows, panel.len() * columns, Lie::Together)
        };
        let first = panels.first().map_or(0.0, travelling);
        let others: f64 = panels.iter().skip(1).map(travelling).sum();
        Cost {
            distribute_s: making_room
                + machine.sending(self.sent(case, 0).distribute, Lie::Apart, bytes.inputs),
            compute_s,
            wait_s: first + machine.not_hidden(others, compute_s),
            collect_s: collecting(case, grid, machine, bytes),
            ..Cost::default()
        }
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
        Summa::distribution(case).grid
    }

    fn sent(&self, case: &Case, rank: usize) -> Sent {
        Summa::distribution(case).sent(case, rank)
    }

    fn memory(&self, case: &Case) -> Memory {
        let k = case.shape.k as u64;
        let c = self.grid(case).block(case.shape, 0);
        let (of_a, of_b) = Summa::distribution(case).held(case, 0);
        let sides = (c.rows.len() + c.columns.len()) as u64;
        let stages = ((STAGES * case.panel) as u64).min(k);
        Memory {
            first: Elements::all(case.shape),
            others: match case.ranks {
                1 => Elements::default(),
                _ => Elements {
                    inputs: elements(&of_a) + elements(&of_b) + stages * sides,
                    sums: elements(&c),
                },
            },
        }
    }

    fn local_product(&self, case: &Case) -> Shape {
        Summa::distribution(case).local_product(case)
    }

    fn moves(&self, case: &Case) -> Option<Moves> {
        Some(Summa::distribution(case).moves(case))
    }

    fn cost(&self, case: &Case, machine: &Machine, bytes: Bytes) -> Cost {
        let making_room = self.making_room(case, machine, bytes);
        Summa::distribution(case).cost(case, machine, bytes, making_room)
    }
}

impl<T: Element> Multiply<T> for Summa {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        Summa::distribution(&job.case).multiply(job)
    }
}

impl Distribution {
    /// [`Multiply::multiply`].
    pub fn multiply<T: Element>(
        &self,
        job: &Job<'_, T>,
    ) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        if let Some(gpu) = job.gpu {
            return between_gpus::summa(self, job, gpu);
        }
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
        Ok(product.collect(job))
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
    /// How k lies along it.
    shares: Shares,
    /// This rank's block, and a panel of it, from a range of its share of k.
    block: View<'a, T>,
    cut: fn(View<'a, T>, Range<usize>) -> View<'a, T>,
    /// Buffers for the panels of others.
    free: Vec<Vec<T>>,
}

impl<'a, T: Element> Line<'a, T> {
    /// Starts the broadcast of a panel of so many rows and columns.
    fn start(
        &mut self,
        panel: &Range<usize>,
        (rows, columns): (usize, usize),
    ) -> Broadcasting<'a, T> {
        let root = self.shares.owner(panel.start);
        let part = match root == self.ranks.rank() {
            true => {
                let from = self.shares.held_by(root).start;
                Panel::Own((self.cut)(self.block, panel.start - from..panel.end - from))
            }
            false => Panel::Copy {
                buffer: self.free.pop().expect("a buffer for each panel under way"),
                rows,
                columns,
            },
        };
        self.ranks.start_broadcast(root, part)
    }
}

fn columns_of<T>(block: View<'_, T>, columns: Range<usize>) -> View<'_, T> {
    block.part(0..block.rows(), columns)
}

fn rows_of<T>(block: View<'_, T>, rows: Range<usize>) -> View<'_, T> {
    block.part(rows, 0..block.columns())
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
    let (m, n, k) = (of_a.rows(), of_b.columns(), job.case.shape.k);
    let panels = distribution.panels(&job.case);
    let widest = panels.iter().map(Range::len).max().unwrap_or(0);
    let line = |color, shares: Shares, number, block, cut, elements| {
        // Whoever has all of k receives nothing.
        let others = match shares.held_by(number) == (0..k) {
            true => 0,
            false => STAGES,
        };
        let buffers = (0..others).map(|_| job.zeros(elements));
        Ok::<_, LayoutError>(Line {
            ranks: job.ranks.split(Some(color)).expect("a color is given"),
            shares,
            block,
            cut,
            free: buffers.collect::<Result<_, LayoutError>>()?,
        })
    };
    let (shares_a, shares_b) = (distribution.along_row, distribution.along_column);
    let mut along_row = line(row, shares_a, column, of_a, columns_of, m * widest)?;
    let mut along_column = line(column, shares_b, row, of_b, rows_of, widest * n)?;
    let mut next = None;
    for (index, panel) in panels.iter().enumerate() {
        let mut start = |panel: &Range<usize>| {
            let a = along_row.start(panel, (m, panel.len()));
            let b = along_column.start(panel, (panel.len(), n));
            (a, b)
        };
        let (a, b) = job.clock.time(Phase::Wait, || {
            let (a, b) = next.take().unwrap_or_else(|| start(panel));
            let panels_here = (a.wait(), b.wait());
            next = panels.get(index + 1).map(&mut start);
            panels_here
        });
        job.add_product_in_strips(a.view(), b.view(), product.block(), || {
            if let Some((a, b)) = &mut next {
                a.test();
                b.test();
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

    #[test]
    fn together_ranks_send_what_van_de_geijn_and_watts_say() {
        let (m, n, k) = (13, 11, 17);
        for ranks in 1..13 {
            let case = Case {
                shape: Shape::new(m, n, k),
                ranks,
                panel: 3,
            };
            let grid = Summa.grid(&case);
            let sent = (0..ranks).map(|rank| Summa.sent(&case, rank).multiply.elements);
            let expected = (grid.columns - 1) * m * k + (grid.rows - 1) * k * n;
            assert_eq!(sent.sum::<u64>() as usize, expected, "{ranks} ranks");
        }
    }

    #[test]
    fn a_rank_holds_less_the_more_ranks_there_are() {
        let memory = |ranks| {
            let case = Case {
                shape: Shape::cube(1024),
                ranks,
                panel: 1,
            };
            let Elements { inputs, sums } = Summa.memory(&case).others;
            inputs + sums
        };
        assert!(memory(16) > 3 * memory(64));
    }
}
