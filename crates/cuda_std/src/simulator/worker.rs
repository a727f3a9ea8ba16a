//! Runs blocks, one after the other, on one OS thread.

use super::block::{Block, State};
use super::coroutines::Coroutines;
use super::current::{self, Running};
use super::order::Turns;
use super::shared_memory::SharedMemory;
use super::{BarrierSite, Fault, Launch, panic_hook};
use corosensei::stack::DefaultStack;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// What a worker needs and the next one can reuse.
#[derive(Default)]
struct Equipment {
    stacks: Vec<DefaultStack>,
    shared_memory: SharedMemory,
}

/// Equipment that no worker is using.
static SPARE: Mutex<Vec<Equipment>> = Mutex::new(Vec::new());

/// Runs blocks of one launch.
pub(super) struct Worker<'launch> {
    launch: &'launch Launch,
    block: Block,
    coroutines: Coroutines,
}

/// What a worker's blocks have used.
pub(super) struct Usage {
    pub barriers: Vec<(BarrierSite, u64)>,
    pub waits: Vec<(BarrierSite, u64)>,
    pub shared_bytes: usize,
}

impl<'launch> Worker<'launch> {
    pub fn new(launch: &'launch Launch) -> Self {
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Equipment {
            stacks,
            mut shared_memory,
        } = spare.unwrap_or_default();
        shared_memory.begin_launch(launch.dynamic_shared_bytes);
        let block = Block::new(launch, shared_memory);
        Self {
            launch,
            coroutines: Coroutines::new(block.threads.len(), stacks),
            block,
        }
    }

    /// Puts the equipment back.
    pub fn finish(self) -> Usage {
        let shared_memory = self.block.shared_memory.into_inner();
        let usage = Usage {
            barriers: self.block.barrier.openings(),
            waits: self.block.waits.passed(),
            shared_bytes: shared_memory.most_bytes(),
        };
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(Equipment {
            stacks: self.coroutines.into_stacks(),
            shared_memory,
        });
        usage
    }

    /// Runs block number `number` of the grid.
    pub fn run(&mut self, number: u64, kernel: &(dyn Fn() + Sync)) -> Result<(), Fault> {
        let (block, coroutines) = (&self.block, &mut self.coroutines);
        block.begin(number);
        let turns = Turns::new(self.launch.order, block.threads.len() as u32, number);
        // SAFETY: the block outlives this call.
        let running = unsafe { Running::new(block) };
        // A panic in a simulated thread surfaces here, out of the resume of its coroutine.
        let result = catch_unwind(AssertUnwindSafe(|| {
            run_threads(block, coroutines, &running, turns, kernel)
        }));
        // From here on, on the worker's own stack, no thread can be suspended: neither by what a
        // panic's payload does when it is dropped, nor by unwinding.
        block.is_unwinding.set(true);
        let fault = match result {
            Ok(Ok(())) => match block.shared_memory.borrow().overrun() {
                None => return Ok(()),
                Some((bytes, at)) => {
                    let block = block.index.get();
                    return Err(Fault::SharedMemoryOverrun { block, bytes, at });
                }
            },
            Ok(Err(fault)) => fault,
            Err(payload) => fault_of(payload, block),
        };
        coroutines.unwind(|number| running.thread(&block.threads[number]));
        Err(fault)
    }
}

/// Schedules the threads of a block until all have returned.
fn run_threads(
    block: &Block,
    coroutines: &mut Coroutines,
    running: &Running,
    mut turns: Turns,
    kernel: &(dyn Fn() + Sync),
) -> Result<(), Fault> {
    let mut left = block.threads.len();
    loop {
        for &number in turns.threads() {
            let thread = &block.threads[number as usize];
            if !matches!(thread.state.get(), State::Ready) {
                continue;
            }
            running.thread(thread);
            // SAFETY: block and kernel outlive `Worker::run`, which unwinds every thread that has
            // not returned.
            let has_returned = unsafe { coroutines.resume(thread, kernel) };
            let has_returned = has_returned.map_err(|error| Fault::OutOfStacks {
                threads: block.threads.len() as u32,
                reason: error.to_string(),
            })?;
            if has_returned {
                thread.stores.borrow_mut().write_all(block);
                thread.state.set(State::Returned);
                left -= 1;
            }
        }
        if left == 0 {
            return Ok(());
        }
        let first = turns.threads().first().copied().unwrap_or(0);
        block.settle(first)?;
        turns.next_pass();
    }
}

/// What a thread's panic means.
fn fault_of(payload: Box<dyn Any + Send>, block: &Block) -> Fault {
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
    Fault::Panic {
        block: block.index.get(),
        thread: current::thread().index,
        message,
        location: panic_hook::take_location(),
    }
}
