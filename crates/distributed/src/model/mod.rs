//! What a layout should take: messages and arithmetic, added up.
//!
//! A message of `e` elements takes `latency + e * bytes / bandwidth` (R. W. Hockney, "The
//! communication challenge for MPP", Parallel Computing 20, 1994), a product of `m x n x k` takes
//! `2 m n k / flops`. What a rank sends, it sends one message after the other.
//!
//! A machine that was measured is known better than by three numbers. Messages were sent in several
//! sizes: MPI sends small ones at once and asks first for large ones, and what fits into a cache
//! travels faster. Products were computed in the shapes that layouts have. So a time is taken from
//! what was measured nearest to it, and the three numbers serve for what is only described.
//!
//! Ranks that keep their parts on GPUs copy them there, send them from one GPU to another and
//! multiply them where they lie. What that takes is in `gpus.rs`.

mod gpus;

pub use gpus::{Copied, Gpus, ResidentProduct, Travel, waiting};

use gpu_gemm::{DataType, Shape};
use serde::{Deserialize, Serialize};

use crate::Element;
use crate::clock::Times;
use crate::volume::Volume;

/// A machine, as a model sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Of a message without content, in seconds.
    pub latency_s: f64,
    /// Between two ranks; infinite where there is but one.
    #[serde(with = "infinite_as_null")]
    pub bytes_per_s: f64,
    /// Of one rank's product while all multiply.
    pub flops_per_s: f64,
    /// Of memory that a rank asks for and fills with zeros while all do; infinite if that is not
    /// counted.
    #[serde(with = "infinite_as_null")]
    pub zeroed_bytes_per_s: f64,
    /// Sums that rank 0 rounds to elements of 16 bits; infinite if that is not counted.
    #[serde(with = "infinite_as_null", default = "infinite")]
    pub rounded_per_s: f64,
    /// What ranks wait for messages that travel while they multiply.
    #[serde(default)]
    pub waited: Waited,
    /// Messages that were timed, smaller ones first, for each kind.
    pub messages: Vec<Timed>,
    /// Products that were timed, of parts in the host's memory.
    pub products: Vec<Product>,
    /// What ranks do that keep their parts on GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Gpus>,
}

/// What ranks wait for a message that travels while they multiply, as a part of what it takes
/// alone: 0 where a network's adapters carry it, 1 where a core copies it at once, and more where
/// it goes on only while both ranks are inside of MPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// For the first panel of those that `overlapped` sends, while its sender multiplies.
    pub first: f64,
    /// For another, whose sender multiplies several panels before it waits.
    pub messages: f64,
    /// For a broadcast, whose root waits for it before it multiplies the next panel.
    pub broadcasts: f64,
}

/// How the elements of a message lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lie {
    /// One after the other, on either side.
    Together,
    /// In several parts or with gaps: MPI packs them on the way.
    Apart,
}

/// A message that was timed, one way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    pub lie: Lie,
    pub bytes: f64,
    pub seconds: f64,
}

/// A product that was timed, on all ranks at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Product {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub flops_per_s: f64,
}

