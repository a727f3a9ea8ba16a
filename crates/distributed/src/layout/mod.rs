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
//! | [`broadcast_b`] | (P-1)/P M K, then (P-1) K N | P-1, then P-1 a panel |
//!
//! These are elements of A and B. Ranks add up products in the type of sums, f32 where A and B are
//! of 16 bits, and each but rank 0 sends its block of C in it.
//!
//! Ranks that multiply on GPUs get and send the same, by way of the host's memory.

pub mod broadcast_b;
mod broadcasts;
pub mod overlapped;
pub mod point_to_point;
mod product;
pub mod scatter_blocks;
pub mod scatter_rows;
pub mod summa;

use gpu_gemm::{DeviceError, Shape};
use host::cpu::view::{View, ViewMut};
use host::data::ProblemError;
use thiserror::Error;

use crate::Element;
use crate::clock::{Clock, Phase};
use crate::comm::Ranks;
use crate::filled::{OutOfMemory, zeros};
use crate::local::gpu::{Addend, Gpu};
use crate::local::{LocalError, LocalProduct};
use crate::model::{Bytes, Case, Cost, Machine, Memory};
use crate::share_out::{Block, Grid};
use crate::volume::Sent;

/// A way to share out a product. All of it is a pure function of shape and rank count.
pub trait Layout: Sync {
    /// Its name on the command line, such as `scatter-rows`.
    fn name(&self) -> &'static str;

    /// The idea, in one line.
    fn idea(&self) -> &'static str;

    /// How the ranks that compute are arranged.
    fn grid(&self, case: &Case) -> Grid;

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

    /// What a rank sends.
    fn sent(&self, case: &Case, rank: usize) -> Sent;

    /// What ranks need memory for.
    fn memory(&self, case: &Case) -> Memory;

    /// What it should take, with elements of so many bytes.
    fn cost(&self, case: &Case, machine: &Machine, bytes: Bytes) -> Cost;
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
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    #[error(transparent)]
    Device(#[from] DeviceError),
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
    /// If the ranks multiply on GPUs.
    pub gpu: Option<&'a Gpu>,
    pub clock: &'a Clock,
    /// Told what this rank has sent, by phase.
    pub sent: &'a std::cell::Cell<Sent>,
}

impl<T: Element> Job<'_, T> {
    /// Threads that fill large vectors.
    pub fn threads(&self) -> usize {
        self.gpu.map_or(1, |gpu| gpu.copy_threads)
    }

    /// So many zeros. That the system finds memory for them is time, too.
    fn zeros<N: Element>(&self, elements: usize) -> Result<Vec<N>, LayoutError> {
        let zeros = || zeros(elements, self.threads());
        Ok(self.clock.time(Phase::Distribute, zeros)?)
    }

    /// `C = A * B`, all at once, for a C of zeros.
    fn multiply(
        &self,
        a: View<'_, T>,
        b: View<'_, T>,
        c: ViewMut<'_, T::Sum>,
    ) -> Result<(), LayoutError> {
        let Some(gpu) = self.gpu else {
            return self.add_product(a, b, c);
        };
        let mut block = gpu.block_of_c(c.rows(), c.columns())?;
        block.add(self.clock, Phase::Distribute, Addend::whole(a, b))?;
        Ok(block.fetch(self.clock, c)?)
    }

    /// `C += A * B`, all at once.
    fn add_product(
        &self,
        a: View<'_, T>,
        b: View<'_, T>,
        c: ViewMut<'_, T::Sum>,
    ) -> Result<(), LayoutError> {
        if c.rows() == 0 || c.columns() == 0 || a.columns() == 0 {
            return Ok(());
        }
        let product = || self.local.add_product(a, b, c);
        Ok(self.clock.time(Phase::Compute, product)?)
    }

    /// `C += A * B` in strips of rows. After each, `progress` lets MPI work on what travels.
    fn add_product_in_strips(
        &self,
        a: View<'_, T>,
        b: View<'_, T>,
        c: ViewMut<'_, T::Sum>,
        mut progress: impl FnMut(),
    ) -> Result<(), LayoutError> {
        in_strips(self.local.rows_of_a_strip(), a, c, |a, c| {
            self.add_product(a, b, c)?;
            self.clock.time(Phase::Wait, &mut progress);
            Ok(())
        })
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

/// Hands strips of `strip` rows of A and of C to `work`, or all rows at once.
fn in_strips<T, S, E>(
    strip: Option<usize>,
    a: View<'_, T>,
    mut c: ViewMut<'_, S>,
    mut work: impl FnMut(View<'_, T>, ViewMut<'_, S>) -> Result<(), E>,
) -> Result<(), E> {
    let rows = c.rows();
    let strip = strip.unwrap_or(rows).max(1);
    for start in (0..rows).step_by(strip) {
        let of_strip = start..rows.min(start + strip);
        let (this, below) = c.split_rows(of_strip.len());
        c = below;
        work(a.part(of_strip, 0..a.columns()), this)?;
    }
    Ok(())
}

/// The width of panels: as asked, or else what is good for most products. A CPU multiplies 256
/// columns at full speed. A GPU wants thousands, several panels, so that one travels while another
/// is multiplied, and tiles that are whole.
pub fn panel(asked: Option<usize>, shape: Shape, on_gpus: bool) -> usize {
    const ON_CPUS: usize = 256;
    const PANELS: usize = 4;
    asked.unwrap_or_else(|| match on_gpus {
        true => {
            let part = shape.n.min(shape.k).div_ceil(PANELS);
            part.next_multiple_of(ON_CPUS).max(ON_CPUS)
        }
        false => ON_CPUS,
    })
}

/// Every layout, in teaching order.
pub fn layouts<T: Element>() -> [&'static dyn Multiply<T>; 6] {
    [
        &point_to_point::PointToPoint,
        &scatter_rows::ScatterRows,
        &scatter_blocks::ScatterBlocks,
        &overlapped::Overlapped,
        &summa::Summa,
        &broadcast_b::BroadcastB,
    ]
}

#[cfg(test)]
mod tests;
