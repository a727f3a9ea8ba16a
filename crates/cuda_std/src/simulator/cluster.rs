//! The blocks of a cluster: how they reach each other, and the barrier of their threads.

use super::block::{Awaits, Block, State, Thread};
use super::current;

/// The block of this rank, if there is one whose threads have not all ended: its shared memory is
/// another block's then.
pub(super) fn peer<'a>(rank: u32) -> Result<&'a Block, String> {
    let cluster = current::cluster();
    match cluster.get(rank as usize) {
        None => Err(format!(
            "of a cluster of {} blocks, which has no block {rank}.",
            cluster.len()
        )),
        Some(block) if block.has_ended() => {
            Err(format!("of block {rank} of the cluster, which has ended."))
        }
        Some(block) => Ok(block),
    }
}

/// The address in another block's shared memory of what this address of the current block is.
pub(super) fn address_in(peer: &Block, address: usize) -> usize {
    let offset = current::block()
        .shared_memory
        .borrow()
        .offset(std::ptr::without_provenance(address));
    peer.shared_memory.borrow().at(offset).addr()
}

/// Waits for all threads of the cluster.
#[track_caller]
pub(crate) fn cluster_barrier() {
    if current::waits_here().is_some() {
        current::wait("cluster::sync_threads", Awaits::Cluster);
    }
}

/// Opens the cluster's barrier if all its threads that have not returned are there; returns whether
/// it did.
pub(super) fn open_cluster_barrier(blocks: &[Block]) -> bool {
    let threads = || blocks.iter().flat_map(|block| &block.threads);
    let has_arrived = |thread: &Thread| match thread.state.get() {
        State::Waits(call) => matches!(call.awaits, Awaits::Cluster),
        state => matches!(state, State::Returned),
    };
    if !threads().all(has_arrived) {
        return false;
    }
    for thread in threads() {
        if !matches!(thread.state.get(), State::Returned) {
            thread.state.set(State::Ready);
        }
    }
    true
}

/// The current block's place in its cluster, and the number of the cluster's blocks.
#[track_caller]
pub(crate) fn cluster_place() -> (u32, u32) {
    (current::block().rank, current::cluster().len() as u32)
}

/// The address of `shared` in the shared memory of another block of the cluster.
#[track_caller]
pub(crate) fn shared_of(shared: *mut u8, rank: u32) -> *mut u8 {
    let Some((block, _)) = current::running() else {
        return shared;
    };
    let peer = current::or_fail(peer(rank));
    let offset = block.shared_memory.borrow().offset_within(shared);
    let offset = current::or_fail(offset);
    peer.shared_memory.borrow().at(offset)
}
