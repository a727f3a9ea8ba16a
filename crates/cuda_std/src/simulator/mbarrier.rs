//! Barriers in shared memory, and the loads that arrive at them.

use super::block::{Awaits, Block, Condition, State, Thread};
use super::kept::Keep;
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
    /// Arrivals that end a phase, and how many the current one lacks.
    arrivals: u32,
    missing: u32,
    /// Bytes that have been announced, and what brings them.
    announced: usize,
    loads: Vec<Box<dyn Load>>,
    /// Phases that have ended.
    ended: u64,
}

impl Mbarrier {
    fn bytes_on_their_way(&self) -> usize {
        self.loads.iter().map(|load| load.bytes()).sum()
    }

    /// Whether all have arrived and all bytes are on their way: the phase may end, and ends as soon
    /// as someone must know.
    fn may_end(&self) -> bool {
        self.missing == 0 && self.bytes_on_their_way() == self.announced
    }

    fn has_ended(&self, parity: usize) -> bool {
        self.ended % 2 != (parity % 2) as u64
    }

    /// Ends the current phase if it has all it needs: what it waits for lands.
    fn end_if_complete(&mut self, block: &Block) {
        if self.may_end() {
            self.missing = self.arrivals;
            self.announced = 0;
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

impl Keep for Mbarriers {
    fn begin_block(&mut self) {
        self.0.clear();
    }
}

/// What `change` makes of the block's barrier there.
fn with<T>(
    block: &Block,
    address: usize,
    change: impl FnOnce(&mut Mbarrier) -> Result<T, String>,
) -> Result<T, String> {
    match block.kept.get::<Mbarriers>().0.get_mut(&address) {
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

/// Announces bytes, and arrives. Returns whether the phase may end.
fn arrive(block: &Block, address: usize, bytes: u32) -> Result<bool, String> {
    with(block, address, |barrier| {
        barrier.end_if_complete(block);
        barrier.missing = barrier.missing.checked_sub(1).ok_or_else(|| {
            format!(
                "more than {} arrivals in a phase that still lacks bytes: {} were announced, {} are on their way.",
                barrier.arrivals,
                barrier.announced,
                barrier.bytes_on_their_way()
            )
        })?;
        barrier.announced += bytes as usize;
        Ok(barrier.may_end())
    })
}

/// A phase of the barrier at an address has ended: the one of a parity.
static PHASE_END: Condition = Condition { release: end_phase };

fn end_phase(block: &Block, _: &Thread, phase: [usize; 2]) -> Result<bool, Fault> {
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
        ..Mbarrier::default()
    };
    block.kept.get::<Mbarriers>().0.insert(address, barrier);
}

/// Announces bytes, and arrives. If that ends the phase, threads that wait for it may run before
/// this one continues: this exposes what should have come before the arrival.
#[track_caller]
pub(crate) fn mbarrier_arrive(address: usize, bytes: u32) {
    let Some((block, thread)) = current::running() else {
        return;
    };
    let may_end = current::unless_refused(arrive(block, address, bytes));
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
    let peer = current::unless_refused(cluster::peer(rank));
    let address = cluster::address_in(peer, address);
    current::unless_refused(arrive(peer, address, 0));
}

#[track_caller]
pub(crate) fn mbarrier_wait(address: usize, parity: u32) {
    if let Some((block, _)) = current::waits_here() {
        current::unless_refused(with(block, address, |_| Ok(())));
        // Others run first, and get as far as they can.
        let phase = [address, parity as usize % 2];
        current::wait("mbarrier::wait", Awaits::Condition(&PHASE_END, phase));
    }
}
