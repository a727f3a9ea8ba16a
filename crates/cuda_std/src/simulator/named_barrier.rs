//! Barriers of some of a block's threads, by their numbers.

use super::block::{Block, State};
use super::{Fault, Place, WARP_SIZE, current};
use std::panic::Location;

/// A thread's call of [`named_barrier`](crate::thread::named_barrier).
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedBarrierCall {
    pub(super) site: &'static Location<'static>,
    number: u32,
    threads: u32,
}

impl NamedBarrierCall {
    pub fn place(self) -> Place {
        Place::Waits {
            function: "named_barrier",
            site: self.site.into(),
            mask: None,
        }
    }
}

/// Waits for `threads` threads at the barrier of this number.
#[track_caller]
pub(crate) fn named_barrier(number: u32, threads: u32) {
    let (block, thread) = (current::block(), current::thread());
    let site = Location::caller();
    if block.is_unwinding.get() || block.waits.is_left_out(site) {
        return;
    }
    if !(1..16).contains(&number) || threads == 0 || !threads.is_multiple_of(WARP_SIZE) {
        current::fail(Fault::InvalidWarpOperation {
            block: block.index.get(),
            thread: thread.index,
            site: site.into(),
            problem: format!(
                "named_barrier({number}, {threads}): its number must be from 1 to 15, its threads a multiple of 32."
            ),
        });
    }
    thread.suspend(State::AtNamedBarrier(NamedBarrierCall {
        site,
        number,
        threads,
    }));
}

/// Opens a barrier at which as many threads are as it is for; returns whether there was one.
pub(super) fn open_named_barrier(block: &Block) -> bool {
    let calls = || {
        block
            .threads
            .iter()
            .filter_map(|thread| match thread.state.get() {
                State::AtNamedBarrier(call) => Some((thread, call)),
                _ => None,
            })
    };
    let at = |number| calls().filter(move |(_, call)| call.number == number);
    let complete = calls().find(|(_, call)| at(call.number).count() == call.threads as usize);
    let Some((_, call)) = complete else {
        return false;
    };
    for (thread, _) in at(call.number) {
        thread.state.set(State::Ready);
    }
    true
}
