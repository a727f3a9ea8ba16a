//! Where the time of one rank goes.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde::Serialize;

/// What a rank can be doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Sending or receiving operands before anything is multiplied.
    Distribute,
    /// Multiplying.
    Compute,
    /// Sending or receiving operands between products: what is not hidden behind them.
    Wait,
    /// Waiting for the slowest rank to finish its product.
    Idle,
    /// Sending or receiving C, and making of the sums what was asked for.
    Collect,
}

/// The time of one rank, by phase, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Times {
    pub distribute_s: f64,
    pub compute_s: f64,
    pub wait_s: f64,
    pub idle_s: f64,
    pub collect_s: f64,
}

impl Times {
    /// How many there are.
    pub const COUNT: usize = 5;

    /// All of it.
    pub fn total(&self) -> f64 {
        self.to_array().iter().sum()
    }

    /// Of the product alone, with A and B where the layout needs them and C where it is computed.
    pub fn resident(&self) -> f64 {
        self.compute_s + self.wait_s
    }

    /// In the order of the phases.
    pub fn to_array(self) -> [f64; Times::COUNT] {
        [
            self.distribute_s,
            self.compute_s,
            self.wait_s,
            self.idle_s,
            self.collect_s,
        ]
    }

    /// From the order of the phases.
    pub fn from_array(seconds: [f64; Times::COUNT]) -> Times {
        let [distribute_s, compute_s, wait_s, idle_s, collect_s] = seconds;
        Times {
            distribute_s,
            compute_s,
            wait_s,
            idle_s,
            collect_s,
        }
    }
}

/// Adds up the time of one product, by phase.
#[derive(Debug, Default)]
pub struct Clock {
    spent: Cell<[Duration; Times::COUNT]>,
}

impl Clock {
    /// Does something, and adds its time to that of a phase.
    pub fn time<R>(&self, phase: Phase, work: impl FnOnce() -> R) -> R {
        let started = Instant::now();
        let result = work();
        self.add(phase, started.elapsed());
        result
    }

    fn add(&self, phase: Phase, time: Duration) {
        let mut spent = self.spent.get();
        spent[phase as usize] += time;
        self.spent.set(spent);
    }

    /// What was waited while a device computed for so long counts as computing.
    pub fn raise_compute_to(&self, computed: Duration) {
        let mut spent = self.spent.get();
        let (compute, wait) = (Phase::Compute as usize, Phase::Wait as usize);
        let moved = computed.saturating_sub(spent[compute]).min(spent[wait]);
        spent[compute] += moved;
        spent[wait] -= moved;
        self.spent.set(spent);
    }

    /// What was spent so far.
    pub fn times(&self) -> Times {
        Times::from_array(self.spent.get().map(|spent| spent.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_while_a_device_computes_is_computing() {
        let clock = Clock::default();
        clock.add(Phase::Compute, Duration::from_secs(1));
        clock.add(Phase::Wait, Duration::from_secs(4));
        clock.raise_compute_to(Duration::from_secs(3));
        let times = clock.times();
        assert_eq!((times.compute_s, times.wait_s), (3.0, 2.0));
        clock.raise_compute_to(Duration::from_secs(9));
        assert_eq!((clock.times().compute_s, clock.times().wait_s), (5.0, 0.0));
    }
}
