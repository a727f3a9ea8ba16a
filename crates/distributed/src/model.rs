//! What a layout should take, by the textbook: messages and arithmetic, added up.
//!
//! A message of b bytes takes `alpha + b * beta`: its latency, and the inverse of the bandwidth (R. W.
//! Hockney, "The communication challenge for MPP", Parallel Computing 20, 1994). A product takes
//! `2 m n k * gamma`. A rank sends one message after the other, a broadcast to P ranks takes log2 P
//! steps, and what travels beside a product is hidden as far as the product lasts:
//!
//! ```text
//! distribute   messages * alpha + bytes * beta            rank 0, before the first product
//! compute      2 m n k * gamma                            the largest block
//! wait         first panel + max(0, others - compute)     in layouts with panels
//! collect      (P - 1) * alpha + bytes * beta             rank 0, at the end
//! ```
//!
//! The three constants are measured once, when the program starts. Copies within a host, and between
//! a host and its GPU, are not in the model.

use std::time::Instant;

use gpu_gemm::{ElementType, Shape};
use host::cpu::view::{View, ViewMut};
use host::statistics;
use serde::Serialize;

use crate::Element;
use crate::clock::{Clock, Phase, Times};
use crate::comm::Ranks;
use crate::layout::LayoutError;
use crate::local::{LocalProduct, are_all_on_gpus};
use crate::volume::Volume;

/// A machine, as the model sees it: 1 / beta and 1 / gamma are the usual units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// alpha: the time of a message without content, in seconds.
    pub latency_s: f64,
    /// 1 / beta, between two ranks; infinite where there is but one, which JSON says as null.
    pub bytes_per_s: f64,
    /// 1 / gamma, of one rank's product while all multiply.
    pub flops_per_s: f64,
}

/// A product and the ranks that compute it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub shape: Shape,
    pub ranks: usize,
    /// Columns of A and rows of B in one panel, for the layouts that have panels.
    pub panel: usize,
    /// Whether rank 0 collects C; else each rank keeps its block.
    pub gathers: bool,
}

/// Bytes of an element of A and B, and of one of C while it is computed, sent and collected: as a
/// sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    pub inputs: usize,
    pub sums: usize,
}

impl Bytes {
    /// Those of products of A and B in elements of this type.
    pub fn of(inputs: ElementType) -> Bytes {
        let inputs = inputs.bytes();
        Bytes {
            inputs,
            // In 16 bits, sums are f32.
            sums: inputs.max(size_of::<f32>()),
        }
    }
}

/// Elements of A and B, and of C.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    pub inputs: u64,
    pub sums: u64,
}

impl Elements {
    /// Of all three matrices.
    pub fn all(shape: Shape) -> Elements {
        let [m, n, k] = [shape.m, shape.n, shape.k].map(|size| size as u64);
        Elements {
            inputs: m * k + k * n,
            sums: m * n,
        }
    }

    /// What they take.
    pub fn bytes(self, of: Bytes) -> f64 {
        self.inputs as f64 * of.inputs as f64 + self.sums as f64 * of.sums as f64
    }
}

/// Elements that a rank needs memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// On rank 0.
    pub first: Elements,
    /// On the other rank that needs the most; none if there is none.
    pub others: Elements,
}

/// The critical path: what the product takes as a whole, by phase. No rank is idle in it.
pub type Cost = Times;

impl Machine {
    /// The time to send the messages of a volume one after the other.
    pub fn sending(&self, volume: Volume, element_bytes: usize) -> f64 {
        let bytes = volume.elements as f64 * element_bytes as f64;
        volume.messages as f64 * self.latency_s + bytes / self.bytes_per_s
    }

    /// The time to broadcast `elements` to a row or column of ranks, along a tree.
    pub fn broadcasting(&self, elements: usize, ranks: usize, element_bytes: usize) -> f64 {
        let steps = ranks.next_power_of_two().trailing_zeros();
        f64::from(steps) * self.sending(Volume::of(1, elements as u64), element_bytes)
    }

    /// The time of one rank's product.
    pub fn multiplying(&self, shape: Shape) -> f64 {
        shape.flops() / self.flops_per_s
    }
}

/// What is not hidden of messages that travel while ranks multiply.
pub(crate) fn not_hidden(travelling: f64, computing: f64) -> f64 {
    (travelling - computing).max(0.0)
}

