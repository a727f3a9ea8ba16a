//! Barriers in shared memory, and the loads that arrive at them.

use super::block::{Block, State};
use super::tma::Load;
use super::{Place, cluster, current};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::Location;

/// A barrier in its current phase.
#[derive(Debug)]
struct Mbarrier {
    /// Arrivals that end a phase, and how many the current one lacks.
    arrivals: u32,
    missing: u32,
    /// Bytes that have been announced, and what brings them.
    announced: usize,
    loads: Vec<Load>,
    /// Phases that have ended.
    ended: u64,
}

impl Mbarrier {
    /// Whether all have arrived and all bytes are on their way: the phase may end, and ends as soon
    /// as someone must know.
    fn may_end(&self) -> bool {
        let bytes: usize = self.loads.iter().map(Load::bytes).sum();
        self.missing == 0 && bytes == self.announced
    }

    fn has_ended(&self, parity: u32) -> bool {
        self.ended % 2 != u64::from(parity % 2)
    }

    /// Ends the phase; returns what lands.
    fn end(&mut self) -> Vec<Load> {
        self.missing = self.arrivals;
        self.announced = 0;
        self.ended += 1;
        std::mem::take(&mut self.loads)
    }
}

/// The barriers of a block, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Mbarriers(RefCell<BTreeMap<usize, Mbarrier>>);

/// A thread's call of [`mbarrier::wait`](crate::mbarrier::wait).
#[derive(Clone, Copy, Debug)]
pub(super) struct MbarrierCall {
    pub(super) site: &'static Location<'static>,
    address: usize,
    parity: u32,
}

impl MbarrierCall {
    pub fn place(self) -> Place {
        Place::Waits {
            function: "mbarrier::wait",
            site: self.site.into(),
            mask: None,
        }
    }
}

impl Mbarriers {
    pub fn begin_block(&self) {
        self.0.borrow_mut().clear();
    }

    /// Lets the loads of a phase land that has all it needs. Returns whether the phase that the
    /// call waits for has ended, then or before.
    fn end_if_possible(&self, call: MbarrierCall, block: &Block) -> bool {
        let mut barriers = self.0.borrow_mut();
        let Some(barrier) = barriers.get_mut(&call.address) else {
            return false;
        };
        if !barrier.has_ended(call.parity) && barrier.may_end() {
            land(barrier.end(), block);
        }
        barrier.has_ended(call.parity)
    }

    /// Makes the threads ready that wait for a phase which has ended, or that can end: those of one
    /// barrier, searching from the thread `first` on. Returns whether there were any.
    pub fn settle(&self, block: &Block, first: u32) -> bool {
        let (before, from_first) = block.threads.split_at(first as usize);
        let calls = || {
            let threads = from_first.iter().chain(before);
            threads.filter_map(|thread| match thread.state.get() {
                State::AtMbarrier(call) => Some((thread, call)),
                _ => None,
            })
        };
        let Some((_, found)) = calls().find(|(_, call)| self.end_if_possible(*call, block)) else {
            return false;
        };
        for (thread, call) in calls() {
            if (call.address, call.parity % 2) == (found.address, found.parity % 2) {
                thread.state.set(State::Ready);
            }
        }
        true
    }

    /// What `change` makes of the barrier there.
    fn with<T>(
        &self,
        address: usize,
        change: impl FnOnce(&mut Mbarrier) -> Result<T, String>,
    ) -> Result<T, String> {
        match self.0.borrow_mut().get_mut(&address) {
            Some(barrier) => change(barrier),
            None => Err("there is no barrier that was initialized.".to_owned()),
        }
    }

    /// Adds a load to the current phase.
    pub fn expect(&self, address: usize, load: Load, block: &Block) -> Result<(), String> {
        self.with(address, |barrier| {
            begin_next_phase(barrier, block);
            barrier.loads.push(load);
            Ok(())
        })
    }

    /// Announces bytes, and arrives. Returns whether the phase may end.
    fn arrive(&self, address: usize, bytes: u32, block: &Block) -> Result<bool, String> {
        self.with(address, |barrier| {
            begin_next_phase(barrier, block);
            barrier.missing = barrier.missing.checked_sub(1).ok_or_else(|| {
                format!(
                    "more than {} arrivals in a phase that still lacks bytes: {} were announced, {} are on their way.",
                    barrier.arrivals,
                    barrier.announced,
                    barrier.loads.iter().map(Load::bytes).sum::<usize>()
                )
            })?;
            barrier.announced += bytes as usize;
            Ok(barrier.may_end())
        })
    }
}

/// If a phase has all it needs and more comes, it has ended.
fn begin_next_phase(barrier: &mut Mbarrier, block: &Block) {
    if barrier.may_end() {
        land(barrier.end(), block);
    }
}

fn land(loads: Vec<Load>, block: &Block) {
    for load in loads {
        load.land(block);
    }
}

#[track_caller]
fn fail_unless<T>(result: Result<T, String>) -> T {
    result.unwrap_or_else(|problem| current::refuse_copy(problem))
}

#[track_caller]
pub(crate) fn mbarrier_init(address: usize, arrivals: u32) {
    let block = current::block();
    if block.is_unwinding.get() {
        return;
    }
    let is_shared = block
        .shared_memory
        .borrow()
        .contains(std::ptr::without_provenance(address), 8);
    fail_unless(match is_shared && address.is_multiple_of(8) {
        _ if !(1..1 << 20).contains(&arrivals) => Err(format!(
            "a barrier for {arrivals} arrivals; it must be from 1 to 1048575."
        )),
        true => Ok(()),
        false => Err(
            "a barrier that is not 8 bytes of the block's shared memory, at a multiple of 8."
                .to_owned(),
        ),
    });
    let barrier = Mbarrier {
        arrivals,
        missing: arrivals,
        announced: 0,
        loads: Vec::new(),
        ended: 0,
    };
    block.mbarriers.0.borrow_mut().insert(address, barrier);
}

/// Announces bytes, and arrives. If that ends the phase, threads that wait for it may run before
/// this one continues: this exposes what should have come before the arrival.
#[track_caller]
pub(crate) fn mbarrier_arrive(address: usize, bytes: u32) {
    let block = current::block();
    if block.is_unwinding.get() {
        return;
    }
    let may_end = fail_unless(block.mbarriers.arrive(address, bytes, block));
    if may_end && block.arrivals_yield {
        current::thread().suspend(State::AfterOthers);
    }
}

/// Arrives at another block's barrier.
#[track_caller]
pub(crate) fn mbarrier_arrive_at(address: usize, rank: u32) {
    if current::block().is_unwinding.get() {
        return;
    }
    let peer = cluster::peer(rank).unwrap_or_else(|problem| current::refuse_copy(problem));
    let address = cluster::address_in(peer, address);
    fail_unless(peer.mbarriers.arrive(address, 0, peer));
}

#[track_caller]
pub(crate) fn mbarrier_wait(address: usize, parity: u32) {
    let (block, site) = (current::block(), Location::caller());
    if block.is_unwinding.get() || block.waits.is_left_out(site) {
        return;
    }
    fail_unless(block.mbarriers.with(address, |_| Ok(())));
    let call = MbarrierCall {
        site,
        address,
        parity,
    };
    // Others run first, and get as far as they can.
    current::thread().suspend(State::AtMbarrier(call));
}
