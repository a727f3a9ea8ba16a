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
//! The three constants are measured once, when the program starts ([`crate::constants`]). Copies within a host, and between
//! a host and its GPU, are not in the model.

use gpu_gemm::Shape;
use serde::Serialize;

use crate::clock::Times;
use crate::volume::{Bytes, Volume};

/// A machine, as the model sees it: 1 / beta and 1 / gamma are the usual units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
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