/// Elements of the long message that is timed, of f32.
const LONG: usize = 1 << 20;
/// Messages, and products, of which the median is taken.
const MESSAGES: usize = 11;
const PRODUCTS: usize = 3;

/// The longest side of the product that is timed: one that takes a CPU milliseconds, and one that
/// fills a GPU.
const SIDE: usize = 512;
const SIDE_ON_GPUS: usize = 4096;

/// Measures the three constants: messages between ranks 0 and 1, and products on all ranks at once, of
/// at most this shape. All ranks call it, and all get the same answer.
///
/// # Errors
///
/// A product fails.
pub fn measure<T: Element>(
    ranks: &Ranks,
    shape: Shape,
    local: &dyn LocalProduct<T>,
) -> Result<Machine, LayoutError> {
    let longest = match are_all_on_gpus(ranks, local) {
        true => SIDE_ON_GPUS,
        false => SIDE,
    };
    let [m, n, k] = [shape.m, shape.n, shape.k].map(|size| size.clamp(1, longest));
    let shape = Shape::new(m, n, k);
    let (a, b) = (
        vec![T::from_integer(1); m * k],
        vec![T::from_integer(1); k * n],
    );
    let mut c = vec![T::Sum::default(); m * n];
    let (a, b) = (View::new(&a, m, k, k), View::new(&b, k, n, n));
    let mut product_s = Vec::new();
    // The first may compile its kernel.
    for run in 0..=PRODUCTS {
        ranks.barrier();
        let clock = Clock::default();
        local.begin(m, n)?;
        let c = ViewMut::new(&mut c, m, n, n);
        local.add(&clock, Phase::Distribute, (a, b), c, None)?;
        local.wait(&clock)?;
        let all = ranks.all_gather(&[clock.times().compute_s]);
        if run > 0 {
            product_s.push(all.into_iter().fold(1e-9, f64::max));
        }
    }
    let mut found = [0.0, f64::INFINITY];
    if ranks.size() > 1 {
        let (short, long) = (one_way(ranks, 1), one_way(ranks, LONG));
        let bytes = (LONG * size_of::<f32>()) as f64;
        found = [short, bytes / (long - short).max(1e-9)];
        // The others may share cores with these two.
        ranks.rest_until_all_are_here();
        ranks.from_first(&mut found);
    }
    ranks.take_sent();
    Ok(Machine {
        latency_s: found[0],
        bytes_per_s: found[1],
        flops_per_s: shape.flops() / statistics::median(&product_s),
    })
}

/// The time of a message of `elements` from rank 0 to rank 1: half of a round trip.
fn one_way(ranks: &Ranks, elements: usize) -> f64 {
    let mut buffer = vec![0.0_f32; elements];
    let mut times = Vec::new();
    for _ in 0..MESSAGES {
        let started = Instant::now();
        let other = match ranks.rank() {
            0 => 1,
            1 => 0,
            _ => return 0.0,
        };
        for turn in 0..2 {
            match turn == ranks.rank() {
                true => ranks.send(&[View::new(&buffer, 1, elements, elements)], other),
                false => {
                    let to = ViewMut::new(&mut buffer, 1, elements, elements);
                    ranks.receive(vec![to], other);
                }
            }
        }
        times.push(started.elapsed().as_secs_f64() / 2.0);
    }
    statistics::median(&times)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// 1 µs, 1 GB/s and 1 GFLOP/s.
    pub(crate) fn plain() -> Machine {
        Machine {
            latency_s: 1e-6,
            bytes_per_s: 1e9,
            flops_per_s: 1e9,
        }
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn messages_cost_latency_and_bytes_and_products_flops() {
        assert!(close(plain().sending(Volume::of(3, 1000), 4), 3e-6 + 12e-6));
        assert_eq!(plain().sending(Volume::default(), 4), 0.0);
        assert!(close(plain().multiplying(Shape::new(10, 20, 30)), 12e-6));
    }

    #[test]
    fn a_broadcast_takes_as_many_steps_as_a_tree_has() {
        for (ranks, steps) in [(1, 0.0), (2, 1.0), (3, 2.0), (4, 2.0), (5, 3.0)] {
            assert!(close(plain().broadcasting(1000, ranks, 4), steps * 5e-6));
        }
        assert_eq!(not_hidden(3.0, 2.0), 1.0);
        assert_eq!(not_hidden(2.0, 3.0), 0.0);
    }
}
