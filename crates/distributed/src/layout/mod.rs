//! The layouts: who gets which parts of A and B, when, and who computes which part of C.
//!
//! Each is a file, headed by its one idea and by what it sends. With M x K times K x N on P ranks,
//! elements sent by rank 0 (SUMMA: by each rank, beside the product):
//!
//! | layout | elements | messages |
//! | --- | --- | --- |
//! | [`point_to_point`] | M K + (P-1) K N | 2 (P-1) |
//! | [`scatter_rows`] | (P-1)/P M K + (P-1) K N | P-1, in one collective |
//! | [`scatter_blocks`] | about q M K + p K N, P = p q | P-1, in one collective |
//! | [`overlapped`] | as `scatter_rows` | 2 (P-1) a panel |
//! | [`summa`] | M K (q-1) / P + K N (p-1) / P | (q-1) + (p-1) a panel of its own |
//!
//! These are elements of A and B. Ranks add up products in the type of sums, f32 where A and B are
//! of 16 bits, and each but rank 0 sends its block of C in it.
//!
//! Ranks that multiply on GPUs get and send the same, by way of the host's memory.

mod all;
pub mod overlapped;
pub mod point_to_point;
mod product;
pub mod scatter_blocks;
pub mod scatter_rows;
pub mod summa;

use gpu_gemm::Shape;
use thiserror::Error;
use verification::cpu::view::{View, ViewMut};
use verification::data::ProblemError;

pub use all::layouts;

use crate::Element;
use crate::clock::{Clock, Phase};
use crate::comm::{Compact, Ranks};
use crate::local::{LocalError, LocalProduct};
use crate::model::{Case, Cost, Elements, Machine, Memory};
use crate::share_out::{Block, Grid};
use crate::volume::{Bytes, Sent, Volume};

/// A way to share out a product. All of it is a pure function of shape and rank count.
pub trait Layout: Sync {
    /// Its name on the command line, such as `scatter-rows`.
    fn name(&self) -> &'static str;

    /// The idea, in one line.
    fn idea(&self) -> &'static str;

    /// How the ranks that compute are arranged.
    fn grid(&self, case: &Case) -> Grid;

    /// What a rank sends of A and B: before anything is multiplied, and beside the product.
    fn inputs_sent(&self, case: &Case, rank: usize) -> (Volume, Volume) {
        match rank {
            0 => {
                let all = scattered(case, self.grid(case), case.shape.k);
                (all, Volume::default())
            }
            _ => Default::default(),
        }
    }

    /// The block of C that each rank computes: together they are all of C, once.
    fn blocks(&self, case: &Case) -> Vec<Block> {
        let grid = self.grid(case);
        let block = |rank| grid.block(case.shape, rank);
        (0..case.ranks).map(block).collect()
    }

    /// Whether ranks have, or their GPUs, what they multiply before they begin to, so that the time
    /// from there on is that of a resident product.
    fn is_resident(&self) -> bool {
        true
    }

    /// All that a rank sends: if C is collected, its block of C at the end.
    fn sent(&self, case: &Case, rank: usize) -> Sent {
        let (distribute, multiply) = self.inputs_sent(case, rank);
        let collect = match rank > 0 && case.gathers {
            true => Volume::of(1, self.blocks(case)[rank].elements()),
            false => Volume::default(),
        };
        Sent {
            distribute,
            multiply,
            collect,
        }
    }

    /// What ranks need memory for: rank 0 for all, another for its rows of A, columns of B and
    /// block of C.
    fn memory(&self, case: &Case) -> Memory {
        let others = self.blocks(case).split_off(1);
        let largest = others.iter().max_by_key(|block| block.elements());
        let of_other = |block: &Block| Elements {
            inputs: case.shape.k as u64 * (block.rows.len() + block.columns.len()) as u64,
            sums: block.elements(),
        };
        Memory {
            first: Elements::all(case.shape),
            others: largest.map_or(Elements::default(), of_other),
        }
    }

    /// How long ranks wait for parts of A and B beside a product that takes so long.
    fn waiting(&self, _: &Case, _: &Machine, _: Bytes, _compute_s: f64) -> f64 {
        0.0
    }

