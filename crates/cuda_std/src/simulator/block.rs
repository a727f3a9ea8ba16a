//! A block of simulated threads: what each thread is doing, and what it waits for.

use super::barrier::Barrier;
use super::extensions::Extensions;
use super::mma::Registers;
use super::shared_memory::SharedMemory;
use super::site::{CallSite, Sites};
use super::warp_operation::WarpCall;
use super::watchdog::Watchdog;
use super::{Dim3, Fault, Launch, Place, WARP_SIZE};
use corosensei::Yielder;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;

/// What a simulated thread is doing.
#[derive(Clone, Copy)]
pub(super) enum State {
    /// It is ready and runs when it is scheduled.
    Ready,
    /// It waits in a call.
    Waits(Call),
    /// It waits while the others get as far as they can: for its own stores, or because it has
    /// ended a phase that they may wait for.
    AfterOthers,
    Returned,
}

/// A thread's call of a function that waits.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub site: CallSite,
    pub awaits: Awaits,
}

/// What a thread waits for.
#[derive(Clone, Copy)]
pub(super) enum Awaits {
    /// Nothing but that the others have run.
    Turn,
    /// All threads of the block.
    Block,
    /// Lanes of its warp.
    Warp(WarpCall),
    /// All threads of the cluster.
    Cluster,
    /// Something else, which these numbers name.
    Condition(&'static Condition, [usize; 2]),
}

/// A kind of events that threads wait for.
pub(super) struct Condition {
    /// Is called when no thread can run, with the numbers that name an event. If the event has
    /// happened, or can happen now, it makes all threads ready that wait for it, and returns true.
    pub release: fn(&Block, [usize; 2]) -> Result<bool, Fault>,
}

impl Call {
    pub fn place(self) -> Place {
        Place::Waits {
            function: self.site.function,
            site: self.site.location.into(),
            mask: match self.awaits {
                Awaits::Warp(call) => Some(call.mask),
                _ => None,
            },
        }
    }
}

/// One simulated thread.
pub(super) struct Thread {
    pub index: Dim3,
    /// Its number in the block: along x, then y, then z.
    pub number: u32,
    pub state: Cell<State>,
    /// Where it has waited last.
    pub last_wait: Cell<Option<&'static Location<'static>>>,
    /// The result of the warp operation that it waited in.
    pub warp_answer: Cell<u32>,
    /// Its fragments of A, B and C while it waits in a multiplication of matrices, and then the
    /// sums in place of C. When it loads matrices, the address of its row is the first of A.
    pub fragments: Cell<[Registers; 3]>,
    pub extensions: Extensions,
    /// Switches back to the worker; valid while the thread's coroutine runs or is suspended.
    pub yielder: Cell<*const Yielder<(), ()>>,
    /// The addresses of the stack that it runs on.
    pub stack: Cell<StackAddresses>,
}

/// The addresses of a stack: from `limit` up to `base`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StackAddresses {
    pub limit: usize,
    pub base: usize,
}

impl StackAddresses {
    pub fn contains(self, address: usize) -> bool {
        (self.limit..self.base).contains(&address)
    }
}

impl Thread {
    /// The call that it waits in, if it waits in one.
    #[inline]
    pub fn call(&self) -> Option<Call> {
        match self.state.get() {
            State::Waits(call) => Some(call),
            _ => None,
        }
    }

    /// The same, if it waits for lanes of its warp.
    #[inline]
    pub fn warp_call(&self) -> Option<(CallSite, WarpCall)> {
        let call = self.call()?;
        match call.awaits {
            Awaits::Warp(of_warp) => Some((call.site, of_warp)),
            _ => None,
        }
    }

    /// The same, if it waits for a condition of this kind.
    pub fn call_awaiting(&self, kind: &'static Condition) -> Option<(CallSite, [usize; 2])> {
        let call = self.call()?;
        match call.awaits {
            Awaits::Condition(other, numbers) if ptr::eq(kind, other) => Some((call.site, numbers)),
            _ => None,
        }
    }

    /// Whether it runs when it is scheduled.
    #[inline]
    pub fn is_ready(&self) -> bool {
        match self.state.get() {
            State::Ready => true,
            State::Waits(call) => matches!(call.awaits, Awaits::Turn),
            State::AfterOthers | State::Returned => false,
        }
    }

