//! The times of one contender.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::statistics;

/// How often to run. Values that are not given are chosen, on a GPU by a first timing, so that a
/// slow kernel does not take minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Timed runs.
    pub runs: Option<u32>,
    /// Runs before the timed ones, besides those that check the result.
    pub warmup: Option<u32>,
    /// On a GPU, seconds of back-to-back launches of each contender, after the timed runs; see
    /// `gpu/sustained.rs`.
    pub sustained: Option<u32>,
}

impl Effort {
    /// As often as this, and not back to back.
    pub fn of(runs: impl Into<Option<u32>>, warmup: impl Into<Option<u32>>) -> Effort {
        Effort {
            runs: runs.into(),
            warmup: warmup.into(),
            sustained: None,
        }
    }
}

/// A shuffled round-robin over contenders that have `runs` runs each: one run of each that has any
/// left, in a random order, then again in another.
pub fn turns(runs: &[u32]) -> Vec<usize> {
    let mut generator = Pcg64::seed_from_u64(0);
    let mut turns = Vec::new();
    for round in 0..runs.iter().copied().max().unwrap_or(0) {
        let mut these: Vec<usize> = (0..runs.len()).filter(|&of| round < runs[of]).collect();
        these.shuffle(&mut generator);
        turns.extend(these);
    }
    turns
}

/// The times of one contender.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// The seconds of one launch in each run, in the order of running. Not empty.
    samples: Vec<f64>,
    /// Runs before the first that counts.
    pub warmup: u32,
    /// The number of launches in a run. A sample is their mean.
    pub launches_per_run: u32,
}

impl Timing {
    /// Takes samples in seconds.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn new(samples: Vec<f64>, warmup: u32, launches_per_run: u32) -> Timing {
        assert!(!samples.is_empty());
        Timing {
            samples,
            warmup,
            launches_per_run,
        }
    }

    /// The seconds of one launch in each run, in the order of running.
    pub fn samples(&self) -> &[f64] {
        &self.samples
    }

    /// How many runs counted.
    pub fn runs(&self) -> usize {
        self.samples.len()
    }

    /// The median in seconds; for an even number, the mean of the middle two.
    pub fn median(&self) -> f64 {
        statistics::median(&self.samples)
    }

    /// The mean in seconds.
    pub fn mean(&self) -> f64 {
        statistics::mean(&self.samples)
    }

    /// The sample standard deviation in seconds; none of a single run.
    pub fn standard_deviation(&self) -> Option<f64> {
        statistics::standard_deviation(&self.samples)
    }

    /// Seconds of all timed launches together.
    pub fn total(&self) -> f64 {
        self.samples.iter().sum::<f64>() * f64::from(self.launches_per_run)
    }

    /// The shortest, in seconds.
    pub fn min(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The longest, in seconds.
    pub fn max(&self) -> f64 {
        self.samples
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_take_turns_in_changing_orders_while_they_have_runs_left() {
        let turns = turns(&[8, 3, 0, 8]);
        // Three contenders have runs in the first three rounds, two in the next five.
        let (first, last) = turns.split_at(9);
        let rounds = first.chunks(3).chain(last.chunks(2));
        let mut orders: Vec<Vec<usize>> = rounds.map(<[_]>::to_vec).collect();
        let sorted = orders.clone().into_iter().map(|mut order| {
            order.sort();
            order
        });
        let expected = [vec![vec![0, 1, 3]; 3], vec![vec![0, 3]; 5]].concat();
        assert_eq!(sorted.collect::<Vec<_>>(), expected);
        orders.dedup();
        assert!(orders.len() > 3, "{orders:?}");
        assert!(super::turns(&[]).is_empty());
    }
}
