//! Prevents a panic in a simulated thread from being printed, and records where it occurred.
//!
//! A panic is printed by a hook that is global to the process. This hook passes every panic on to
//! the previous hook, except panics of simulated threads, which become a [`Fault`] of the launch. A
//! panic that cannot unwind ends the process instead, so its fault is printed here.

use super::{Fault, current};
use std::cell::RefCell;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// Where the last panic of a simulated thread occurred on this OS thread.
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs the hook, the first time it is called.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if current::is_simulated() {
                let location = info.location().map(ToString::to_string);
                if is_final(info) {
                    let message = info.payload_as_str().unwrap_or("(no text)");
                    eprintln!("{}", fault(message.to_owned(), location));
                } else {
                    LOCATION.set(location);
                }
            } else {
                previous(info);
            }
        }));
    });
}

/// Whether the process ends with this panic: in a dev build, a null or misaligned pointer, or
/// `get_unchecked` out of bounds.
fn is_final(info: &PanicHookInfo<'_>) -> bool {
    // Stable Rust has no other way to ask; a test sees if it is gone.
    format!("{info:?}").contains("can_unwind: false")
}

/// The current thread's panic.
pub(super) fn fault(message: String, location: Option<String>) -> Fault {
    Fault::Panic {
        block: current::block().index.get(),
        thread: current::thread().index,
        message,
        location,
    }
}

/// Where the panic occurred that has just been caught on this OS thread.
pub(super) fn take_location() -> Option<String> {
    LOCATION.take()
}
