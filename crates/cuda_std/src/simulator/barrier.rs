//! The barrier of a block: `sync_threads()` and its reducing forms.

use super::block::State;
use super::{BarrierSite, Place, current};
use std::cell::{Cell, RefCell};
use std::panic::Location;

/// What a barrier returns to the threads when it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduction {
    Nothing,
    Count,
    And,
    Or,
}

/// A thread's call of a barrier function.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarrierCall {
    reduction: Reduction,
    pub(super) site: &'static Location<'static>,
}

impl BarrierCall {
    pub fn place(self) -> Place {
        Place::Waits {
            function: match self.reduction {
                Reduction::Nothing => "sync_threads",
                Reduction::Count => "sync_threads_count",
                Reduction::And => "sync_threads_and",
                Reduction::Or => "sync_threads_or",
            },
            site: self.site.into(),
            mask: None,
        }
    }

    #[inline]
    fn is_same(self, other: Self) -> bool {
        // One call site can have several `Location`s, one in each part of the program that it was
        // compiled into.
        self.reduction == other.reduction
            && (std::ptr::eq(self.site, other.site) || self.site == other.site)
    }
}

/// The barrier at which the threads of a block arrive.
#[derive(Default)]
pub(super) struct Barrier {
    /// The call of the first thread to arrive, and whether another thread arrived at a different
    /// call.
    first: Cell<Option<BarrierCall>>,
    differs: Cell<bool>,
    arrived: Cell<u32>,
    /// The number of threads in which the predicate was not 0.
    nonzero: Cell<u32>,
    /// What the barrier that opened last returns to its threads.
    answer: Cell<u32>,
    /// Where it has opened in this block, one after the other.
    openings: RefCell<Vec<&'static Location<'static>>>,
    /// The same of an earlier block in which it opened most often.
    most_openings: RefCell<Vec<&'static Location<'static>>>,
    /// How often the barrier at each site has opened, over all blocks.
    counts: RefCell<Vec<(&'static Location<'static>, u64)>>,
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
    fn arrive(&self, call: BarrierCall, predicate: u32) {
        match self.first.get() {
            None => self.first.set(Some(call)),
            Some(first) if first.is_same(call) => {}
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
        let nonzero = self.nonzero.get();
        self.answer.set(match call.reduction {
            Reduction::Nothing => 0,
            Reduction::Count => nonzero,
            Reduction::And => u32::from(nonzero as usize == threads),
            Reduction::Or => u32::from(nonzero > 0),
        });
        self.openings.borrow_mut().push(call.site);
        let mut counts = self.counts.borrow_mut();
        match counts.iter_mut().find(|(site, _)| *site == call.site) {
            Some((_, count)) => *count += 1,
            None => counts.push((call.site, 1)),
        }
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
    pub fn counts(&self) -> Vec<(BarrierSite, u64)> {
        let counts = self.counts.borrow();
        counts
            .iter()
            .map(|&(site, count)| (site.into(), count))
            .collect()
    }
}

/// Waits for all threads of the block; returns what the barrier returns to its threads.
fn wait(reduction: Reduction, site: &'static Location<'static>, predicate: u32) -> u32 {
    let block = current::block();
    if block.is_unwinding.get() {
        return 0;
    }
    let is_left_out = || block.left_out.contains(&site.into());
    if reduction == Reduction::Nothing && !block.left_out.is_empty() && is_left_out() {
        return 0;
    }
    let call = BarrierCall { reduction, site };
    block.barrier.arrive(call, predicate);
    current::thread().suspend(State::AtBarrier(call));
    // No other barrier can have opened: it would have waited for this thread.
    block.barrier.answer.get()
}

#[track_caller]
pub(crate) fn barrier() {
    wait(Reduction::Nothing, Location::caller(), 0);
}

#[track_caller]
pub(crate) fn barrier_count(predicate: u32) -> u32 {
    wait(Reduction::Count, Location::caller(), predicate)
}

#[track_caller]
pub(crate) fn barrier_and(predicate: u32) -> u32 {
    wait(Reduction::And, Location::caller(), predicate)
}

#[track_caller]
pub(crate) fn barrier_or(predicate: u32) -> u32 {
    wait(Reduction::Or, Location::caller(), predicate)
}
