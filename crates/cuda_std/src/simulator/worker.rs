//! Runs clusters of blocks, one after the other, on one OS thread.

use super::block::{Block, State, Thread};
use super::cluster::open_cluster_barrier;
use super::coroutines::Coroutines;
use super::current::{self, Running};
use super::order::Schedule;
use super::settle::{divergence, settle};
use super::shared_memory::{Overrun, SharedMemory, Static};
use super::shared_static::note_statics;
use super::warp::complete_warp;
use super::watchdog::Watchdog;
use super::{BarrierSite, Fault, Launch, panic_hook};
use corosensei::stack::DefaultStack;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// Stacks and memory of a block, which the next worker can reuse.
#[derive(Default)]
struct Resources {
    stacks: Vec<DefaultStack>,
    shared_memory: SharedMemory,
}

/// Resources that no worker uses.
static SPARE: Mutex<Vec<Resources>> = Mutex::new(Vec::new());

/// Runs clusters of one launch.
pub(super) struct Worker<'launch> {
    launch: &'launch Launch,
    /// By rank, as are their coroutines.
    blocks: Vec<Block>,
    coroutines: Vec<Coroutines>,
    watchdog: Arc<Watchdog>,
}

/// What the blocks of a worker have used.
#[derive(Default)]
pub(super) struct Usage {
    pub barriers: Vec<(BarrierSite, u64)>,
    pub waits: Vec<(BarrierSite, u64)>,
    pub shared_bytes: usize,
    /// The barriers in the order in which they opened, in the block with the most openings.
    pub openings: Vec<BarrierSite>,
}

impl<'launch> Worker<'launch> {
    pub fn new(launch: &'launch Launch, statics: &[Static]) -> Self {
        let (mut blocks, mut coroutines) = (Vec::new(), Vec::new());
        let watchdog = Watchdog::begin(launch);
        for rank in 0..launch.cluster {
            let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Resources {
                stacks,
                mut shared_memory,
            } = spare.unwrap_or_default();
            shared_memory.begin_launch(launch.dynamic_shared_bytes, statics);
            let block = Block::new(launch, rank, shared_memory, Arc::clone(&watchdog));
            coroutines.push(Coroutines::new(block.threads.len(), stacks));
            blocks.push(block);
        }
        Self {
            launch,
            blocks,
            coroutines,
            watchdog,
        }
    }

