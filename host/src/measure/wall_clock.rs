//! Times on the CPU and on the simulator, by the wall clock.

use std::time::Duration;

use super::timing::{Effort, Timing};
use crate::run::RunError;

/// The default number of timed runs on the CPU, and the seconds that they may take. A slower
/// rung gets fewer runs, but at least three.
const CPU_RUNS: u32 = 10;
const CPU_BUDGET: f64 = 3.0;
const FEWEST_CPU_RUNS: u32 = 3;

/// Times a CPU rung by the times that `run` reports. The runs that proved it right warmed it up,
/// so by default there is no other warm-up. `before`, the time of such a run, decides the number
/// of timed runs.
pub fn on_cpu(
    effort: Effort,
    before: Duration,
    mut run: impl FnMut() -> Result<Duration, RunError>,
) -> Result<Timing, RunError> {
    // More than a u32 holds becomes the largest, even an infinity.
    let affordable = (CPU_BUDGET / before.as_secs_f64()) as u32;
    let runs = effort
        .runs
        .unwrap_or(CPU_RUNS.min(affordable.max(FEWEST_CPU_RUNS)));
    let warmup = effort.warmup.unwrap_or(0);
    for _ in 0..warmup {
        run()?;
    }
    let samples: Result<Vec<f64>, RunError> =
        (0..runs.max(1)).map(|_| Ok(run()?.as_secs_f64())).collect();
    Ok(Timing::new(samples?, warmup, 1))
}

/// Runs of [`on_cpu`] at most.
pub fn most_cpu_runs(effort: Effort) -> u32 {
    effort.runs.unwrap_or(CPU_RUNS).max(1) + effort.warmup.unwrap_or(0)
}

/// Times a kernel on the simulator by the times that `run` reports: one run by default, without
/// warm-up. If there is no warm-up, `first`, the time of a run that has already been made,
/// counts as the first.
pub fn on_simulator(
    effort: Effort,
    first: Duration,
    mut run: impl FnMut() -> Result<Duration, RunError>,
) -> Result<Timing, RunError> {
    let runs = effort.runs.unwrap_or(1).max(1) as usize;
    let warmup = effort.warmup.unwrap_or(0);
    let mut samples = Vec::with_capacity(runs);
    if warmup == 0 {
        samples.push(first.as_secs_f64());
    }
    // That first run warmed the caches, too.
    for _ in 1..warmup {
        run()?;
    }
    while samples.len() < runs {
        samples.push(run()?.as_secs_f64());
    }
    Ok(Timing::new(samples, warmup, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_the_simulator_the_run_that_was_proven_counts_unless_there_is_a_warmup() {
        let timed = |runs, warmup| {
            let mut count = 0;
            let timing = on_simulator(
                Effort {
                    runs,
                    warmup,
                    sustained: None,
                },
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
        assert_eq!(timed(None, None), ([7.0; 3], 1, 0, 0));
        assert_eq!(timed(Some(3), None), ([1.0, 2.0, 7.0], 3, 0, 2));
        assert_eq!(timed(Some(2), Some(2)), ([2.0, 2.5, 3.0], 2, 2, 3));
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
        assert_eq!(runs(default, 0), (10, 0, 1e-3));
        assert_eq!(runs(default, 1), (10, 0, 1e-3));
        assert_eq!(runs(default, 600), (5, 0, 1e-3));
        assert_eq!(runs(default, 60_000), (3, 0, 1e-3));
        let asked = Effort {
            runs: Some(1),
            warmup: Some(2),
            sustained: None,
        };
        assert_eq!(runs(asked, 60_000), (1, 2, 3e-3));
        assert_eq!(most_cpu_runs(asked), 3);
        assert_eq!(most_cpu_runs(default), 10);
    }
}
