//! Ctrl-C: the program ends at once, and leaves neither a temporary file nor half a progress bar.
//!
//! It ends by the signal itself, as if the signal were not handled, so that a shell that runs the
//! program in a loop ends the loop, too. The same goes for SIGTERM, and for SIGHUP, which a
//! terminal sends when it is closed.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::{output, progress};

/// What ends the program this way.
pub const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// What is still to be done before the process ends.
type LastAct = Box<dyn FnOnce() + Send>;

static LAST_ACT: Mutex<Option<LastAct>> = Mutex::new(None);

fn last_act() -> MutexGuard<'static, Option<LastAct>> {
    // It is there or not, whatever panicked beside it.
    LAST_ACT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes [`SIGNALS`] end the process this way from now on, but for those that it was told to
/// ignore: `nohup` ignores SIGHUP, and scripts ignore SIGINT for what they run in the background.
/// A thread waits for them, so that what it does need not be safe in a signal handler.
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
                progress::clear_all();
                let act = last_act().take();
                // In a thread of its own: it may take long, and a second signal must not wait.
                let acting = act.map(|act| {
                    thread::Builder::new().spawn(move || {
                        let _end = End(signal);
                        act();
                    })
                });
                if !matches!(acting, Some(Ok(_))) {
                    end(signal);
                }
            }
        })?;
    Ok(())
}

/// Whether this process ignores a signal, as those that it starts will, too.
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|ignored| u64::from_str_radix(ignored.trim(), 16).ok());
    ignored.is_some_and(|ignored| ignored & (1 << (signal - 1)) != 0)
}

/// What [`before_end`] arranged, until this is dropped.
#[must_use]
pub struct BeforeEnd(());

/// Has `act` done, in a thread of its own, before a signal ends the process; a second signal does
/// not wait for it. There is one such act at a time.
pub fn before_end(act: impl FnOnce() + Send + 'static) -> BeforeEnd {
    *last_act() = Some(Box::new(act));
    BeforeEnd(())
}

impl Drop for BeforeEnd {
    fn drop(&mut self) {
        last_act().take();
    }
}

/// Ends the process by a signal when it is dropped, also by a panic.
struct End(i32);

impl Drop for End {
    fn drop(&mut self) {
        end(self.0);
    }
}

/// Ends the process by a signal.
fn end(signal: i32) {
    // A second thread that comes here waits for the end of the process.
    output::abandon_all();
    progress::clear_all();
    // There may be no reader.
    let _ = writeln!(io::stderr(), "interrupted");
    // Not `process::exit`: other threads still run, perhaps in the GPU's driver, whose exit
    // handlers would free its memory under them. It fails only for signals that it does not know.
    let _ = low_level::emulate_default_handler(signal);
}
