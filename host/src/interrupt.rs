//! Ctrl-C: the program ends at once, and clears its progress bars.
//!
//! The signal itself ends the process, as if it were not handled, so that a shell that runs the
//! program in a loop ends the loop, too. SIGTERM is handled alike, and so is SIGHUP, which a
//! terminal sends when it is closed.

use std::io::{self, Write};
use std::{fs, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::progress;

/// The signals that end the program this way.
pub const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Makes [`SIGNALS`] end the process this way from now on, except for signals that the process
/// already ignores: `nohup` ignores SIGHUP, and scripts ignore SIGINT for what they run in the
/// background. A thread waits for them, so the code need not be safe in a signal handler.
///
/// # Errors
///
/// The system refuses the handlers or the thread.
pub fn watch() -> io::Result<()> {
    let handled = SIGNALS.into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = Signals::new(handled)?;
    thread::Builder::new()
        .name("interrupt".to_string())
        .spawn(move || {
            for signal in signals.forever() {
                end(signal);
            }
        })?;
    Ok(())
}

/// Whether this process ignores a signal. The processes that it starts inherit this.
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|ignored| u64::from_str_radix(ignored.trim(), 16).ok());
    ignored.is_some_and(|ignored| ignored & (1 << (signal - 1)) != 0)
}

/// Ends the process by a signal.
fn end(signal: i32) {
    progress::clear_all();
    // Standard error may be closed.
    let _ = writeln!(io::stderr(), "interrupted");
    // Not `process::exit`: other threads still run, perhaps in the GPU's driver, whose exit
    // handlers would free its memory under them. It fails only for signals that it does not know.
    let _ = low_level::emulate_default_handler(signal);
}
