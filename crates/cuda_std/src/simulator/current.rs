//! The simulated thread that this OS thread is running, and what it can query about itself.

use super::block::{Awaits, Block, Call, State, Thread};
use super::site::CallSite;
use super::{Dim3, Fault, WARP_SIZE};
use std::cell::Cell;
use std::panic::{Location, resume_unwind};
use std::ptr;

thread_local! {
    /// Null outside of a launch.
    static THREAD: Cell<*const Thread> = const { Cell::new(ptr::null()) };
    static BLOCK: Cell<*const Block> = const { Cell::new(ptr::null()) };
    static CLUSTER: Cell<*const [Block]> = const { Cell::new(NO_BLOCKS) };
}

const NO_BLOCKS: *const [Block] = ptr::slice_from_raw_parts(ptr::null(), 0);

/// A guard: while it lives, this OS thread runs threads of a cluster's blocks.
pub(super) struct Running {
    previous: (*const Thread, *const Block, *const [Block]),
}

impl Running {
    /// Makes `cluster` the current one.
    ///
    /// # Safety
    ///
    /// The blocks, and each passed to [`Self::block`], outlive the guard.
    pub unsafe fn new(cluster: &[Block]) -> Self {
        Self {
            previous: (THREAD.get(), BLOCK.get(), CLUSTER.replace(cluster)),
        }
    }

    /// Makes `block`, one of the cluster, the current one.
    pub fn block(&self, block: &Block) {
        BLOCK.set(block);
    }

    /// Makes `thread`, one of the current block, the current one.
    #[inline]
    pub fn thread(&self, thread: &Thread) {
        THREAD.set(thread);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        THREAD.set(self.previous.0);
        BLOCK.set(self.previous.1);
        CLUSTER.set(self.previous.2);
    }
}

/// Whether this OS thread is running a simulated thread.
pub(super) fn is_simulated() -> bool {
    !THREAD.get().is_null()
}

#[inline]
#[track_caller]
pub(super) fn thread<'a>() -> &'a Thread {
    // SAFETY: set by `Running`, which the thread outlives, and simulated code runs only while it
    // lives.
    unsafe { THREAD.get().as_ref() }.unwrap_or_else(|| outside_of_a_launch())
}

#[inline]
#[track_caller]
pub(super) fn block<'a>() -> &'a Block {
    // SAFETY: as in `thread`.
    unsafe { BLOCK.get().as_ref() }.unwrap_or_else(|| outside_of_a_launch())
}

/// The blocks of the current cluster, by rank.
#[inline]
#[track_caller]
pub(super) fn cluster<'a>() -> &'a [Block] {
    // SAFETY: as in `thread`.
    match unsafe { CLUSTER.get().as_ref() } {
        Some(cluster) => cluster,
        None => outside_of_a_launch(),
    }
}

#[cold]
#[track_caller]
fn outside_of_a_launch() -> ! {
    panic!(
        "this is a function for kernels, called outside of a launch; run the kernel with \
         cuda_std::simulator::Launch or on a GPU"
    )
}

/// Ends the current thread, and thereby the launch.
pub(super) fn fail(fault: Fault) -> ! {
    // Not `panic!`: there is nothing to print, the launch returns the fault.
    resume_unwind(Box::new(fault))
}

#[inline]
#[track_caller]
pub(crate) fn thread_index() -> Dim3 {
    thread().index
}

#[inline]
#[track_caller]
pub(crate) fn block_index() -> Dim3 {
    block().index.get()
}

#[inline]
#[track_caller]
pub(crate) fn block_size() -> Dim3 {
    block().launch.block
}

#[inline]
#[track_caller]
pub(crate) fn grid_size() -> Dim3 {
    block().launch.grid
}

/// The current thread's lane in its warp.
#[inline]
#[track_caller]
pub(crate) fn lane() -> u32 {
    thread().number % WARP_SIZE
}

/// The current block and thread; `None` while the stacks of the block's threads are unwound: then
/// the functions that a kernel calls have no effect.
#[inline]
#[track_caller]
pub(super) fn running<'a>() -> Option<(&'a Block, &'a Thread)> {
    let block = block();
    (!block.is_unwinding.get()).then(|| (block, thread()))
}

/// The same; `None` also if the launch leaves out the wait or fence at the caller's place.
#[inline]
#[track_caller]
pub(super) fn waits_here<'a>() -> Option<(&'a Block, &'a Thread)> {
    let location = Location::caller(); // not within a closure, which has a caller of its own
    let (block, thread) = running()?;
    if block.waits.is_left_out(location) {
        return None;
    }
    block.waits.note_passed(location);
    Some((block, thread))
}

/// Lets the current thread wait in this function, at the caller's place.
#[track_caller]
pub(super) fn wait(function: &'static str, awaits: Awaits) {
    let site = CallSite::here(function);
    thread().suspend(State::Waits(Call { site, awaits }));
}

/// Ends the launch: no GPU can perform the current thread's copy at the caller's place.
#[track_caller]
pub(super) fn refuse_copy(problem: String) -> ! {
    fail(Fault::InvalidCopy {
        block: block().index.get(),
        thread: thread().index,
        site: Location::caller().into(),
        problem,
    })
}

/// The value, if there is no problem; otherwise as [`refuse_copy`].
#[track_caller]
pub(super) fn or_fail<T>(copied: Result<T, String>) -> T {
    match copied {
        Ok(value) => value,
        Err(problem) => refuse_copy(problem),
    }
}

/// Ends the launch: the current thread calls this function, at the caller's place, in a way that is
/// undefined on a GPU.
#[track_caller]
pub(super) fn refuse_operation(function: &'static str, problem: String) -> ! {
    let site = CallSite::here(function);
    fail(invalid_operation(block(), thread(), site, problem))
}

/// The fault of a thread whose call is undefined on a GPU. The problem continues a sentence that
/// begins with the function.
pub(super) fn invalid_operation(
    block: &Block,
    thread: &Thread,
    site: CallSite,
    problem: String,
) -> Fault {
    Fault::InvalidWarpOperation {
        block: block.index.get(),
        thread: thread.index,
        site: site.location.into(),
        problem: format!("{}() {problem}", site.function),
    }
}

/// Whether `pointer` points into the block's shared memory.
#[track_caller]
pub(crate) fn is_shared(pointer: *const u8) -> bool {
    block().shared_memory.borrow().contains(pointer, 1)
}

/// Whether `pointer` points into the current thread's stack.
#[track_caller]
pub(crate) fn is_local(pointer: *const u8) -> bool {
    thread().stack.get().contains(pointer.addr())
}

/// Fails if the launch has more than `max_threads` threads a block; 0 allows any number.
#[track_caller]
pub(crate) fn check_launch_bounds(max_threads: u32) {
    let block_size = block().launch.block;
    if max_threads > 0 && block_size.count() > u64::from(max_threads) {
        fail(Fault::LaunchBounds {
            max_threads,
            block_size,
        });
    }
}

/// Fails if the grid is not divided evenly among clusters of these extents.
#[track_caller]
pub(crate) fn check_cluster_dim(x: u32, y: u32, z: u32) {
    let grid = block().launch.grid;
    if !(grid.x.is_multiple_of(x) && grid.y.is_multiple_of(y) && grid.z.is_multiple_of(z)) {
        fail(Fault::InvalidLaunch(format!(
            "A grid of {grid} is not a multiple of the kernel's clusters of ({x}, {y}, {z}) blocks."
        )));
    }
}
