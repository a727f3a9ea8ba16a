//! Barriers in shared memory, and the loads that arrive at them.

use super::block::{Awaits, Block, Condition, State};
use super::extensions::Extension;
use super::shared_memory::SharedMemory;
use super::{Fault, cluster, current};
use std::collections::BTreeMap;

/// A load that has been issued and has not landed.
pub(super) trait Load {
    fn bytes(&self) -> usize;

    /// Writes what it brings.
    fn land(&self, memory: &mut SharedMemory);
}

/// A barrier in its current phase.
#[derive(Default)]
struct Mbarrier {
    /// The number of arrivals in a phase, and how many of them the current phase still lacks.
    arrivals: u32,
    pending_arrivals: u32,
    /// The bytes that were announced for the current phase, and the loads that bring them.
    expected_bytes: usize,
    loads: Vec<Box<dyn Load>>,
    /// The number of phases that have ended.
    ended: u64,
}

impl Mbarrier {
    fn bytes_on_their_way(&self) -> usize {
        self.loads.iter().map(|load| load.bytes()).sum()
    }

    /// Whether all threads have arrived and all bytes are on their way. Then the phase may end; it
    /// ends as late as possible, when a thread waits for it or the next phase is used.
    fn may_end(&self) -> bool {
        self.pending_arrivals == 0 && self.bytes_on_their_way() == self.expected_bytes
    }

    fn has_ended(&self, parity: usize) -> bool {
        self.ended % 2 != (parity % 2) as u64
    }

    /// Ends the current phase, and lets its loads land, if it may end.
    fn end_if_complete(&mut self, block: &Block) {
        if self.may_end() {
            self.pending_arrivals = self.arrivals;
            self.expected_bytes = 0;
            self.ended += 1;
            let mut memory = block.shared_memory.borrow_mut();
            for load in self.loads.drain(..) {
                load.land(&mut memory);
            }
        }
    }
}

/// The barriers of a block, by their addresses.
#[derive(Default)]
struct Mbarriers(BTreeMap<usize, Mbarrier>);

impl Extension for Mbarriers {
    fn begin_block(&mut self) {
        self.0.clear();
    }
}

/// Applies `change` to the block's barrier at `address`.
fn with<T>(
    block: &Block,
    address: usize,
    change: impl FnOnce(&mut Mbarrier) -> Result<T, String>,
) -> Result<T, String> {
    match block.extensions.get::<Mbarriers>().0.get_mut(&address) {
        Some(barrier) => change(barrier),
        None => Err("there is no barrier that was initialized.".to_owned()),
    }
}

/// Adds a load to the current phase of the block's barrier at `address`.
pub(super) fn expect(block: &Block, address: usize, load: Box<dyn Load>) -> Result<(), String> {
    with(block, address, |barrier| {
        barrier.end_if_complete(block);
        barrier.loads.push(load);
        Ok(())
    })
}

/// Announces bytes and arrives. Returns whether the phase may end.
fn arrive(block: &Block, address: usize, bytes: u32) -> Result<bool, String> {
    with(block, address, |barrier| {
        barrier.end_if_complete(block);
        barrier.pending_arrivals = barrier.pending_arrivals.checked_sub(1).ok_or_else(|| {
            format!(
                "more than {} arrivals in a phase that still lacks bytes: {} were announced, {} are on their way.",
                barrier.arrivals,
                barrier.expected_bytes,
                barrier.bytes_on_their_way()
            )
        })?;
        barrier.expected_bytes += bytes as usize;
        Ok(barrier.may_end())
    })
}

/// The end of a phase, which the barrier's address and the parity name.
static PHASE_END: Condition = Condition { release: end_phase };

fn end_phase(block: &Block, phase: [usize; 2]) -> Result<bool, Fault> {
    let [address, parity] = phase;
    let has_ended = with(block, address, |barrier| {
        if !barrier.has_ended(parity) {
            barrier.end_if_complete(block);
        }
        Ok(barrier.has_ended(parity))
    });
    if has_ended != Ok(true) {
        return Ok(false);
    }
    for (thread, other) in block.awaiting(&PHASE_END) {
        if other == phase {
            thread.state.set(State::Ready);
        }
    }
    Ok(true)
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
    current::or_fail(match is_shared && address.is_multiple_of(8) {
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
        pending_arrivals: arrivals,
        ..Mbarrier::default()
    };
    block
        .extensions
        .get::<Mbarriers>()
        .0
        .insert(address, barrier);
}

/// Announces bytes and arrives. If that ends the phase, threads that wait for it may run before
/// this one continues, which exposes work that should have come before the arrival.
#[track_caller]
pub(crate) fn mbarrier_arrive(address: usize, bytes: u32) {
    let Some((block, thread)) = current::running() else {
        return;
    };
    let may_end = current::or_fail(arrive(block, address, bytes));
    if may_end && block.launch.order.arrivals_yield() {
        thread.suspend(State::AfterOthers);
    }
}

/// Arrives at another block's barrier.
#[track_caller]
pub(crate) fn mbarrier_arrive_at(address: usize, rank: u32) {
    if current::running().is_none() {
        return;
    }
    let peer = current::or_fail(cluster::peer(rank));
    let address = cluster::address_in(peer, address);
    current::or_fail(arrive(peer, address, 0));
}

#[track_caller]
pub(crate) fn mbarrier_wait(address: usize, parity: u32) {
    if current::waits_here().is_some() {
        mbarrier_wait_turn(address, parity);
    }
}

#[track_caller]
pub(crate) fn mbarrier_wait_turn(address: usize, parity: u32) {
    if let Some((block, _)) = current::running() {
        current::or_fail(with(block, address, |_| Ok(())));
        let phase = [address, parity as usize % 2];
        current::wait("mbarrier::wait", Awaits::Condition(&PHASE_END, phase));
    }
}
