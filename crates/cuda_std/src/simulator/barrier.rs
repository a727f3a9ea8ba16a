//! The barrier of a block: `sync_threads()` and its reducing forms.

use super::call::{Awaits, Call, SiteCounts};
use super::{BarrierSite, current};
use std::cell::{Cell, RefCell};
use std::panic::Location;

/// The barrier at which the threads of a block arrive.
#[derive(Default)]
pub(super) struct Barrier {
    /// The call of the first thread to arrive, and whether another thread arrived at a different
    /// call.
    first: Cell<Option<Call>>,
    differs: Cell<bool>,
    arrived: Cell<u32>,
    /// The number of threads in which the predicate was not 0, and that number for the barrier
    /// that opened last.
    nonzero: Cell<u32>,
    answer: Cell<u32>,
    /// Where it has opened in this block, one after the other.
    openings: RefCell<Vec<&'static Location<'static>>>,
    /// The same of an earlier block in which it opened most often.
    most_openings: RefCell<Vec<&'static Location<'static>>>,
    /// How often the barrier at each site has opened, over all blocks.
    counts: SiteCounts,
}

impl Barrier {
    pub fn begin_block(&self) {
        self.note_most_openings();
        self.openings.borrow_mut().clear();
        self.close();
    }

    fn note_most_openings(&self) {
        if self.openings.borrow().len() > self.most_openings.borrow().len() {
            self.openings.swap(&self.most_openings);
        }
    }

    fn close(&self) {
        self.first.set(None);
        self.differs.set(false);
        self.arrived.set(0);
        self.nonzero.set(0);
    }

    #[inline]
    fn arrive(&self, call: Call, predicate: u32) {
        match self.first.get() {
            None => self.first.set(Some(call)),
            Some(first) if first.is_same(&call) => {}
            Some(_) => self.differs.set(true),
        }
        self.arrived.set(self.arrived.get() + 1);
        self.nonzero
            .set(self.nonzero.get() + u32::from(predicate != 0));
    }

    /// Opens the barrier if all `threads` of the block are at the same call.
    pub fn open_if_complete(&self, threads: usize) -> bool {
        let Some(call) = self.first.get() else {
            return false;
        };
        if self.differs.get() || self.arrived.get() as usize != threads {
            return false;
        }
        self.answer.set(self.nonzero.get());
        self.openings.borrow_mut().push(call.site);
        self.counts.note(call.site);
        self.close();
        true
    }

    /// How often it has opened in this block.
    pub fn openings(&self) -> usize {
        self.openings.borrow().len()
    }

    /// Where it opened, one after the other, in a block in which it did most often.
    pub fn most_openings(&self) -> Vec<BarrierSite> {
        self.note_most_openings();
        let most_openings = self.most_openings.borrow();
        most_openings.iter().map(|&site| site.into()).collect()
    }

    /// How often the barrier at each site has opened.
    pub fn into_counts(self) -> Vec<(BarrierSite, u64)> {
        self.counts.into_vec()
    }
}

/// Waits for all threads of the block; returns in how many of them `predicate` is not 0. Without
/// waiting a reducing barrier would have no result, so the launch can leave out others only.
fn wait(function: &'static str, site: &'static Location<'static>, predicate: Option<u32>) -> u32 {
    let block = current::block();
    let may_leave_out = predicate.is_none() && !block.left_out.is_empty();
    if block.is_unwinding.get() || may_leave_out && block.left_out.contains(&site.into()) {
        return 0;
    }
    let call = Call {
        function,
        site,
        awaits: Awaits::Block,
    };
    block.barrier.arrive(call, predicate.unwrap_or(0));
    current::suspend(call);
    // No other barrier can have opened: it would have waited for this thread.
    block.barrier.answer.get()
}

#[track_caller]
pub(crate) fn barrier() {
    wait("sync_threads", Location::caller(), None);
}

#[track_caller]
pub(crate) fn barrier_count(predicate: u32) -> u32 {
    wait("sync_threads_count", Location::caller(), Some(predicate))
}

#[track_caller]
pub(crate) fn barrier_and(predicate: u32) -> u32 {
    let nonzero = wait("sync_threads_and", Location::caller(), Some(predicate));
    u32::from(nonzero as usize == current::block().threads.len())
}

#[track_caller]
pub(crate) fn barrier_or(predicate: u32) -> u32 {
    let nonzero = wait("sync_threads_or", Location::caller(), Some(predicate));
    u32::from(nonzero > 0)
}
