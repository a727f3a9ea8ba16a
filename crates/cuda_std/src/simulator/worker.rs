//! Runs clusters of blocks, one after the other, on one OS thread.

use super::block::{Block, State, Thread};
use super::cluster::open_cluster_barrier;
use super::coroutines::Coroutines;
use super::current::{self, Running};
use super::order::Turns;
use super::settle::{divergence, settle};
use super::shared_memory::{Overrun, SharedMemory};
use super::warp::complete_warp;
use super::watch::Watch;
use super::{BarrierSite, Fault, Launch, panic_hook};
use corosensei::stack::DefaultStack;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// What a worker needs and the next one can reuse.
#[derive(Default)]
struct Equipment {
    stacks: Vec<DefaultStack>,
    shared_memory: SharedMemory,
}

/// Equipment that no worker is using.
static SPARE: Mutex<Vec<Equipment>> = Mutex::new(Vec::new());

/// Runs clusters of one launch.
pub(super) struct Worker<'launch> {
    launch: &'launch Launch,
    /// By rank, as are their coroutines.
    blocks: Vec<Block>,
    coroutines: Vec<Coroutines>,
    watch: Arc<Watch>,
}

/// What a worker's blocks have used.
#[derive(Default)]
pub(super) struct Usage {
    pub barriers: Vec<(BarrierSite, u64)>,
    pub waits: Vec<(BarrierSite, u64)>,
    pub shared_bytes: usize,
    /// The barriers as they opened, in a block in which most of them did.
    pub openings: Vec<BarrierSite>,
}

impl<'launch> Worker<'launch> {
    pub fn new(launch: &'launch Launch) -> Self {
        let (mut blocks, mut coroutines) = (Vec::new(), Vec::new());
        let watch = Watch::begin(launch);
        for rank in 0..launch.cluster {
            let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Equipment {
                stacks,
                mut shared_memory,
            } = spare.unwrap_or_default();
            shared_memory.begin_launch(launch.dynamic_shared_bytes);
            let block = Block::new(launch, rank, shared_memory, Arc::clone(&watch));
            coroutines.push(Coroutines::new(block.threads.len(), stacks));
            blocks.push(block);
        }
        Self {
            launch,
            blocks,
            coroutines,
            watch,
        }
    }

    /// Puts the equipment back.
    pub fn finish(self) -> Usage {
        self.watch.end();
        let mut usage = Usage::default();
        for (block, coroutines) in self.blocks.into_iter().zip(self.coroutines) {
            let shared_memory = block.shared_memory.into_inner();
            let openings = block.barrier.most_openings();
            usage.barriers.extend(block.barrier.sites.into_passed());
            if openings.len() > usage.openings.len() {
                usage.openings = openings;
            }
            usage.waits.extend(block.waits.into_passed());
            usage.shared_bytes = usage.shared_bytes.max(shared_memory.most_bytes());
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            spare.push(Equipment {
                stacks: coroutines.into_stacks(),
                shared_memory,
            });
        }
        usage
    }

    /// Runs the cluster whose first block is number `first` of the grid.
    pub fn run(&mut self, first: u64, kernel: &(dyn Fn() + Sync)) -> Result<(), Fault> {
        let (blocks, coroutines) = (&self.blocks, &mut self.coroutines);
        let mut turns = Vec::new();
        for (block, number) in blocks.iter().zip(first..) {
            block.begin(number);
            let threads = block.threads.len() as u32;
            let Launch {
                order, order_until, ..
            } = *self.launch;
            turns.push(Turns::new(order, order_until, threads, number));
        }
        // SAFETY: the blocks outlive this call.
        let running = unsafe { Running::new(blocks) };
        // A panic in a simulated thread surfaces here, out of the resume of its coroutine.
        let result = catch_unwind(AssertUnwindSafe(|| {
            run_cluster(blocks, coroutines, &running, &mut turns, kernel)
        }));
        // From here on, on the worker's own stack, no thread can be suspended: neither by what a
        // panic's payload does when it is dropped, nor by unwinding.
        for block in blocks {
            block.is_unwinding.set(true);
        }
        let fault = match result {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(fault)) => fault,
            Err(payload) => fault_of(payload),
        };
        for (block, coroutines) in blocks.iter().zip(coroutines) {
            running.block(block);
            coroutines.unwind(|number| running.thread(&block.threads[number]));
        }
        Err(fault)
    }
}

