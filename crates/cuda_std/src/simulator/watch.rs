//! Notices that a block makes no progress, and ends its launch.
//!
//! ```text
//!   worker    runs threads, notes progress ........ sees `is_late`, returns the fault
//!   watcher   looks ten times a second .... no progress for the time limit: sets `is_late`
//!                                                   a second later, if the worker has not seen it
//!                                                   as its thread never waits: prints the fault,
//!                                                   and aborts
//! ```
//!
//! The watcher counts its own looks, not the time: a process that a debugger has stopped is not late.

use super::{Dim3, Fault, Launch};
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(100);
/// How long a worker has to see that it is late.
const GRACE: Duration = Duration::from_secs(1);

/// What a worker and the watcher tell each other.
pub(super) struct Watch {
    limit: Duration,
    /// How often a thread has ended or come past a wait that is not its warp's alone.
    progress: AtomicU64,
    is_late: AtomicBool,
    /// The thread that runs, and where it has waited last: null if it has not.
    block: Mutex<Dim3>,
    block_size: Dim3,
    thread: AtomicU32,
    last_wait: AtomicPtr<Location<'static>>,
}

/// A worker's watch, and what the watcher has seen of it.
struct Watched {
    watch: Arc<Watch>,
    progress: u64,
    standstill: Duration,
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
static IS_ANY: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// The watch of a worker, until [`Self::end`].
    pub fn begin(launch: &Launch) -> Arc<Self> {
        static WATCHER: Once = Once::new();
        // If the system gives no thread, nothing is late.
        WATCHER.call_once(|| drop(std::thread::Builder::new().spawn(watch_all)));
        let watch = Arc::new(Self {
            limit: launch.time_limit,
            progress: AtomicU64::new(0),
            is_late: AtomicBool::new(false),
            block: Mutex::new(launch.grid.place(0)),
            block_size: launch.block,
            thread: AtomicU32::new(0),
            last_wait: AtomicPtr::default(),
        });
        lock(&WATCHED).push(Watched {
            watch: Arc::clone(&watch),
            progress: 0,
            standstill: Duration::ZERO,
        });
        IS_ANY.notify_one();
        watch
    }

    pub fn end(self: &Arc<Self>) {
        lock(&WATCHED).retain(|watched| !Arc::ptr_eq(&watched.watch, self));
    }

    pub fn note_progress(&self) {
        self.progress.fetch_add(1, Relaxed);
    }

    /// Notes that threads of this block run next.
    pub fn begin_block(&self, block: Dim3) {
        *lock(&self.block) = block;
    }

    /// Notes that the thread of this number runs next, and where it has waited last; returns a
    /// fault if the block is late.
    #[inline]
    pub fn begin_turn(
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
            let progress = one.watch.progress.load(Relaxed);
            if progress != one.progress {
                (one.progress, one.standstill) = (progress, Duration::ZERO);
                continue;
            }
            one.standstill += INTERVAL;
            if one.standstill > one.watch.limit {
                one.watch.is_late.store(true, Relaxed);
            }
            if one.standstill > one.watch.limit.saturating_add(GRACE) {
                eprintln!("{}", one.watch.fault());
                std::process::abort();
            }
        }
        std::thread::sleep(INTERVAL);
    }
}
