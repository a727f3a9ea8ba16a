//! Barriers in shared memory, and the loads that arrive at them.

use super::block::{Block, State, Thread};
use super::call::Awaits;
use super::tma::Load;
use super::{cluster, current};
use std::cell::RefCell;
use std::collections::BTreeMap;

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

impl Mbarriers {
    pub fn begin_block(&self) {
        self.0.borrow_mut().clear();
    }

    /// Lets the loads of a phase land that has all it needs. Returns whether the phase of this
    /// parity has ended, then or before.
    fn end_if_possible(&self, address: usize, parity: u32, block: &Block) -> bool {
        let mut barriers = self.0.borrow_mut();
        let Some(barrier) = barriers.get_mut(&address) else {
            return false;
        };
        if !barrier.has_ended(parity) {
            end_if_complete(barrier, block);
        }
        barrier.has_ended(parity)
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
            end_if_complete(barrier, block);
            barrier.loads.push(load);
            Ok(())
        })
    }

    /// Announces bytes, and arrives. Returns whether the phase may end.
    fn arrive(&self, address: usize, bytes: u32, block: &Block) -> Result<bool, String> {
        self.with(address, |barrier| {
            end_if_complete(barrier, block);
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

/// Makes the threads ready that wait for a phase which has ended, or that can end: those of one
/// barrier, searching from the thread `first` on. Returns whether there were any.
pub(super) fn settle_mbarriers(block: &Block, first: u32) -> bool {
    let (before, from_first) = block.threads.split_at(first as usize);
    let calls = || {
        let threads = from_first.iter().chain(before);
        threads.filter_map(|thread| match thread.call()?.awaits {
            Awaits::Mbarrier { address, parity } => Some((thread, (address, parity % 2))),
            _ => None,
        })
    };
    let can_end = |&(_, (address, parity)): &(&Thread, (usize, u32))| {
        block.mbarriers.end_if_possible(address, parity, block)
    };
    let Some((_, ended)) = calls().find(can_end) else {
        return false;
    };
    for (thread, _) in calls().filter(|&(_, phase)| phase == ended) {
        thread.state.set(State::Ready);
    }
    true
}

/// Ends the current phase if it has all it needs: what it waits for lands.
fn end_if_complete(barrier: &mut Mbarrier, block: &Block) {
    if barrier.may_end() {
        for load in barrier.end() {
            load.land(block);
        }
    }
}

#[track_caller]
pub(crate) fn mbarrier_init(address: usize, arrivals: u32) {
    let Some((block, _)) = current::running() else {
        return;
    };
    let is_shared = block
        .shared_memory
        .borrow()
        .contains(std::ptr::without_provenance(address), 8);
    current::unless_refused(match is_shared && address.is_multiple_of(8) {
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
    let Some((block, thread)) = current::running() else {
        return;
    };
    let may_end = current::unless_refused(block.mbarriers.arrive(address, bytes, block));
    if may_end && block.arrivals_yield {
        thread.suspend(State::AfterOthers);
    }
}

/// Arrives at another block's barrier.
#[track_caller]
pub(crate) fn mbarrier_arrive_at(address: usize, rank: u32) {
    if current::running().is_none() {
        return;
    }
    let peer = current::unless_refused(cluster::peer(rank));
    let address = cluster::address_in(peer, address);
    current::unless_refused(peer.mbarriers.arrive(address, 0, peer));
}

#[track_caller]
pub(crate) fn mbarrier_wait(address: usize, parity: u32) {
    if let Some((block, _)) = current::waits_here() {
        current::unless_refused(block.mbarriers.with(address, |_| Ok(())));
        // Others run first, and get as far as they can.
        current::wait("mbarrier::wait", Awaits::Mbarrier { address, parity });
    }
}