/// Schedules the threads of a cluster's blocks until all have returned. One block runs as far ahead
/// of the others as barriers allow: this exposes what they must wait for.
fn run_cluster(
    blocks: &[Block],
    coroutines: &mut [Coroutines],
    running: &Running,
    turns: &mut [Turns],
    kernel: &(dyn Fn() + Sync),
) -> Result<(), Fault> {
    // The block that runs ahead is the one whose thread would be the first of both.
    let is_reversed = turns[0].first() != 0;
    loop {
        let mut has_run = false;
        for place in 0..blocks.len() {
            let rank = match is_reversed {
                false => place,
                true => blocks.len() - 1 - place,
            };
            let block = &blocks[rank];
            running.block(block);
            has_run |= run_block(
                block,
                &mut coroutines[rank],
                running,
                &mut turns[rank],
                kernel,
            )?;
        }
        let Some(left) = blocks.iter().find(|block| !block.has_ended()) else {
            return Ok(());
        };
        if has_run {
            continue;
        }
        if !open_cluster_barrier(blocks) {
            return Err(divergence(left));
        }
        left.watch.note_progress();
    }
}

/// Schedules the threads of a block until all have returned, or none can continue; returns whether
/// any has run.
fn run_block(
    block: &Block,
    coroutines: &mut Coroutines,
    running: &Running,
    turns: &mut Turns,
    kernel: &(dyn Fn() + Sync),
) -> Result<bool, Fault> {
    let mut has_run = false;
    block.watch.begin_block(block.index.get());
    loop {
        for group in turns.groups() {
            loop {
                for &number in group {
                    let thread = &block.threads[number as usize];
                    if thread.is_ready() {
                        has_run = true;
                        running.thread(thread);
                        run_thread(block, thread, coroutines, kernel)?;
                    }
                }
                // The lanes of a warp meet without the other warps, which it so runs ahead of.
                if !turns.by_warp() || !complete_warp(block, block.warp_of(group[0]))? {
                    break;
                }
            }
        }
        // What a thread has written far behind the end is seen here, when others have run, too.
        if let Some(overrun) = block.shared_memory.borrow().overrun_anywhere() {
            return Err(overrun_by(None, block, overrun));
        }
        if block.has_ended() || !settle(block, turns.first())? {
            return Ok(has_run);
        }
        turns.next_pass(block.barrier.openings());
    }
}

/// Runs the current thread until it waits or returns.
fn run_thread(
    block: &Block,
    thread: &Thread,
    coroutines: &mut Coroutines,
    kernel: &(dyn Fn() + Sync),
) -> Result<(), Fault> {
    if let Some(fault) = block
        .watch
        .begin_turn(thread.number, thread.last_wait.get())
    {
        return Err(fault);
    }
    // SAFETY: block and kernel outlive `Worker::run`, which unwinds every thread that has not
    // returned.
    let has_returned = unsafe { coroutines.resume(thread, kernel) };
    let has_returned = has_returned.map_err(|error| Fault::OutOfStacks {
        threads: block.threads.len() as u32,
        reason: error.to_string(),
    })?;
    if has_returned {
        thread.kept.end_thread();
        thread.state.set(State::Returned);
        block.watch.note_progress();
    }
    // The thread may have written to the shared memory of any block of its cluster.
    let nearby = |block: &Block| block.shared_memory.borrow().overrun_nearby();
    match current::cluster().iter().find_map(nearby) {
        None => Ok(()),
        Some(overrun) => Err(overrun_by(Some(thread), block, overrun)),
    }
}

/// The fault of a block that has written behind its shared memory: of this thread, or of one that
/// is not known.
fn overrun_by(thread: Option<&Thread>, block: &Block, overrun: Overrun) -> Fault {
    let Overrun { array, bytes, at } = overrun;
    Fault::SharedMemoryOverrun {
        block: block.index.get(),
        thread: thread.map(|thread| (thread.index, thread.place())),
        array,
        bytes,
        at,
    }
}

/// What a thread's panic means.
fn fault_of(payload: Box<dyn Any + Send>) -> Fault {
    let payload = match payload.downcast::<Fault>() {
        Ok(fault) => return *fault,
        Err(payload) => payload,
    };
    let message = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "(a value that is not text)".to_string()
    };
    // Whatever the payload does when it is dropped must not keep the threads from being unwound.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    panic_hook::fault(message, panic_hook::take_location())
}
