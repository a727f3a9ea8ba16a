//! Prevents a panic in a simulated thread from being printed, and records where it occurred.
//!
//! A panic is printed by a hook that is global to the process. This hook passes every panic on to
//! the previous hook, except panics of simulated threads, which become a [`Fault`](super::Fault)
//! of the launch.

use super::current;
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
                LOCATION.set(location);
            } else {
                previous(info);
            }
        }));
    });
}

/// Where the panic occurred that has just been caught on this OS thread.
pub(super) fn take_location() -> Option<String> {
    LOCATION.take()
}
