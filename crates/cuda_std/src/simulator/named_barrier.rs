//! Barriers of some of a block's threads, by their numbers.

use super::block::{Block, State};
use super::call::Awaits;
use super::{WARP_SIZE, current};

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
    current::wait("named_barrier", Awaits::NamedBarrier { number, threads });
}

/// Opens a barrier at which as many threads are as it is for; returns whether there was one.
pub(super) fn open_named_barrier(block: &Block) -> bool {
    let calls = || {
        let threads = block.threads.iter();
        threads.filter_map(|thread| match thread.call()?.awaits {
            Awaits::NamedBarrier { number, threads } => Some((thread, number, threads)),
            _ => None,
        })
    };
    let at = |number| calls().filter(move |call| call.1 == number);
    let complete = calls().find(|&(_, number, threads)| at(number).count() == threads as usize);
    let Some((_, number, _)) = complete else {
        return false;
    };
    for (thread, ..) in at(number) {
        thread.state.set(State::Ready);
    }
    true
}
