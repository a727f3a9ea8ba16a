//! How often a contender runs.

use crate::measure::timing::Effort;

/// How often to run by default.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    runs: u32,
    /// Seconds that all runs of one contender may take.
    budget: f64,
    /// Runs before the timed ones: `warmup` at most. A slow kernel gets one for each
    /// `one_warmup_in` runs that the budget affords, and `least_warmup` at least.
    warmup: u32,
    one_warmup_in: u32,
    least_warmup: u32,
    /// Seconds that a run lasts at least.
    shortest_run: f64,
}

pub(super) const ON_GPU: Pace = Pace {
    runs: 20,
    budget: 10.0,
    warmup: 3,
    one_warmup_in: 1,
    least_warmup: 1,
    shortest_run: 1e-4,
};

/// What proved the result has warmed up a kernel that takes long.
pub(super) const BY_OPENCL: Pace = Pace {
    runs: 10,
    budget: 3.0,
    warmup: 3,
    one_warmup_in: 10,
    least_warmup: 0,
    shortest_run: 1e-3,
};

/// Fewer runs than this give no meaningful median.
const FEWEST_RUNS: u32 = 3;

impl Pace {
    /// How many launches make a run, if one takes `seconds`.
    pub(super) fn launches_per_run(&self, seconds: f64) -> u32 {
        (self.shortest_run / seconds.max(1e-6)).ceil() as u32
    }
}

/// How often a contender runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeats {
    pub warmup: u32,
    pub runs: u32,
    pub launches_per_run: u32,
}

impl Repeats {
    /// For launches of about `seconds`.
    pub fn new(pace: Pace, effort: Effort, seconds: f64) -> Repeats {
        // More than a u32 holds becomes the largest, even an infinity.
        let affordable = (pace.budget / seconds) as u32;
        let warmup = (affordable / pace.one_warmup_in).max(pace.least_warmup);
        let runs = pace.runs.min(affordable.max(FEWEST_RUNS));
        Repeats {
            warmup: effort.warmup.unwrap_or(pace.warmup.min(warmup)),
            runs: effort.runs.unwrap_or(runs).max(1),
            launches_per_run: pace.launches_per_run(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Warm-up, runs and launches of each, for launches that take `seconds`.
    fn repeats(pace: Pace, seconds: f64) -> (u32, u32, u32) {
        let Repeats {
            warmup,
            runs,
            launches_per_run,
        } = Repeats::new(pace, Effort::default(), seconds);
        (warmup, runs, launches_per_run)
    }

    #[test]
    fn a_short_kernel_is_launched_many_times_a_run_and_a_slow_one_runs_less_often() {
        for (seconds, expected) in [(1e-5, (3, 20, 10)), (1.0, (3, 10, 1)), (60.0, (1, 3, 1))] {
            assert_eq!(repeats(ON_GPU, seconds), expected, "{seconds}");
        }
        // Too short for the clock.
        assert_eq!(repeats(ON_GPU, 0.0), repeats(ON_GPU, 1e-6));
        for (seconds, expected) in [
            (1e-5, (3, 10, 100)),
            (0.1, (3, 10, 1)),
            (0.2, (1, 10, 1)),
            (0.5, (0, 6, 1)),
            (10.0, (0, 3, 1)),
        ] {
            assert_eq!(repeats(BY_OPENCL, seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn requested_runs_are_done_however_slow_they_are_and_at_least_one() {
        for (runs, done) in [(50, 50), (1, 1), (0, 1)] {
            let asked = Effort {
                runs: Some(runs),
                warmup: Some(0),
                sustained: None,
            };
            let plan = Repeats::new(ON_GPU, asked, 100.0);
            assert_eq!((plan.runs, plan.warmup), (done, 0));
        }
    }
}
