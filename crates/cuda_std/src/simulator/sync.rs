//! The functions by which a thread waits for others of its block.

use super::block::{Awaits, Block, Call, Condition, State, Thread};
use super::site::CallSite;
use super::{Fault, WARP_SIZE, current};
use std::panic::Location;

/// Waits for all threads of the block; returns in how many of them `predicate` is not 0. Without
/// waiting a reducing barrier would have no result, so the launch can leave out others only.
fn wait(
    function: &'static str,
    location: &'static Location<'static>,
    predicate: Option<u32>,
) -> u32 {
    let Some((block, thread)) = current::running() else {
        return 0;
    };
    if predicate.is_none() && block.barrier.sites.is_left_out(location) {
        return 0;
    }
    let site = CallSite { function, location };
    block.barrier.arrive(site, predicate.unwrap_or(0));
    let awaits = Awaits::Block;
    thread.suspend(State::Waits(Call { site, awaits }));
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

/// Lets the block's other threads run.
#[track_caller]
pub(crate) fn let_others_run() {
    if current::running().is_some() {
        current::wait("nanosleep", Awaits::Turn);
    }
}

/// Waits for `threads` threads at the barrier of this number.
#[track_caller]
pub(crate) fn named_barrier(number: u32, threads: u32) {
    if current::waits_here().is_none() {
        return;
    }
    if !(1..16).contains(&number) || threads == 0 || !threads.is_multiple_of(WARP_SIZE) {
        current::refuse_operation(format!(
            "named_barrier({number}, {threads}): its number must be from 1 to 15, its threads a multiple of 32."
        ));
    }
    let numbers = [number, threads].map(|number| number as usize);
    current::wait("named_barrier", Awaits::Condition(&NAMED_BARRIER, numbers));
}

/// The opening of a named barrier, by its number and the number of its threads.
static NAMED_BARRIER: Condition = Condition {
    release: open_named_barrier,
};

fn open_named_barrier(block: &Block, _: &Thread, numbers: [usize; 2]) -> Result<bool, Fault> {
    let [number, threads] = numbers;
    let arrived = || {
        let waiting = block.awaiting(&NAMED_BARRIER);
        waiting.filter(move |(_, [other, _])| *other == number)
    };
    let is_complete = arrived().count() == threads;
    if is_complete {
        arrived().for_each(|(thread, _)| thread.state.set(State::Ready));
    }
    Ok(is_complete)
}
