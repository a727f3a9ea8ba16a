//! The functions by which a thread waits for others of its block.

use super::block::{Awaits, Block, Call, Condition, State};
use super::site::CallSite;
use super::{Fault, WARP_SIZE, current};

/// Waits for all threads of the block; returns in how many of them `predicate` is not 0. Without
/// waiting a reducing barrier would have no result, so the launch can leave out others only.
fn wait(site: CallSite, predicate: Option<u32>) -> u32 {
    let Some((block, thread)) = current::running() else {
        return 0;
    };
    if predicate.is_none() && block.barrier.sites.is_left_out(site.location) {
        return 0;
    }
    block.barrier.arrive(site, predicate.unwrap_or(0));
    let awaits = Awaits::Block;
    thread.suspend(State::Waits(Call { site, awaits }));
    // No other barrier can have opened: it would have waited for this thread.
    block.barrier.answer.get()
}

#[track_caller]
pub(crate) fn barrier() {
    wait(CallSite::here("sync_threads"), None);
}

#[track_caller]
pub(crate) fn barrier_count(predicate: u32) -> u32 {
    wait(CallSite::here("sync_threads_count"), Some(predicate))
}

#[track_caller]
pub(crate) fn barrier_and(predicate: u32) -> u32 {
    let nonzero = wait(CallSite::here("sync_threads_and"), Some(predicate));
    u32::from(nonzero as usize == current::block().threads.len())
}

#[track_caller]
pub(crate) fn barrier_or(predicate: u32) -> u32 {
    let nonzero = wait(CallSite::here("sync_threads_or"), Some(predicate));
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
        let problem = format!(
            "of {threads} threads with number {number}; the threads must be a multiple of 32, the number from 1 to 15."
        );
        current::refuse_operation("named_barrier", problem);
    }
    let numbers = [number, threads].map(|number| number as usize);
    current::wait("named_barrier", Awaits::Condition(&NAMED_BARRIER, numbers));
}

/// The opening of a named barrier, by its number and the number of its threads.
static NAMED_BARRIER: Condition = Condition {
    release: open_named_barrier,
};

fn open_named_barrier(block: &Block, numbers: [usize; 2]) -> Result<bool, Fault> {
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
