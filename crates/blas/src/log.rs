//! What was called, who multiplied it, and how long the call took on the host.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;

use crate::Refusal;
use crate::settings::SETTINGS;

static MULTIPLIED: AtomicU64 = AtomicU64::new(0);
static PASSED_ON: AtomicU64 = AtomicU64::new(0);

/// Calls by what became of them.
static SUMMARY: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// The calls that were multiplied and passed on.
pub fn counts() -> [u64; 2] {
    [&MULTIPLIED, &PASSED_ON].map(|count| count.load(Ordering::Relaxed))
}

/// A call that has begun.
pub struct Call {
    name: &'static str,
    /// Without a log nothing else is known.
    began: Option<Instant>,
    shape: RefCell<String>,
}

impl Call {
    pub fn begin(name: &'static str) -> Call {
        Call {
            name,
            began: SETTINGS.log.as_ref().map(|_| Instant::now()),
            shape: RefCell::default(),
        }
    }

    /// Its matrices, for the log.
    pub fn is_of(&self, shape: impl Display) {
        if self.began.is_some() {
            *self.shape.borrow_mut() = shape.to_string();
        }
    }

    /// Counts it, and writes a line: a kernel multiplied it, or not.
    pub fn end(&self, result: &Result<&'static str, Refusal>) {
        let count = if result.is_ok() {
            &MULTIPLIED
        } else {
            &PASSED_ON
        };
        count.fetch_add(1, Ordering::Relaxed);
        if let Err(Refusal::Unable(error) | Refusal::Failed(error)) = result {
            say_once(error);
        }
        let Some(began) = self.began else { return };
        static AT_EXIT: Once = Once::new();
        // SAFETY: the function has no requirements, and neither it nor what it uses is unloaded.
        AT_EXIT.call_once(|| unsafe {
            libc::atexit(summarize);
        });
        let microseconds = began.elapsed().as_secs_f64() * 1e6;
        let (what, kind) = match result {
            Ok(kernel) => (
                format!("multiplied by {kernel}"),
                format!("multiplied by {kernel}"),
            ),
            Err(Refusal::PassedOn(why)) => {
                (format!("passed on: {why}"), format!("passed on: {why}"))
            }
            Err(Refusal::Unable(error)) => (
                format!("passed on: {error}"),
                "passed on after an error".to_owned(),
            ),
            Err(Refusal::Failed(error)) => (format!("failed: {error}"), "failed".to_owned()),
        };
        let mut summary = SUMMARY.lock().unwrap_or_else(PoisonError::into_inner);
        *summary.entry(format!("{} {kind}", self.name)).or_default() += 1;
        write(format_args!(
            "{} {}: {what} ({microseconds:.1} us)",
            self.name,
            self.shape.borrow()
        ));
    }
}

extern "C" fn summarize() {
    // Nothing here is worth a panic across C.
    let _ = std::panic::catch_unwind(|| {
        let [multiplied, passed_on] = counts();
        write(format_args!(
            "total: {multiplied} multiplied, {passed_on} passed on"
        ));
        for (what, count) in &*SUMMARY.lock().unwrap_or_else(PoisonError::into_inner) {
            write(format_args!("{count:8} {what}"));
        }
    });
}

fn write(line: impl Display) {
    if let Some(log) = &SETTINGS.log {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        // In one write: other processes may write to the file, too.
        let _ = log.write_all(format!("gemm_blas: {line}\n").as_bytes());
    }
}

/// Says on the standard error what went wrong here, once.
fn say_once(error: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.insert(error.to_owned()) {
        let _ = writeln!(std::io::stderr(), "gemm_blas: {error}");
    }
}
