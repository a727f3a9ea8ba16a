//! How much is sent.

use std::ops::{Add, AddAssign};

use gpu_gemm::ElementType;
use serde::Serialize;

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

/// Elements of matrices, and the messages that they travel in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Volume {
    pub elements: u64,
    pub messages: u64,
}

impl Volume {
    /// `count` messages of `elements_each` elements each: none if they have none.
    pub fn of(count: u64, elements_each: u64) -> Volume {
        match elements_each {
            0 => Volume::default(),
            _ => Volume {
                elements: count * elements_each,
                messages: count,
            },
        }
    }
}

impl Add for Volume {
    type Output = Volume;

    fn add(self, other: Volume) -> Volume {
        Volume {
            elements: self.elements + other.elements,
            messages: self.messages + other.messages,
        }
    }
}

impl AddAssign for Volume {
    fn add_assign(&mut self, other: Volume) {
        *self = *self + other;
    }
}

/// What one rank sends, by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Sent {
    /// Before anything is multiplied.
    pub distribute: Volume,
    /// Beside the product.
    pub multiply: Volume,
    /// Of C, to rank 0.
    pub collect: Volume,
}

impl Sent {
    /// In all phases.
    pub fn total(&self) -> Volume {
        self.distribute + self.multiply + self.collect
    }

    /// What the elements take: of C, which alone is collected, those of sums.
    pub fn bytes(&self, of: Bytes) -> u64 {
        let inputs = (self.distribute + self.multiply).elements;
        inputs * of.inputs as u64 + self.collect.elements * of.sums as u64
    }

    /// As numbers, for messages: elements and messages of each phase.
    pub fn to_array(self) -> [u64; 6] {
        let Sent {
            distribute,
            multiply,
            collect,
        } = self;
        let of = |volume: Volume| [volume.elements, volume.messages];
        let ([a, b], [c, d], [e, f]) = (of(distribute), of(multiply), of(collect));
        [a, b, c, d, e, f]
    }

    /// The reverse.
    pub fn from_array([a, b, c, d, e, f]: [u64; 6]) -> Sent {
        let of = |elements, messages| Volume { elements, messages };
        Sent {
            distribute: of(a, b),
            multiply: of(c, d),
            collect: of(e, f),
        }
    }
}
