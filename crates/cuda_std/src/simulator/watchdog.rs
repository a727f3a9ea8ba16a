//! Notices that a block makes no progress, and ends its launch.
//!
//! ```text
//!   worker    runs threads, notes progress ........ sees `is_late`, returns the fault
//!   watcher   looks ten times a second .... no progress for the time limit: sets `is_late`
//!                                                   a second later, if the thread never waits, so
//!                                                   that the worker cannot see it: prints the
//!                                                   fault and aborts
//! ```
//!
//! The watcher counts its own looks instead of reading a clock, so that time in which a debugger
//! stops the process does not count.

use super::{Dim3, Fault, Launch};
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(100);
/// Time for a worker to notice that it is late.
const GRACE: Duration = Duration::from_secs(1);

/// The state that a worker shares with the watcher.
pub(super) struct Watchdog {
    limit: Duration,
    /// Counts the threads that have ended or passed a wait for more than lanes of their warp.
    progress: AtomicU64,
    is_late: AtomicBool,
    /// The running thread, and where it last waited: null if it has not waited.
    block: Mutex<Dim3>,
    block_size: Dim3,
    thread: AtomicU32,
    last_wait: AtomicPtr<Location<'static>>,
}

/// A worker's watchdog, and its progress at the watcher's last look.
struct Watched {
    watchdog: Arc<Watchdog>,
    progress: u64,
    standstill: Duration,
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
static IS_ANY: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchdog {
    /// Watches a worker until [`Self::end`].
    pub fn begin(launch: &Launch) -> Arc<Self> {
        static WATCHER: Once = Once::new();
        // If the system gives no thread, nothing is late.
        WATCHER.call_once(|| drop(std::thread::Builder::new().spawn(watch_all)));
        let watchdog = Arc::new(Self {
            limit: launch.time_limit,
            progress: AtomicU64::new(0),
            is_late: AtomicBool::new(false),
            block: Mutex::new(launch.grid.place(0)),
            block_size: launch.block,
            thread: AtomicU32::new(0),
            last_wait: AtomicPtr::default(),
        });
        lock(&WATCHED).push(Watched {
            watchdog: Arc::clone(&watchdog),
            progress: 0,
            standstill: Duration::ZERO,
        });
        IS_ANY.notify_one();
        watchdog
    }

    pub fn end(self: &Arc<Self>) {
        lock(&WATCHED).retain(|watched| !Arc::ptr_eq(&watched.watchdog, self));
    }

    pub fn note_progress(&self) {
        self.progress.fetch_add(1, Relaxed);
    }

    /// Notes that threads of this block run next.
    pub fn begin_block(&self, block: Dim3) {
        *lock(&self.block) = block;
    }

    /// Notes that the thread of this number, which last waited there, runs next; returns a fault if
    /// the block is late.
    #[inline]
    pub fn begin_thread(
        &self,
        thread: u32,
        last_wait: Option<&'static Location<'static>>,
    ) -> Option<Fault> {
        let last_wait = last_wait.map_or(ptr::null(), ptr::from_ref);
        self.thread.store(thread, Relaxed);
        self.last_wait.store(last_wait.cast_mut(), Relaxed);
        self.is_late.load(Relaxed).then(|| self.fault())
    }

    fn fault(&self) -> Fault {
        // SAFETY: null, or a location, which lives as long as the program.
        let last_wait = unsafe { self.last_wait.load(Relaxed).cast_const().as_ref() };
        Fault::NoProgress {
            block: *lock(&self.block),
            thread: self.block_size.place(self.thread.load(Relaxed).into()),
            last_wait: last_wait.map(Into::into),
            limit: self.limit,
        }
    }
}

fn watch_all() {
    loop {
        let watched = IS_ANY.wait_while(lock(&WATCHED), |watched| watched.is_empty());
        for one in &mut *watched.unwrap_or_else(PoisonError::into_inner) {
            let progress = one.watchdog.progress.load(Relaxed);
            if progress != one.progress {
                (one.progress, one.standstill) = (progress, Duration::ZERO);
                continue;
            }
            one.standstill += INTERVAL;
            if one.standstill > one.watchdog.limit {
                one.watchdog.is_late.store(true, Relaxed);
            }
            if one.standstill > one.watchdog.limit.saturating_add(GRACE) {
                eprintln!("{}", one.watchdog.fault());
                std::process::abort();
            }
        }
        std::thread::sleep(INTERVAL);
    }
}
