//! Keeps a panic in a simulated thread from being printed, and notes where it was.
//!
//! A panic is printed by a hook that the whole process shares. Ours passes every panic on to the hook that was there
//! before, except those of simulated threads, which become a [`Fault`](super::Fault) of the launch.

use super::current;
use std::cell::RefCell;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// Where the last panic of a simulated thread of this OS thread was.
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

/// Where the panic was that has just been caught on this OS thread.
pub(super) fn take_location() -> Option<String> {
    LOCATION.take()
}
