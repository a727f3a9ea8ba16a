//! How much is sent.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Elements of matrices, and the messages that they travel in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub elements: u64,
    pub messages: u64,
}

impl Volume {
    /// `count` messages of so many elements each: none if they have none.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}
