//! A progress bar, on a terminal, for work that takes longer than two seconds; and the time that
//! each stage of the work took.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};
use serde::{Deserialize, Serialize};

/// How long the bar stays hidden.
const PATIENCE: Duration = Duration::from_secs(2);

/// The bars that exist or existed.
static BARS: Mutex<Vec<WeakProgressBar>> = Mutex::new(Vec::new());

/// Clears all bars from the terminal, for a process that is about to end.
pub fn clear_all() {
    // The list of bars is intact even if a thread panicked while holding the lock.
    let bars = BARS.lock().unwrap_or_else(PoisonError::into_inner);
    for bar in bars.iter().filter_map(WeakProgressBar::upgrade) {
        bar.finish_and_clear();
    }
}

/// A bar that appears after a while, and disappears when it is dropped.
pub struct Progress {
    bar: ProgressBar,
    /// The stages in the order of their beginning; the last is timed since the instant.
    stages: Mutex<(Vec<Stage>, Instant)>,
}

/// The time that a stage of checking and timing took, of all kernels together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The stage's name, such as `checking`.
    pub stage: String,
    pub seconds: f64,
}

impl Progress {
    /// Starts the clock. `steps` is how often [`Progress::step`] will be called; with 0, only the
    /// current stage is shown, without a bar.
    pub fn start(steps: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let template = match steps {
            0 => "{spinner} {msg} ({elapsed})",
            _ => "{wide_bar} {percent}% {msg} ({elapsed}, {eta} left)",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let mut bars = BARS.lock().unwrap_or_else(PoisonError::into_inner);
        bars.retain(|bar| bar.upgrade().is_some());
        bars.push(bar.downgrade());
        drop(bars);
        let weak = bar.downgrade();
        thread::spawn(move || {
            thread::sleep(PATIENCE);
            // It is gone if the work has ended.
            if let Some(bar) = weak.upgrade() {
                // Draws only if standard error is a terminal.
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(Duration::from_millis(200));
            }
        });
        let stages = Mutex::new((Vec::new(), Instant::now()));
        Progress { bar, stages }
    }

    /// Starts a stage: `checking`, or `tiled-32: checking` for a kernel.
    pub fn doing(&self, what: String) {
        let stage = what.rsplit(": ").next().unwrap_or_default().to_string();
        self.stages().0.push(Stage {
            stage,
            seconds: 0.0,
        });
        self.bar.set_message(what);
    }

    /// The stages since this was last called, each once; the current one ends.
    pub fn take_stages(&self) -> Vec<Stage> {
        let mut sums: Vec<Stage> = Vec::new();
        for one in std::mem::take(&mut self.stages().0) {
            match sums.iter_mut().find(|sum| sum.stage == one.stage) {
                Some(sum) => sum.seconds += one.seconds,
                None => sums.push(one),
            }
        }
        sums
    }

    /// The stages, the current one with its time so far.
    fn stages(&self) -> MutexGuard<'_, (Vec<Stage>, Instant)> {
        // The lock may be poisoned, but the times are intact: code only adds to them.
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        let since = std::mem::replace(&mut stages.1, Instant::now());
        if let Some(current) = stages.0.last_mut() {
            current.seconds += since.elapsed().as_secs_f64();
        }
        stages
    }

    /// Hides the bar while `write` writes to the terminal.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Counts one step as done. May be called from any thread.
    pub fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_the_sum_over_all_kernels_and_ends_when_it_is_taken() {
        let progress = Progress::start(0);
        for what in ["filling", "a: checking", "b: running", "b: checking"] {
            progress.doing(what.to_string());
        }
        let stages = progress.take_stages();
        let names: Vec<&str> = stages.iter().map(|one| one.stage.as_str()).collect();
        assert_eq!(names, ["filling", "checking", "running"]);
        assert!(stages.iter().all(|one| one.seconds >= 0.0));
        assert!(progress.take_stages().is_empty());
    }
}
