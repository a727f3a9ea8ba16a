//! Releases waiting threads of a block, and says which threads wait where if none can be released.

use super::block::{Awaits, Block, Condition, State, Thread};
use super::warp::complete_warp;
use super::{Fault, Place, WARP_SIZE, Waiting};
use std::ptr;

/// Releases threads that can continue. It is called when every ready thread has run and not all
/// have returned. If all threads are at the block's barrier, it releases them all; otherwise those
/// of one warp, or those that wait for one condition, searching from the thread `first` on. The
/// others stay suspended, so that the first threads run as far ahead of them as barriers allow,
/// which exposes a missing barrier.
///
/// Returns whether any thread can continue. If none can, each waits for another block of the
/// cluster, or for a thread that will never arrive.
///
/// # Errors
///
/// The threads of a warp or a warpgroup wait in an operation that a GPU cannot perform.
pub(super) fn settle(block: &Block, first: u32) -> Result<bool, Fault> {
    if block.barrier.open_if_complete(block.threads.len()) {
        block.make_all_ready();
        block.watchdog.note_progress();
        return Ok(true);
    }
    let (before, from_first) = block
        .threads
        .split_at((first / WARP_SIZE * WARP_SIZE) as usize);
    for part in [from_first, before] {
        for warp in part.chunks(WARP_SIZE as usize) {
            if complete_warp(block, warp)? {
                return Ok(true);
            }
        }
    }
    let (before, from_first) = block.threads.split_at(first as usize);
    // Neighbours often wait for the same event, which need not be tried again.
    let mut tried: Option<(&Condition, [usize; 2])> = None;
    for thread in from_first.iter().chain(before) {
        let Some(Awaits::Condition(condition, event)) = thread.call().map(|call| call.awaits)
        else {
            continue;
        };
        if tried.is_some_and(|(kind, other)| ptr::eq(kind, condition) && other == event) {
            continue;
        }
        if (condition.release)(block, event)? {
            block.watchdog.note_progress();
            return Ok(true);
        }
        tried = Some((condition, event));
    }
    let is_last = |thread: &&Thread| matches!(thread.state.get(), State::AfterOthers);
    if let Some(thread) = block.threads.iter().find(is_last) {
        thread.state.set(State::Ready);
        block.watchdog.note_progress();
        return Ok(true);
    }
    // A sleeping thread has run in this pass and is ready for the next one.
    Ok(block.threads.iter().any(Thread::is_ready))
}

/// The fault if no thread can continue: which threads wait where.
pub(super) fn divergence(block: &Block) -> Fault {
    let index = block.index.get();
    let in_warp = |thread: &&Thread| thread.warp_call().is_some();
    let Some(stuck) = block.threads.iter().find(in_warp) else {
        return Fault::DivergentBarrier {
            block: index,
            block_size: block.launch.block,
            threads: by_place(&block.threads),
        };
    };
    let warp = stuck.number / WARP_SIZE;
    let present = block.warp_of(stuck.number).len();
    let mut lanes = by_place(block.warp_of(stuck.number));
    for lane in lanes.iter_mut().flat_map(|group| &mut group.threads) {
        *lane %= WARP_SIZE;
    }
    if present < WARP_SIZE as usize {
        lanes.push(Waiting {
            place: Place::Missing,
            threads: (present as u32..WARP_SIZE).collect(),
        });
    }
    Fault::DivergentWarp {
        block: index,
        warp,
        lanes,
    }
}

/// Groups threads that wait, or have returned, by where they are.
fn by_place(threads: &[Thread]) -> Vec<Waiting> {
    let mut groups: Vec<Waiting> = Vec::new();
    for thread in threads {
        let place = thread.place();
        match groups.iter_mut().find(|group| group.place == place) {
            Some(group) => group.threads.push(thread.number),
            None => groups.push(Waiting {
                place,
                threads: vec![thread.number],
            }),
        }
    }
    groups
}