    /// Where it waits, or that it has returned.
    pub fn place(&self) -> Place {
        self.call().map_or(Place::Returned, Call::place)
    }

    /// Yields to the worker, and returns when the worker resumes this thread.
    #[inline]
    pub fn suspend(&self, state: State) {
        self.state.set(state);
        if let State::Waits(call) = state {
            self.last_wait.set(Some(call.site.location));
        }
        // SAFETY: this is the running thread, so its coroutine set the yielder and has not
        // returned.
        unsafe { &*self.yielder.get() }.suspend(());
    }
}

/// The state that the threads of a block share.
pub(super) struct Block {
    pub index: Cell<Dim3>,
    pub watchdog: Arc<Watchdog>,
    /// Its place in its cluster.
    pub rank: u32,
    pub launch: Launch,
    pub threads: Vec<Thread>,
    pub barrier: Barrier,
    /// Waits other than for the block's barrier.
    pub waits: Sites,
    pub shared_memory: RefCell<SharedMemory>,
    pub extensions: Extensions,
    /// Set while the stacks of suspended threads are unwound: their destructors must not wait for
    /// anyone.
    pub is_unwinding: Cell<bool>,
}

impl Block {
    /// A block of this launch, at this place in its cluster.
    pub fn new(
        launch: &Launch,
        rank: u32,
        shared_memory: SharedMemory,
        watchdog: Arc<Watchdog>,
    ) -> Self {
        let size = launch.block;
        let threads = (0..size.count() as u32).map(|number| Thread {
            index: size.place(u64::from(number)),
            number,
            state: Cell::new(State::Ready),
            last_wait: Cell::new(None),
            warp_answer: Cell::new(0),
            fragments: Cell::default(),
            extensions: Extensions::default(),
            yielder: Cell::new(ptr::null()),
            stack: Cell::default(),
        });
        Self {
            index: Cell::new(launch.grid.place(0)),
            watchdog,
            rank,
            launch: launch.clone(),
            threads: threads.collect(),
            barrier: Barrier::new(&launch.barriers_left_out),
            waits: Sites::new(&launch.waits_left_out),
            shared_memory: RefCell::new(shared_memory),
            extensions: Extensions::default(),
            is_unwinding: Cell::new(false),
        }
    }

    /// Resets the state to block number `number` of the grid, before its first thread runs.
    pub fn begin(&self, number: u64) {
        self.index.set(self.launch.grid.place(number));
        self.is_unwinding.set(false);
        self.barrier.begin_block();
        self.extensions.begin_block();
        self.shared_memory.borrow_mut().begin_block();
        self.make_all_ready();
        for thread in &self.threads {
            thread.extensions.begin_block();
            thread.last_wait.set(None);
        }
    }

    pub fn make_all_ready(&self) {
        for thread in &self.threads {
            thread.state.set(State::Ready);
        }
    }

    /// The threads that wait for a condition of this kind, and the numbers that name it.
    pub fn awaiting(
        &self,
        kind: &'static Condition,
    ) -> impl Iterator<Item = (&Thread, [usize; 2])> {
        let threads = self.threads.iter();
        threads.filter_map(move |thread| Some((thread, thread.call_awaiting(kind)?.1)))
    }

    /// The warp that this thread is in.
    pub fn warp_of(&self, thread: u32) -> &[Thread] {
        let first = (thread / WARP_SIZE * WARP_SIZE) as usize;
        let end = self.threads.len().min(first + WARP_SIZE as usize);
        &self.threads[first..end]
    }

    /// Whether all threads have returned.
    pub fn has_ended(&self) -> bool {
        let returned = |thread: &Thread| matches!(thread.state.get(), State::Returned);
        self.threads.iter().all(returned)
    }

    /// Whether all bytes that an asynchronous copy reads are in one memory that the launch lets
    /// such copies read.
    pub fn copies_may_read(&self, global: usize, bytes: usize) -> bool {
        let Some(memories) = &self.launch.readable_by_copies else {
            return true;
        };
        let contains = |memory: &Range<usize>| {
            global >= memory.start && global <= memory.end && bytes <= memory.end - global
        };
        bytes == 0 || memories.iter().any(contains)
    }
}
