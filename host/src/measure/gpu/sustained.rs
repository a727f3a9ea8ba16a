//! Speed at the power limit: seconds of back-to-back launches, as in a training run.
//!
//! Runs with gaps between them never reach the limit, so they get higher clocks than a stream of
//! products. Here the contenders alternate, in changing orders, and each launches for at least a
//! second at a time. The first 0.3 s of each turn do not count, while clocks and power settle. The
//! host queues batches of launches, always one ahead of the GPU, and meanwhile reads the clock and
//! the energy counter.
//!
//! NVML's counter of energy advances in steps some tens of milliseconds apart, so the mean power is
//! taken from one step to another, not from the first reading to the last.

use std::collections::VecDeque;
use std::time::Instant;

use super::bench::{Bench, MeasureError, Runner};
use crate::data::Number;
use crate::measure::timing::{Timing, turns};

/// Seconds at the start of each turn that do not count.
const DROPPED: f64 = 0.3;
/// The approximate seconds of a batch of launches.
const BATCH: f64 = 0.01;
/// Batches that are queued at once.
const QUEUED: usize = 2;

/// The counted launches of a contender, in all its turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sustained {
    pub turns: u32,
    pub launches: u64,
    /// The time from the end of each turn's first launch to the end of its last.
    pub seconds: f64,
    /// The mean clock of the SMs, if it is known.
    pub sm_clock_mhz: Option<f64>,
    /// The mean power, if it is known.
    pub power_w: Option<f64>,
}

impl Sustained {
    /// Seconds for one launch.
    pub fn seconds_per_launch(&self) -> f64 {
        self.seconds / self.launches as f64
    }

    /// The timing of these launches as a single run.
    pub(super) fn timing(&self) -> Timing {
        let launches = u32::try_from(self.launches).unwrap_or(u32::MAX);
        Timing::new(vec![self.seconds_per_launch()], 0, launches)
    }
}

/// Runs each contender for `seconds`, a second at a time. `medians` are the seconds of one launch;
/// `doing` is told which contender runs.
pub(super) fn measure<T: Number>(
    bench: &Bench<'_, '_, T>,
    runners: &[&Runner<'_>],
    medians: &[f64],
    seconds: u32,
    doing: &dyn Fn(usize),
) -> Result<Vec<Sustained>, MeasureError> {
    let mut all: Vec<Vec<Turn>> = runners.iter().map(|_| Vec::new()).collect();
    for index in turns(&vec![seconds; runners.len()]) {
        doing(index);
        all[index].push(turn(bench, runners[index], medians[index])?);
    }
    Ok(all.iter().map(|turns| summary(turns)).collect())
}

/// The measurements of one turn, from [`DROPPED`] seconds on.
#[derive(Clone, Debug, Default)]
struct Turn {
    launches: u64,
    seconds: f64,
    samples: Vec<Sample>,
}

/// A reading of the GPU.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// Seconds since the turn began.
    at: f64,
    sm_clock_mhz: Option<u32>,
    energy_j: Option<f64>,
}

/// Launches for a second, or until the third batch has ended if that is longer.
fn turn<T: Number>(
    bench: &Bench<'_, '_, T>,
    runner: &Runner<'_>,
    seconds_per_launch: f64,
) -> Result<Turn, MeasureError> {
    let launches = (BATCH / seconds_per_launch.max(1e-6)).ceil() as u64;
    let (began, mut queued, mut ended) = (Instant::now(), VecDeque::new(), Vec::new());
    let mut samples = Vec::new();
    // The first counted batch, and when it begins: at the end of the one before it.
    let mut counted = None;
    loop {
        let is_over = began.elapsed().as_secs_f64() >= 1.0 + DROPPED && ended.len() >= 3;
        while !is_over && queued.len() < QUEUED {
            for _ in 0..launches {
                bench.launch(runner)?;
            }
            queued.push_back(bench.mark()?);
        }
        let Some(mark) = queued.pop_front() else {
            break;
        };
        loop {
            if let Some(probe) = &bench.probe {
                samples.push(Sample {
                    at: began.elapsed().as_secs_f64(),
                    sm_clock_mhz: probe.sm_clock_mhz(),
                    energy_j: probe.energy_j(),
                });
            }
            if mark.is_reached()? {
                break;
            }
        }
        ended.push(mark);
        if counted.is_none() && began.elapsed().as_secs_f64() >= DROPPED {
            counted = Some((ended.len() - 1, began.elapsed().as_secs_f64()));
        }
    }
    let (first, since) = counted.unwrap_or((0, DROPPED));
    samples.retain(|sample| sample.at >= since);
    let last = ended.len() - 1;
    // If launches take longer than a turn, there may be no batch before the first counted one.
    let first = first.min(last - 1);
    Ok(Turn {
        launches: launches * (last - first) as u64,
        seconds: ended[last].seconds_since(&ended[first])?,
        samples,
    })
}

