//! A block of simulated threads: what each thread is doing, and when waiting threads may
//! continue.

use super::barrier::Barrier;
use super::call::{Awaits, Call, WarpCall};
use super::mbarrier::Mbarriers;
use super::mma::Registers;
use super::pipeline::{PendingCopies, Waits};
use super::shared_memory::SharedMemory;
use super::tma::PendingStores;
use super::warpgroup::PendingProducts;
use super::watch::Watch;
use super::{BarrierSite, Dim3, Launch, Place, WARP_SIZE};
use corosensei::Yielder;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;

/// What a simulated thread is doing.
#[derive(Clone, Copy, Debug)]
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
    /// Asynchronous copies that it has issued and not waited for.
    pub pending_copies: RefCell<PendingCopies>,
    /// Stores of boxes that it has issued and not waited for.
    pub stores: RefCell<PendingStores>,
    /// The multiplications of its warpgroup that it has issued and not waited for.
    pub products: RefCell<PendingProducts>,
    /// Switches back to the worker; valid while the thread's coroutine runs or is suspended.
    pub yielder: Cell<*const Yielder<(), ()>>,
    /// The addresses of the stack that it runs on.
    pub stack: Cell<StackAddresses>,
}

/// Where a stack lies: at `limit` and above, below `base`.
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
    pub fn warp_call(&self) -> Option<(Call, WarpCall)> {
        match self.call()? {
            call @ Call {
                awaits: Awaits::Warp(of_warp),
                ..
            } => Some((call, of_warp)),
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
            self.last_wait.set(Some(call.site));
        }
        // SAFETY: this is the running thread, so its coroutine set the yielder and has not
        // returned.
        unsafe { &*self.yielder.get() }.suspend(());
    }
}

/// The state that the threads of a block share.
pub(super) struct Block {
    pub index: Cell<Dim3>,
    pub watch: Arc<Watch>,
    /// Its place in its cluster.
    pub rank: u32,
    pub size: Dim3,
    pub grid: Dim3,
    /// Barriers that the launch leaves out.
    pub left_out: Vec<BarrierSite>,
    pub threads: Vec<Thread>,
    pub barrier: Barrier,
    pub mbarriers: Mbarriers,
    pub waits: Waits,
    /// Whether stores of the copy engine read as early as they may, and not as late.
    pub stores_read_early: bool,
    /// Whether a thread that ends a phase of a barrier lets the others run first.
    pub arrivals_yield: bool,
    /// The addresses that asynchronous copies may read: all if `None`.
    pub readable_by_copies: Option<Vec<Range<usize>>>,
    pub shared_memory: RefCell<SharedMemory>,
    /// Set while the stacks of suspended threads are unwound: their destructors must not wait for
    /// anyone.
    pub is_unwinding: Cell<bool>,
}

impl Block {
    /// A block of this launch, at this place in its cluster.
    pub fn new(launch: &Launch, rank: u32, shared_memory: SharedMemory, watch: Arc<Watch>) -> Self {
        let (grid, size) = (launch.grid, launch.block);
        let threads = (0..size.count() as u32).map(|number| Thread {
            index: size.place(u64::from(number)),
            number,
            state: Cell::new(State::Ready),
            last_wait: Cell::new(None),
            warp_answer: Cell::new(0),
            fragments: Cell::default(),
            pending_copies: RefCell::default(),
            stores: RefCell::default(),
            products: RefCell::default(),
            yielder: Cell::new(ptr::null()),
            stack: Cell::default(),
        });
        Self {
            index: Cell::new(grid.place(0)),
            watch,
            rank,
            size,
            grid,
            left_out: launch.barriers_left_out.clone(),
            threads: threads.collect(),
            barrier: Barrier::default(),
            mbarriers: Mbarriers::default(),
            waits: Waits::new(&launch.waits_left_out),
            stores_read_early: launch.order.stores_read_early(),
            arrivals_yield: launch.order.arrivals_yield(),
            readable_by_copies: launch.readable_by_copies.clone(),
            shared_memory: RefCell::new(shared_memory),
            is_unwinding: Cell::new(false),
        }
    }

    /// Resets the state to block number `number` of the grid, before its first thread runs.
    pub fn begin(&self, number: u64) {
        self.index.set(self.grid.place(number));
        self.is_unwinding.set(false);
        self.barrier.begin_block();
        self.mbarriers.begin_block();
        self.shared_memory.borrow_mut().begin_block();
        self.make_all_ready();
        for thread in &self.threads {
            thread.pending_copies.borrow_mut().drop_all();
            thread.stores.borrow_mut().drop_all();
            thread.last_wait.set(None);
            thread.products.borrow_mut().drop_all();
        }
    }

    pub fn make_all_ready(&self) {
        for thread in &self.threads {
            thread.state.set(State::Ready);
        }
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
}
