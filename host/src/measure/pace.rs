//! How often to run; and times by the wall clock, on the CPU and on the simulator.

use std::time::Duration;

use super::timing::{Effort, Timing};
use crate::run::RunError;

/// How often to run by default.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    runs: u32,
    /// Seconds that all runs of one contender may take.
    budget: f64,
    /// Runs before the timed ones, at most. A slow kernel gets one for ten runs within the budget,
    /// since the runs that checked its result warmed up, too.
    warmup: u32,
    /// The shortest run, in seconds.
    shortest_run: f64,
    /// Whether the run that checked the result counts as warm-up, or as the first timed run if
    /// there is no warm-up.
    counts_check: bool,
}

pub(super) const ON_GPU: Pace = Pace {
    runs: 20,
    budget: 10.0,
    warmup: 3,
    shortest_run: 1e-4,
    counts_check: false,
};

pub(super) const BY_OPENCL: Pace = Pace {
    runs: 10,
    budget: 3.0,
    shortest_run: 1e-3,
    ..ON_GPU
};

pub const ON_CPU: Pace = Pace {
    warmup: 0,
    shortest_run: 0.0,
    ..BY_OPENCL
};

pub const ON_SIMULATOR: Pace = Pace {
    runs: 1,
    counts_check: true,
    ..ON_CPU
};

/// Fewer runs than this give no meaningful median.
const FEWEST_RUNS: u32 = 3;

/// How often a contender runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeats {
    pub warmup: u32,
    pub runs: u32,
    pub launches_per_run: u32,
}

impl Pace {
    /// The number of launches in a run, if one takes `seconds`.
    pub(super) fn launches_per_run(&self, seconds: f64) -> u32 {
        ((self.shortest_run / seconds.max(1e-6)).ceil() as u32).max(1)
    }

    /// The largest number of runs, warm-up included.
    pub fn most_runs(&self, effort: Effort) -> u32 {
        effort.runs.unwrap_or(self.runs).max(1) + effort.warmup.unwrap_or(self.warmup)
    }

    /// The repeats for launches of about `seconds`.
    pub(super) fn repeats(&self, effort: Effort, seconds: f64) -> Repeats {
        // `as` saturates, even at infinity.
        let affordable = (self.budget / seconds) as u32;
        let runs = self.runs.min(affordable.max(FEWEST_RUNS));
        Repeats {
            warmup: effort.warmup.unwrap_or(self.warmup.min(affordable / 10)),
            runs: effort.runs.unwrap_or(runs).max(1),
            launches_per_run: self.launches_per_run(seconds),
        }
    }
}

/// The times that `run` reports. `check` is the time of the run that checked the result.
pub fn by_clock(
    pace: Pace,
    effort: Effort,
    check: Duration,
    mut run: impl FnMut() -> Result<Duration, RunError>,
) -> Result<Timing, RunError> {
    let Repeats { warmup, runs, .. } = pace.repeats(effort, check.as_secs_f64());
    let mut samples = Vec::new();
    if pace.counts_check && warmup == 0 {
        samples.push(check.as_secs_f64());
    }
    for _ in u32::from(pace.counts_check)..warmup {
        run()?;
    }
    while samples.len() < runs as usize {
        samples.push(run()?.as_secs_f64());
    }
    Ok(Timing::new(samples, warmup, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_kernel_is_launched_many_times_a_run_and_a_slow_one_runs_less_often() {
        for (pace, seconds, expected) in [
            (ON_GPU, 1e-5, (3, 20, 10)),
            (ON_GPU, 1.0, (1, 10, 1)),
            (ON_GPU, 60.0, (0, 3, 1)),
            // Too short for the clock.
            (ON_GPU, 0.0, (3, 20, 101)),
            (BY_OPENCL, 1e-5, (3, 10, 100)),
            (BY_OPENCL, 0.2, (1, 10, 1)),
            (BY_OPENCL, 10.0, (0, 3, 1)),
            (ON_CPU, 0.0, (0, 10, 1)),
            (ON_CPU, 0.6, (0, 5, 1)),
            (ON_CPU, 60.0, (0, 3, 1)),
        ] {
            let found = pace.repeats(Effort::default(), seconds);
            let found = (found.warmup, found.runs, found.launches_per_run);
            assert_eq!(found, expected, "{pace:?} {seconds}");
        }
        for (runs, done) in [(50, 50), (1, 1), (0, 1)] {
            let plan = ON_GPU.repeats(Effort::of(runs, 0), 100.0);
            assert_eq!((plan.runs, plan.warmup), (done, 0));
        }
    }

    #[test]
    fn on_the_simulator_the_run_that_was_passed_counts_unless_there_is_a_warmup() {
        let timed = |pace, runs, warmup| {
            let mut count = 0;
            let timing = by_clock(
                pace,
                Effort::of(runs, warmup),
                Duration::from_millis(7),
                || {
                    count += 1;
                    Ok(Duration::from_millis(count))
                },
            );
            let timing = timing.unwrap();
            let milliseconds = [timing.min(), timing.median(), timing.max()].map(|s| s * 1e3);
            (milliseconds, timing.runs(), timing.warmup, count)
        };
        assert_eq!(timed(ON_SIMULATOR, None, None), ([7.0; 3], 1, 0, 0));
        assert_eq!(
            timed(ON_SIMULATOR, Some(3), None),
            ([1.0, 2.0, 7.0], 3, 0, 2)
        );
        assert_eq!(
            timed(ON_SIMULATOR, Some(2), Some(2)),
            ([2.0, 2.5, 3.0], 2, 2, 3)
        );
        assert_eq!(timed(ON_CPU, Some(1), Some(2)), ([3.0; 3], 1, 2, 3));
    }
}
