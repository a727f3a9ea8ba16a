//! A block of simulated threads: what each thread is doing, and when waiting threads may
//! continue.

use super::barrier::{Barrier, BarrierCall};
use super::cluster::ClusterCall;
use super::mbarrier::{MbarrierCall, Mbarriers};
use super::mma::Registers;
use super::named_barrier::{NamedBarrierCall, open_named_barrier};
use super::pipeline::{PendingCopies, Waits};
use super::shared_memory::SharedMemory;
use super::tma::PendingStores;
use super::warp::{WarpCall, complete_warp};
use super::warpgroup::{PendingProducts, WarpgroupCall, complete_warpgroup};
use super::watch::Watch;
use super::{BarrierSite, Dim3, Fault, Launch, Place, WARP_SIZE, Waiting};
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
    /// The same, after it has let the others run.
    Asleep(&'static Location<'static>),
    /// It waits for all threads of the block.
    AtBarrier(BarrierCall),
    /// It waits for lanes of its warp.
    InWarp(WarpCall),
    /// It waits for the threads of its warpgroup.
    InWarpgroup(WarpgroupCall),
    /// It waits for a phase of a barrier in shared memory.
    AtMbarrier(MbarrierCall),
    /// It waits for some threads of the block.
    AtNamedBarrier(NamedBarrierCall),
    /// It waits for all threads of the cluster.
    AtClusterBarrier(ClusterCall),
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

impl State {
    /// Where the thread waits.
    fn site(self) -> Option<&'static Location<'static>> {
        match self {
            Self::Asleep(site) => Some(site),
            Self::AtBarrier(call) => Some(call.site),
            Self::InWarp(call) => Some(call.site),
            Self::InWarpgroup(call) => Some(call.site),
            Self::AtMbarrier(call) => Some(call.site),
            Self::AtNamedBarrier(call) => Some(call.site),
            Self::AtClusterBarrier(call) => Some(call.site),
            Self::Ready | Self::AfterOthers | Self::Returned => None,
        }
    }
}

impl Thread {
    /// Whether it runs when it is scheduled.
    #[inline]
    pub fn is_ready(&self) -> bool {
        matches!(self.state.get(), State::Ready | State::Asleep(_))
    }

    /// Where it waits, or that it has returned.
    pub fn place(&self) -> Place {
        match self.state.get() {
            State::AtBarrier(call) => call.place(),
            State::InWarp(call) => call.place(),
            State::InWarpgroup(call) => call.place(),
            State::AtMbarrier(call) => call.place(),
            State::AtNamedBarrier(call) => call.place(),
            State::AtClusterBarrier(call) => call.place(),
            State::Asleep(site) => Place::Waits {
                function: "nanosleep",
                site: site.into(),
                mask: None,
            },
            State::Returned | State::Ready | State::AfterOthers => Place::Returned,
        }
    }

    /// Yields to the worker, and returns when the worker resumes this thread.
    #[inline]
    pub fn suspend(&self, state: State) {
        self.state.set(state);
        if let Some(site) = state.site() {
            self.last_wait.set(Some(site));
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

    fn make_all_ready(&self) {
        for thread in &self.threads {
            thread.state.set(State::Ready);
        }
    }

    /// Releases the threads that can continue. It is called when every ready thread has run and
    /// not all have returned. If all threads are at the block's barrier it releases the block,
    /// otherwise one warp, searching from the warp of `first` on. The other threads stay
    /// suspended, so that the first warp runs as far ahead of them as barriers allow: this
    /// exposes a missing barrier.
    ///
    /// Returns whether any thread can continue; if not, each waits for another block of the
    /// cluster, or for a thread that will never arrive.
    ///
    /// # Errors
    ///
    /// What the threads of a warp or a warpgroup wait in is nothing that a GPU can do.
    pub fn settle(&self, first: u32) -> Result<bool, Fault> {
        if self.barrier.open_if_complete(self.threads.len()) {
            self.make_all_ready();
            self.watch.note_progress();
            return Ok(true);
        }
        let (before, from_first) = self
            .threads
            .split_at((first / WARP_SIZE * WARP_SIZE) as usize);
        for part in [from_first, before] {
            for warp in part.chunks(WARP_SIZE as usize) {
                if complete_warp(self, warp)? {
                    return Ok(true);
                }
            }
        }
        if complete_warpgroup(self)?
            || open_named_barrier(self)
            || self.mbarriers.settle(self, first)
        {
            self.watch.note_progress();
            return Ok(true);
        }
        let is_last = |thread: &&Thread| matches!(thread.state.get(), State::AfterOthers);
        if let Some(thread) = self.threads.iter().find(is_last) {
            thread.state.set(State::Ready);
            self.watch.note_progress();
            return Ok(true);
        }
        // A sleeping thread has run in this pass and is ready for the next pass.
        Ok(self.threads.iter().any(Thread::is_ready))
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

    /// Says which threads wait where, if none can continue.
    pub fn divergence(&self) -> Fault {
        let block = self.index.get();
        let in_warp = |thread: &&Thread| matches!(thread.state.get(), State::InWarp(_));
        let Some(stuck) = self.threads.iter().find(in_warp) else {
            return Fault::DivergentBarrier {
                block,
                block_size: self.size,
                threads: by_place(&self.threads),
            };
        };
        let warp = stuck.number / WARP_SIZE;
        let present = self.warp_of(stuck.number).len();
        let mut lanes = by_place(self.warp_of(stuck.number));
        for lane in lanes.iter_mut().flat_map(|group| &mut group.threads) {
            *lane %= WARP_SIZE;
        }
        if present < WARP_SIZE as usize {
            lanes.push(Waiting {
                place: Place::Missing,
                threads: (present as u32..WARP_SIZE).collect(),
            });
        }
        Fault::DivergentWarp { block, warp, lanes }
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
