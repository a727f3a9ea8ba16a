//! Ctrl-C: the program ends at once, and leaves neither a temporary file nor half a progress bar.

use std::io::{self, Write};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::{output, progress};

/// The exit code of an interrupted run: what shells report for a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// Makes SIGINT (Ctrl-C) and SIGTERM end the process this way from now on. A thread waits for
/// them, so that what it does need not be safe in a signal handler.
///
/// # Errors
///
/// The system refuses the handlers or the thread.
pub fn watch() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new()
        .name("interrupt".to_string())
        .spawn(move || {
            if signals.forever().next().is_some() {
                output::abandon_all();
                progress::clear_all();
                // There may be no reader.
                let _ = writeln!(io::stderr(), "interrupted");
                // Not `process::exit`: other threads still run, perhaps in the GPU's driver,
                // whose exit handlers would free its memory under them.
                low_level::exit(INTERRUPTED.into());
            }
        })?;
    Ok(())
}
