//! A progress bar, on a terminal, for what takes longer than two seconds.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};

/// How long the bar stays hidden.
const PATIENCE: Duration = Duration::from_secs(2);

/// The bars that exist or existed.
static BARS: Mutex<Vec<WeakProgressBar>> = Mutex::new(Vec::new());

/// Clears all bars from the terminal, for a process that is about to end.
pub fn clear_all() {
    // A list of bars is intact, whatever panicked beside it.
    let bars = BARS.lock().unwrap_or_else(PoisonError::into_inner);
    for bar in bars.iter().filter_map(WeakProgressBar::upgrade) {
        bar.finish_and_clear();
    }
}

/// A bar that appears after a while, and disappears when it is dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Dropped to tell the thread that waits to show the bar that it is no longer needed.
    ended: Option<Sender<()>>,
    waiting: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the clock. `steps` is how often [`Progress::step`] will be called; 0 shows no bar,
    /// only what is being done.
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
        let (ended, end) = mpsc::channel();
        let shown = bar.clone();
        let waiting = thread::spawn(move || {
            if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // Draws only on a terminal.
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(Duration::from_millis(200));
            }
        });
        Progress {
            bar,
            ended: Some(ended),
            waiting: Some(waiting),
        }
    }

    /// Says what is being done from now on: `checking`, or `tiled-32: checking` of a kernel.
    pub fn doing(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Writes to a terminal, where the bar may be, without mixing with it.
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
        drop(self.ended.take());
        if let Some(waiting) = self.waiting.take() {
            // It cannot have panicked, and there is nothing to do if it has.
            let _ = waiting.join();
        }
        self.bar.finish_and_clear();
    }
}