/// A product on so many ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub shape: Shape,
    pub ranks: usize,
    /// Columns of A and rows of B in one panel, for the layouts that have panels; columns of B for
    /// `broadcast-b`.
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
    /// Those of products of a type.
    pub fn of<T: Element>() -> Bytes {
        Bytes {
            inputs: size_of::<T>(),
            sums: size_of::<T::Sum>(),
        }
    }

    /// Both of the same size.
    pub fn each(bytes: usize) -> Bytes {
        Bytes {
            inputs: bytes,
            sums: bytes,
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

    /// Of C alone.
    pub fn of_c(sums: u64) -> Elements {
        Elements { inputs: 0, sums }
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

impl Machine {
    /// One that is described by latency, bandwidth and speed, whose messages travel while its
    /// ranks multiply.
    pub fn described(latency_s: f64, bytes_per_s: f64, flops_per_s: f64) -> Machine {
        Machine {
            latency_s,
            bytes_per_s,
            flops_per_s,
            zeroed_bytes_per_s: f64::INFINITY,
            rounded_per_s: f64::INFINITY,
            ..Machine::default()
        }
    }

    /// The time to send so much, one message of the mean size after the other, of elements of so
    /// many bytes.
    pub fn sending(&self, volume: Volume, lie: Lie, element_bytes: usize) -> f64 {
        if volume.messages == 0 {
            return 0.0;
        }
        let messages = volume.messages as f64;
        let bytes = volume.elements as f64 * element_bytes as f64 / messages;
        messages * self.message(bytes, lie)
    }

    /// The time of one message.
    fn message(&self, bytes: f64, lie: Lie) -> f64 {
        let timed = self.messages.iter().filter(|one| one.lie == lie);
        let timed: Vec<_> = timed.map(|one| (one.bytes, one.seconds)).collect();
        interpolated(&timed, bytes).unwrap_or_else(|| self.described_message(bytes))
    }

    /// The time of one message, by latency and bandwidth alone.
    fn described_message(&self, bytes: f64) -> f64 {
        self.latency_s + bytes / self.bytes_per_s
    }

    /// The time of one rank's product of parts in the host's memory: at the speed of the one that
    /// was timed whose shape is the nearest.
    pub fn multiplying(&self, m: usize, n: usize, k: usize) -> f64 {
        let distance = |timed: &Product| distance([timed.m, timed.n, timed.k], [m, n, k]);
        let nearest = self
            .products
            .iter()
            .min_by(|one, other| distance(one).total_cmp(&distance(other)));
        let flops_per_s = nearest.map_or(self.flops_per_s, |nearest| nearest.flops_per_s);
        Shape::new(m, n, k).flops() / flops_per_s
    }

    /// The time to ask for so many bytes of memory, and to fill them with zeros.
    pub fn zeroing(&self, bytes: f64) -> f64 {
        bytes / self.zeroed_bytes_per_s
    }

    /// The time to round C, of so many sums, to elements of 16 bits, if it is to have such.
    pub fn rounding(&self, sums: usize, data_type: DataType) -> f64 {
        let DataType { inputs, c } = data_type;
        match inputs == c && c.bytes() == 2 {
            true => sums as f64 / self.rounded_per_s,
            false => 0.0,
        }
    }
}

/// The time that ranks wait for messages that take `travelling` alone, while they compute for
/// `computing`, if they wait for such a part of each ([`Waited`]).
pub(crate) fn not_hidden(travelling: f64, computing: f64, waited: f64) -> f64 {
    (travelling - computing).max(waited * travelling)
}

/// How far apart two shapes are: by the ratios of m, n and k.
fn distance(one: [usize; 3], other: [usize; 3]) -> f64 {
    let ratio = |(one, other): (usize, usize)| {
        let [one, other] = [one, other].map(|size| size.max(1) as f64);
        (one / other).ln().abs()
    };
    one.into_iter().zip(other).map(ratio).sum()
}

/// The time of so many bytes, between those of the two sizes around it that were timed; below the
/// smallest its time, beyond the largest at its speed. `None` if nothing was timed.
fn interpolated(timed: &[(f64, f64)], bytes: f64) -> Option<f64> {
    let (smallest, largest) = (timed.first()?, timed.last()?);
    let next = timed.windows(2).find(|pair| bytes <= pair[1].0);
    Some(match next {
        _ if bytes <= smallest.0 => smallest.1,
        Some(pair) => {
            let part = (bytes - pair[0].0) / (pair[1].0 - pair[0].0);
            pair[0].1 + part * (pair[1].1 - pair[0].1)
        }
        None => largest.1 * bytes / largest.0,
    })
}

/// The critical path: what the product takes as a whole, by phase. No rank is idle in it.
pub type Cost = Times;

/// What was not counted.
fn infinite() -> f64 {
    f64::INFINITY
}

/// JSON has no infinity.
mod infinite_as_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        number.is_finite().then_some(*number).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        let number = Option::<f64>::deserialize(deserializer)?;
        Ok(number.unwrap_or(f64::INFINITY))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use gpu_gemm::ElementType;

    use super::*;

    /// 1 µs, 1 GB/s and 1 GFLOP/s.
    pub(crate) fn plain() -> Machine {
        Machine::described(1e-6, 1e9, 1e9)
    }

    #[test]
    fn messages_cost_latency_and_bytes_and_products_flops() {
        let volume = Volume::of(3, 1000);
        let sending = plain().sending(volume, Lie::Apart, 4);
        assert!((sending - (3e-6 + 12e-6)).abs() < 1e-12);
        assert_eq!(plain().sending(Volume::default(), Lie::Apart, 4), 0.0);
        assert!((plain().multiplying(10, 20, 30) - 12e-6).abs() < 1e-12);
        assert_eq!(plain().zeroing(4000.0), 0.0);
    }

    #[test]
    fn only_a_network_hides_what_travels() {
        assert_eq!(not_hidden(3.0, 2.0, 0.0), 1.0);
        assert_eq!(not_hidden(2.0, 3.0, 0.0), 0.0);
        assert_eq!(not_hidden(2.0, 3.0, 1.0), 2.0);
        assert_eq!(not_hidden(2.0, 3.0, 5.0), 10.0);
    }

    #[test]
    fn what_was_timed_is_taken_from_there() {
        let timed = |bytes, seconds| Timed {
            lie: Lie::Together,
            bytes,
            seconds,
        };
        let product = |m, k, flops_per_s| Product {
            m,
            n: 100,
            k,
            flops_per_s,
        };
        let machine = Machine {
            messages: vec![timed(100.0, 1.0), timed(200.0, 3.0), timed(400.0, 4.0)],
            products: vec![product(100, 100, 2e9), product(100, 10, 5e8)],
            zeroed_bytes_per_s: 1e9,
            rounded_per_s: 1e8,
            ..plain()
        };
        // One message of so many bytes.
        let sending = |bytes| machine.sending(Volume::of(1, bytes), Lie::Together, 1);
        assert_eq!(sending(1), 1.0);
        assert_eq!(sending(150), 2.0);
        assert_eq!(sending(300), 3.5);
        assert_eq!(sending(800), 8.0);
        assert_eq!(machine.sending(Volume::of(2, 150), Lie::Together, 1), 4.0);
        // The other kind was not timed.
        let apart = machine.sending(Volume::of(1, 1000), Lie::Apart, 1);
        assert!((apart - 2e-6).abs() < 1e-12);
        assert!((machine.multiplying(100, 100, 90) - 0.9e-3).abs() < 1e-9);
        assert!((machine.multiplying(90, 100, 12) - 4.32e-4).abs() < 1e-9);
        assert!((machine.zeroing(4000.0) - 4e-6).abs() < 1e-12);
        let rounding = |inputs, c| machine.rounding(4000, DataType { inputs, c });
        assert!((rounding(ElementType::Bf16, ElementType::Bf16) - 4e-5).abs() < 1e-12);
        assert_eq!(rounding(ElementType::Bf16, ElementType::F32), 0.0);
        assert_eq!(rounding(ElementType::F32, ElementType::F32), 0.0);
    }

    #[test]
    fn a_machine_survives_json_even_where_a_speed_is_infinite() {
        let alone = Machine {
            bytes_per_s: f64::INFINITY,
            ..plain()
        };
        for machine in [plain(), alone, Machine::default()] {
            let text = serde_json::to_string(&machine).unwrap();
            assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
        }
    }
}