fn summary(turns: &[Turn]) -> Sustained {
    let samples = turns.iter().flat_map(|turn| &turn.samples);
    let clocks: Vec<f64> = samples
        .filter_map(|sample| sample.sm_clock_mhz.map(f64::from))
        .collect();
    let (joules, seconds) = turns
        .iter()
        .filter_map(|turn| energy(&turn.samples))
        .fold((0.0, 0.0), |(joules, seconds), (more, longer)| {
            (joules + more, seconds + longer)
        });
    Sustained {
        turns: turns.len() as u32,
        launches: turns.iter().map(|turn| turn.launches).sum(),
        seconds: turns.iter().map(|turn| turn.seconds).sum(),
        sm_clock_mhz: (!clocks.is_empty())
            .then(|| clocks.iter().sum::<f64>() / clocks.len() as f64),
        power_w: (seconds > 0.0).then(|| joules / seconds),
    }
}

/// The energy from the first step of the counter to the last, and the time between them.
fn energy(samples: &[Sample]) -> Option<(f64, f64)> {
    let readings: Vec<(f64, f64)> = samples
        .iter()
        .filter_map(|sample| Some((sample.at, sample.energy_j?)))
        .collect();
    let steps: Vec<&(f64, f64)> = readings
        .windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .map(|pair| &pair[1])
        .collect();
    let (first, last) = (steps.first()?, steps.last()?);
    let (joules, seconds) = (last.1 - first.1, last.0 - first.0);
    (seconds > 0.0).then_some((joules, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: f64, clock: u32, energy: f64) -> Sample {
        Sample {
            at,
            sm_clock_mhz: Some(clock),
            energy_j: Some(energy),
        }
    }

    #[test]
    fn power_is_that_between_steps_of_the_counter() {
        // 10 J every 20 ms, seen up to 9 ms late: 500 W.
        let readings = [
            (0.300, 5.0),
            (0.309, 5.0),
            (0.320, 15.0),
            (0.330, 15.0),
            (0.340, 25.0),
        ];
        let mut samples = readings
            .map(|(at, energy)| sample(at, 1500, energy))
            .to_vec();
        samples.push(sample(0.359, 1700, 25.0));
        let (joules, seconds) = energy(&samples).unwrap();
        assert_eq!(joules, 10.0);
        approx::assert_relative_eq!(joules / seconds, 500.0, max_relative = 1e-9);
        // A counter that does not advance gives no power.
        assert_eq!(energy(&samples[..3]), None);
        assert_eq!(energy(&[]), None);
    }

    #[test]
    fn turns_are_added_up() {
        let turn = |launches, seconds| Turn {
            launches,
            seconds,
            samples: vec![sample(0.5, 1400, 0.0), sample(0.6, 1600, 0.0)],
        };
        let found = summary(&[turn(100, 1.0), turn(50, 0.5)]);
        assert_eq!((found.turns, found.launches, found.seconds), (2, 150, 1.5));
        assert_eq!(found.seconds_per_launch(), 0.01);
        assert_eq!((found.sm_clock_mhz, found.power_w), (Some(1500.0), None));
        let nothing = Turn {
            samples: Vec::new(),
            ..turn(1, 1.0)
        };
        assert_eq!(summary(&[nothing]).sm_clock_mhz, None);
    }
}