    /// The predicted cost, for elements of `bytes` bytes.
    fn cost(&self, case: &Case, machine: &Machine, bytes: Bytes) -> Cost {
        let Shape { m, n, k } = case.shape;
        let blocks = self.blocks(case);
        let largest = blocks.iter().max_by_key(|block| block.elements());
        let of_block = |block: &Block| Shape::new(block.rows.len(), block.columns.len(), k);
        let compute_s = largest.map_or(0.0, |block| machine.multiplying(of_block(block)));
        let collected = match case.gathers {
            true => Volume {
                elements: (m * n) as u64 - blocks[0].elements(),
                messages: case.ranks as u64 - 1,
            },
            false => Volume::default(),
        };
        let (distributed, _) = self.inputs_sent(case, 0);
        Cost {
            distribute_s: machine.sending(distributed, bytes.inputs),
            compute_s,
            wait_s: self.waiting(case, machine, bytes, compute_s),
            collect_s: machine.sending(collected, bytes.sums),
            ..Cost::default()
        }
    }
}

/// What rank 0 sends of `depth` columns of A and as many rows of B: to each other rank of a grid
/// that has elements of C its rows of A and columns of B, in one message.
fn scattered(case: &Case, grid: Grid, depth: usize) -> Volume {
    let Shape { m, n, .. } = case.shape;
    let (p, q) = (m.min(grid.rows), n.min(grid.columns));
    if p * q == 0 || depth == 0 {
        return Volume::default();
    }
    let own = grid.block(case.shape, 0);
    Volume {
        elements: (depth * (q * m + p * n - own.rows.len() - own.columns.len())) as u64,
        messages: (p * q - 1) as u64,
    }
}

/// A layout at work.
pub trait Multiply<T: Element>: Layout {
    /// Computes `A * B`, row by row, in the type of sums: all of it on rank 0, or if it is not
    /// gathered, each rank's block on that rank. All ranks of the job call it.
    ///
    /// # Errors
    ///
    /// The local product fails, or there is no memory. The other ranks then wait for this one:
    /// the caller must end the job.
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError>;
}

/// Why a rank cannot do its part.
#[derive(Debug, Error)]
pub enum LayoutError {
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error("There is no memory for a part of {0} elements.")]
    OutOfMemory(usize),
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

/// What a rank needs to know to do its part.
pub struct Job<'a, T: Element> {
    pub ranks: &'a Ranks,
    pub case: Case,
    /// A and B, on rank 0.
    pub operands: Option<(View<'a, T>, View<'a, T>)>,
    pub local: &'a dyn LocalProduct<T>,
    pub clock: &'a Clock,
    /// Told what this rank has sent, by phase.
    pub sent: &'a std::cell::Cell<Sent>,
}

impl<T: Element> Job<'_, T> {
    /// Zeros. That the system finds memory for them is time, too.
    fn zeros<N: Element>(&self, elements: usize) -> Result<Vec<N>, LayoutError> {
        self.clock.time(Phase::Distribute, || {
            let mut zeros = Vec::new();
            let enough = zeros.try_reserve_exact(elements);
            enough.map_err(|_| LayoutError::OutOfMemory(elements))?;
            zeros.resize(elements, N::default());
            Ok(zeros)
        })
    }

    /// The same as a matrix.
    fn room<N: Element>(&self, rows: usize, columns: usize) -> Result<Compact<N>, LayoutError> {
        Ok(Compact::new(self.zeros(rows * columns)?, rows, columns))
    }

    /// `C = A * B`, all at once, for a C of zeros.
    fn multiply(
        &self,
        a: View<'_, T>,
        b: View<'_, T>,
        mut c: ViewMut<'_, T::Sum>,
    ) -> Result<(), LayoutError> {
        let (local, clock) = (self.local, self.clock);
        local.begin(c.rows(), c.columns())?;
        local.add(clock, Phase::Distribute, (a, b), c.reborrow(), None)?;
        Ok(local.fetch(clock, c)?)
    }

    /// Notes what was sent since the last call as sent in this phase.
    fn sent_in(&self, phase: Phase) {
        let mut sent = self.sent.get();
        let of_phase = match phase {
            Phase::Distribute => &mut sent.distribute,
            Phase::Compute | Phase::Wait | Phase::Idle => &mut sent.multiply,
            Phase::Collect => &mut sent.collect,
        };
        *of_phase += self.ranks.take_sent();
        self.sent.set(sent);
    }
}

/// The width of panels: as asked, or else what is good for most products. A CPU multiplies 256
/// columns at full speed. A GPU wants thousands, several panels, so that one travels while another
/// is multiplied, and tiles that are whole.
pub fn panel(asked: Option<usize>, shape: Shape, on_gpus: bool) -> usize {
    const ON_CPUS: usize = 256;
    const PANELS: usize = 4;
    asked.unwrap_or_else(|| match on_gpus {
        true => {
            let part = shape.k.div_ceil(PANELS);
            part.next_multiple_of(ON_CPUS).max(ON_CPUS)
        }
        false => ON_CPUS,
    })
}

#[cfg(test)]
mod tests;
