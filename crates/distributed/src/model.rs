//! What a layout should take: latency, bandwidth and arithmetic, added up.
//!
//! A message of `e` elements takes `latency + e * bytes / bandwidth` (R. W. Hockney, "The
//! communication challenge for MPP", Parallel Computing 20, 1994), a product of `m x n x k` takes
//! `2 m n k / flops`. What a rank sends, it sends one message after the other.

use gpu_gemm::Shape;
use serde::{Deserialize, Serialize};

use crate::clock::Times;
use crate::volume::Volume;

/// A machine, as a model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Of a message without content, in seconds.
    pub latency_s: f64,
    /// Between two ranks.
    pub bytes_per_s: f64,
    /// Of one rank's product while all multiply.
    pub flops_per_s: f64,
    /// Whether messages travel while ranks multiply: a network's adapters carry them. Inside one
    /// machine it is the cores that copy them.
    pub offload: bool,
}

/// A product on so many ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub shape: Shape,
    pub ranks: usize,
    /// Columns of A and rows of B in one panel, for the layouts that have panels.
    pub panel: usize,
}

/// Elements that a rank needs memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// On rank 0.
    pub first: u64,
    /// On the other rank that needs the most; 0 if there is none.
    pub others: u64,
}

impl Machine {
    /// The time to send so much, one message after the other, of elements of so many bytes.
    pub fn sending(&self, volume: Volume, element_bytes: usize) -> f64 {
        let bytes = volume.elements as f64 * element_bytes as f64;
        volume.messages as f64 * self.latency_s + bytes / self.bytes_per_s
    }

    /// The time of one rank's product.
    pub fn multiplying(&self, m: usize, n: usize, k: usize) -> f64 {
        Shape::new(m, n, k).flops() / self.flops_per_s
    }

    /// The time that ranks wait for messages that take `travelling` while they compute for
    /// `computing`.
    pub fn not_hidden(&self, travelling: f64, computing: f64) -> f64 {
        match self.offload {
            true => (travelling - computing).max(0.0),
            false => travelling,
        }
    }
}

/// The critical path: what the product takes as a whole, by phase. No rank is idle in it.
pub type Cost = Times;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// 1 µs, 1 GB/s and 1 GFLOP/s.
    pub(crate) const PLAIN: Machine = Machine {
        latency_s: 1e-6,
        bytes_per_s: 1e9,
        flops_per_s: 1e9,
        offload: true,
    };

    #[test]
    fn messages_cost_latency_and_bytes_and_products_flops() {
        let volume = Volume::of(3, 1000);
        assert!((PLAIN.sending(volume, 4) - (3e-6 + 12e-6)).abs() < 1e-12);
        assert!((PLAIN.multiplying(10, 20, 30) - 12e-6).abs() < 1e-12);
    }

    #[test]
    fn only_a_network_hides_what_travels() {
        assert_eq!(PLAIN.not_hidden(3.0, 2.0), 1.0);
        assert_eq!(PLAIN.not_hidden(2.0, 3.0), 0.0);
        let shared_memory = Machine {
            offload: false,
            ..PLAIN
        };
        assert_eq!(shared_memory.not_hidden(2.0, 3.0), 2.0);
    }
}
