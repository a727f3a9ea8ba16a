//! How long kernels take: warm-up, runs, median and spread.
//!
//! On a GPU ([`gpu`]) several contenders run in turn; on the simulator and on the CPU, one after the other by the wall clock.

pub mod gpu;

use std::time::Duration;

use gpu_kernels::spec::Variant;

use crate::blas::Sharing;
use crate::device::{DeviceError, Simulator};
use crate::element::Element;
use crate::problem::Problem;

/// How often to run. What is not given is chosen: for a GPU by a first timing, so that a slow kernel does not take minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    pub runs: Option<u32>,
    pub warmup: Option<u32>,
}

/// The times of one contender.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Seconds for one launch, of each run, in the order of running. Not empty.
    samples: Vec<f64>,
    /// Runs before the first that counts.
    pub warmup: u32,
    /// Launches whose mean is one sample.
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

    /// How many runs counted.
    pub fn runs(&self) -> usize {
        self.samples.len()
    }

    /// The middle one in seconds; the mean of the two in the middle of an even number.
    pub fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        }
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

/// Timed runs and seconds that they may take, by default, on the CPU; slower than that, fewer runs, but never less than three.
const CPU_RUNS: u32 = 10;
const CPU_BUDGET: f64 = 3.0;
const FEWEST_CPU_RUNS: u32 = 3;

/// Times a CPU rung by what `run` says that it took. What proved it right warmed it up, so that by default nothing else does;
/// `before`, the time of such a run, decides how many there are.
///
/// # Errors
///
/// It fails.
pub fn on_cpu(
    effort: Effort,
    before: Duration,
    mut run: impl FnMut() -> Result<Duration, DeviceError>,
) -> Result<Timing, DeviceError> {
    let affordable = (CPU_BUDGET / before.as_secs_f64().max(1e-9)) as u32;
    let runs = effort
        .runs
        .unwrap_or(CPU_RUNS.min(affordable.max(FEWEST_CPU_RUNS)));
    let warmup = effort.warmup.unwrap_or(0);
    for _ in 0..warmup {
        run()?;
    }
    let samples: Result<Vec<f64>, DeviceError> =
        (0..runs.max(1)).map(|_| Ok(run()?.as_secs_f64())).collect();
    Ok(Timing::new(samples?, warmup, 1))
}

/// Runs of [`on_cpu`] at most.
pub fn most_cpu_runs(effort: Effort) -> u32 {
    effort.runs.unwrap_or(CPU_RUNS).max(1) + effort.warmup.unwrap_or(0)
}

/// Times `variant`, its steps shared as `sharing` says, on the simulator: one run by default, without warm-up. If nothing is to be warmed up, `first`, the
/// time of a run that has already been made, counts as the first.
///
/// # Errors
///
/// The kernel fails.
#[allow(clippy::too_many_arguments)] // what to run, and how often
pub fn on_simulator<T: Element>(
    simulator: &Simulator,
    variant: &Variant,
    sharing: Option<Sharing>,
    problem: &Problem<T>,
    effort: Effort,
    first: Duration,
    block_done: &(dyn Fn() + Sync),
) -> Result<Timing, DeviceError> {
    let runs = effort.runs.unwrap_or(1).max(1) as usize;
    let warmup = effort.warmup.unwrap_or(0);
    let mut samples = Vec::with_capacity(runs);
    if warmup == 0 {
        samples.push(first.as_secs_f64());
    }
    // The run that has been made warmed the caches, too.
    for _ in 1..warmup {
        simulator.run(variant, sharing, problem, block_done)?;
    }
    while samples.len() < runs {
        samples.push(
            simulator
                .run(variant, sharing, problem, block_done)?
                .time
                .as_secs_f64(),
        );
    }
    Ok(Timing::new(samples, warmup, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(samples: &[f64]) -> Timing {
        Timing::new(samples.to_vec(), 0, 1)
    }

    #[test]
    fn a_slow_cpu_rung_runs_less_often_and_never_less_than_thrice() {
        let runs = |effort, milliseconds| {
            let mut count = 0;
            let timing = on_cpu(effort, Duration::from_millis(milliseconds), || {
                count += 1;
                Ok(Duration::from_millis(count))
            });
            let timing = timing.unwrap();
            (timing.runs(), timing.warmup, timing.min())
        };
        let default = Effort::default();
        assert_eq!(runs(default, 1), (10, 0, 1e-3));
        assert_eq!(runs(default, 600), (5, 0, 1e-3));
        assert_eq!(runs(default, 60_000), (3, 0, 1e-3));
        let asked = Effort {
            runs: Some(1),
            warmup: Some(2),
        };
        assert_eq!(runs(asked, 60_000), (1, 2, 3e-3));
        assert_eq!(most_cpu_runs(asked), 3);
    }

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(timing(&[5.0, 1.0, 3.0]).median(), 3.0);
        assert_eq!(timing(&[4.0, 1.0, 100.0, 2.0]).median(), 3.0);
        assert_eq!(timing(&[7.0]).median(), 7.0);
    }

    #[test]
    fn the_spread_is_from_the_shortest_to_the_longest() {
        let timing = timing(&[5.0, 1.0, 3.0]);
        assert_eq!((timing.min(), timing.max()), (1.0, 5.0));
    }

    #[test]
    fn one_outlier_does_not_move_the_median() {
        assert_eq!(timing(&[1.0, 1.0, 1.0, 1.0, 1e9]).median(), 1.0);
    }
}
