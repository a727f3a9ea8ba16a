//! The barrier at which all threads of a block meet.

use super::BarrierSite;
use super::site::{CallSite, Sites};
use std::cell::{Cell, RefCell};
use std::panic::Location;

/// The barrier at which the threads of a block arrive.
pub(super) struct Barrier {
    /// The barriers of the source, and how often each has opened.
    pub sites: Sites,
    /// The call of the first thread to arrive, and whether another thread arrived at a different
    /// call.
    first: Cell<Option<CallSite>>,
    differs: Cell<bool>,
    arrived: Cell<u32>,
    /// The number of threads in which the predicate was not 0, and that number for the barrier
    /// that opened last.
    nonzero: Cell<u32>,
    pub answer: Cell<u32>,
    /// Where it has opened in this block, in order.
    openings: RefCell<Vec<&'static Location<'static>>>,
    /// The same for the earlier block with the most openings.
    most_openings: RefCell<Vec<&'static Location<'static>>>,
}

impl Barrier {
    /// A barrier that does nothing at the sites `left_out`.
    pub fn new(left_out: &[BarrierSite]) -> Self {
        Self {
            sites: Sites::new(left_out),
            first: Cell::new(None),
            differs: Cell::new(false),
            arrived: Cell::new(0),
            nonzero: Cell::new(0),
            answer: Cell::new(0),
            openings: RefCell::default(),
            most_openings: RefCell::default(),
        }
    }

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
    pub fn arrive(&self, site: CallSite, predicate: u32) {
        match self.first.get() {
            None => self.first.set(Some(site)),
            Some(first) if first.is_same(&site) => {}
            Some(_) => self.differs.set(true),
        }
        self.arrived.set(self.arrived.get() + 1);
        self.nonzero
            .set(self.nonzero.get() + u32::from(predicate != 0));
    }

    /// Opens the barrier if all `threads` of the block are at the same call.
    pub fn open_if_complete(&self, threads: usize) -> bool {
        let Some(CallSite { location, .. }) = self.first.get() else {
            return false;
        };
        if self.differs.get() || self.arrived.get() as usize != threads {
            return false;
        }
        self.answer.set(self.nonzero.get());
        self.openings.borrow_mut().push(location);
        self.sites.note_passed(location);
        self.close();
        true
    }

    /// The number of openings in this block.
    pub fn openings(&self) -> usize {
        self.openings.borrow().len()
    }

    /// Where it opened, in order, in the block with the most openings.
    pub fn most_openings(&self) -> Vec<BarrierSite> {
        self.note_most_openings();
        let most_openings = self.most_openings.borrow();
        most_openings.iter().map(|&site| site.into()).collect()
    }
}