    /// Returns its resources to [`SPARE`].
    pub fn finish(self) -> Usage {
        self.watchdog.end();
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
            spare.push(Resources {
                stacks: coroutines.into_stacks(),
                shared_memory,
            });
        }
        usage
    }

    /// Runs the cluster whose first block is number `first` of the grid. If a thread has written
    /// far behind shared memory, and others have run before that was noticed, the cluster runs
    /// again, to find the thread: the launch fails in any case.
    pub fn run(&mut self, first: u64, kernel: &(dyn Fn() + Sync)) -> Result<(), Fault> {
        let result = self.run_once::<false>(first, kernel);
        let Err(Fault::SharedMemoryOverrun { thread: None, .. }) = &result else {
            return result;
        };
        match self.run_once::<true>(first, kernel) {
            Err(overrun @ Fault::SharedMemoryOverrun { .. }) => Err(overrun),
            _ => result,
        }
    }

    /// `CHECKS_FAR` is whether all guarded memory is checked after each run of a thread.
    fn run_once<const CHECKS_FAR: bool>(
        &mut self,
        first: u64,
        kernel: &(dyn Fn() + Sync),
    ) -> Result<(), Fault> {
        let (blocks, coroutines) = (&self.blocks, &mut self.coroutines);
        let mut schedules = Vec::new();
        for (block, number) in blocks.iter().zip(first..) {
            block.begin(number);
            let threads = block.threads.len() as u32;
            let Launch {
                order, order_until, ..
            } = *self.launch;
            schedules.push(Schedule::new(order, order_until, threads, number));
        }
        // SAFETY: the blocks outlive this call.
        let running = unsafe { Running::new(blocks) };
        // A panic in a simulated thread surfaces here, out of the resume of its coroutine.
        let result = catch_unwind(AssertUnwindSafe(|| {
            run_cluster::<CHECKS_FAR>(blocks, coroutines, &running, &mut schedules, kernel)
        }));
        // The worker's own stack cannot be suspended, so from here on calls that wait return at
        // once: the drop of a panic's payload, and destructors of threads, may contain some.
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
/// of the others as barriers allow, which exposes barriers that are missing.
fn run_cluster<const CHECKS_FAR: bool>(
    blocks: &[Block],
    coroutines: &mut [Coroutines],
    running: &Running,
    schedules: &mut [Schedule],
    kernel: &(dyn Fn() + Sync),
) -> Result<(), Fault> {
    // If the last thread of a block runs ahead, so does the last block of a cluster.
    let is_reversed = schedules[0].first() != 0;
    loop {
        let mut has_run = false;
        for place in 0..blocks.len() {
            let rank = match is_reversed {
                false => place,
                true => blocks.len() - 1 - place,
            };
            let block = &blocks[rank];
            running.block(block);
            has_run |= run_block::<CHECKS_FAR>(
                block,
                &mut coroutines[rank],
                running,
                &mut schedules[rank],
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
        left.watchdog.note_progress();
    }
}

/// Schedules the threads of a block until all have returned, or none can continue; returns whether
/// any has run.
fn run_block<const CHECKS_FAR: bool>(
    block: &Block,
    coroutines: &mut Coroutines,
    running: &Running,
    schedule: &mut Schedule,
    kernel: &(dyn Fn() + Sync),
) -> Result<bool, Fault> {
    let mut has_run = false;
    block.watchdog.begin_block(block.index.get());
    loop {
        let memory = || block.shared_memory.borrow_mut();
        if schedule.at_once {
            memory().begin_at_once();
        }
        for group in schedule.groups() {
            loop {
                for &number in group {
                    let thread = &block.threads[number as usize];
                    if thread.is_ready() {
                        has_run = true;
                        running.thread(thread);
                        run_thread::<CHECKS_FAR>(block, thread, coroutines, kernel)?;
                        if schedule.at_once {
                            memory().take_back();
                        }
                    }
                }
                // Completing the warp's operations lets it run ahead of the other warps.
                if !schedule.by_warp() || !complete_warp(block, block.warp_of(group[0]))? {
                    break;
                }
            }
        }
        if schedule.at_once {
            memory().end_at_once();
        }
        // Other threads have run since, so which thread wrote far past the end is not known yet.
        if let Some(overrun) = memory().overrun_anywhere() {
            return Err(overrun_by(None, block, overrun));
        }
        if block.has_ended() || !settle(block, schedule.first())? {
            return Ok(has_run);
        }
        schedule.next_pass(block.barrier.openings());
    }
}

/// Runs the current thread until it waits or returns.
fn run_thread<const CHECKS_FAR: bool>(
    block: &Block,
    thread: &Thread,
    coroutines: &mut Coroutines,
    kernel: &(dyn Fn() + Sync),
) -> Result<(), Fault> {
    if let Some(fault) = block
        .watchdog
        .begin_thread(thread.number, thread.last_wait.get())
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
        thread.extensions.end_thread();
        thread.state.set(State::Returned);
        block.watchdog.note_progress();
    }
    // The thread may have written to the shared memory of any block of its cluster.
    let overrun = |block: &Block| {
        let memory = block.shared_memory.borrow();
        match CHECKS_FAR {
            true => memory.overrun_anywhere(),
            false => memory.overrun_nearby(),
        }
    };
    if let Some(overrun) = current::cluster().iter().find_map(overrun) {
        return Err(overrun_by(Some(thread), block, overrun));
    }
    note_statics(block, thread, Static::is_written)
}

/// The fault of writing behind the block's shared memory, by this thread or by an unknown one.
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

/// The fault that a thread's panic carries, or is.
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
    // A payload that panics when it is dropped must not keep the threads from being unwound.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    panic_hook::fault(message, panic_hook::take_location())
}
