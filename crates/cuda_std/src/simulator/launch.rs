//! The shape of a launch, and how to run it.

use super::{BarrierSite, Dim3, ThreadOrder};
use std::ops::Range;
use std::time::Duration;

/// A launch of a kernel on the simulator: the shape of its grid and blocks, and how to run it.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(super) grid: Dim3,
    pub(super) block: Dim3,
    /// Blocks of a cluster, along x.
    pub(super) cluster: u32,
    pub(super) dynamic_shared_bytes: usize,
    pub(super) order: ThreadOrder,
    /// The opening of a block's barrier with which the order ends: the threads run forward from
    /// there on.
    pub(super) order_until: usize,
    pub(super) barriers_left_out: Vec<BarrierSite>,
    pub(super) waits_left_out: Vec<BarrierSite>,
    /// The addresses that asynchronous copies may read: all if `None`.
    pub(super) readable_by_copies: Option<Vec<Range<usize>>>,
    pub(super) time_limit: Duration,
}

impl Launch {
    /// A launch of `grid` blocks of `block` threads each.
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self {
            grid: grid.into(),
            block: block.into(),
            cluster: 1,
            dynamic_shared_bytes: 0,
            order: ThreadOrder::default(),
            order_until: usize::MAX,
            barriers_left_out: Vec::new(),
            waits_left_out: Vec::new(),
            readable_by_copies: None,
            time_limit: Duration::from_secs(60),
        }
    }

    /// Makes every `blocks` blocks along x a cluster, which run at the same time; without this call,
    /// each block is one of its own, whatever the kernel's `cluster_dim`.
    pub fn cluster(mut self, blocks: u32) -> Self {
        self.cluster = blocks;
        self
    }

    /// Gives each block this many bytes of dynamic shared memory; without this call, none.
    pub fn dynamic_shared_bytes(mut self, bytes: usize) -> Self {
        self.dynamic_shared_bytes = bytes;
        self
    }

    /// Runs the threads of a block in this order; without this call, forward.
    pub fn thread_order(mut self, order: ThreadOrder) -> Self {
        self.order = order;
        self
    }

    /// Lets asynchronous copies read only these memories: any other byte that one reads is a
    /// [`Fault::InvalidCopy`](super::Fault::InvalidCopy). Without this call, they may read whatever
    /// the kernel can.
    ///
    /// A GPU stops such a read only where it has no memory at all.
    pub fn readable_by_copies(
        mut self,
        memories: impl IntoIterator<Item = Range<*const u8>>,
    ) -> Self {
        let addresses = |memory: Range<*const u8>| memory.start.addr()..memory.end.addr();
        self.readable_by_copies = Some(memories.into_iter().map(addresses).collect());
        self
    }

    /// Ends the launch if a block makes no progress for so long; without this call, for a minute.
    /// It makes progress if a thread ends, or comes past a wait, except `nanosleep` and those for
    /// lanes of its warp.
    ///
    /// So a loop of barriers makes progress for ever.
    ///
    /// If the threads sleep, or wait for lanes of their warp, again and again, that is a
    /// [`Fault::NoProgress`](super::Fault::NoProgress). A thread that loops without waiting cannot
    /// be stopped, so the process is aborted, after a sentence that names block, thread and the
    /// line of its last wait.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Makes the `sync_threads()` at this place do nothing, for tests that a missing barrier is
    /// detected.
    ///
    /// The reducing barriers (`sync_threads_count` and the like) are not affected: without
    /// waiting they have no result to return.
    ///
    /// # Safety
    ///
    /// The kernel is sound without it, as far as this launch goes: what it reads too early may be
    /// wrong, but it is no address, index or reference.
    pub unsafe fn without_barrier(mut self, site: BarrierSite) -> Self {
        self.barriers_left_out.push(site);
        self
    }

    /// Makes the `pipeline::wait_prior()` at this place do nothing, for tests that a missing wait
    /// is detected.
    ///
    /// # Safety
    ///
    /// As for [`Launch::without_barrier`]; and what is copied outlives the launch.
    pub unsafe fn without_wait(mut self, site: BarrierSite) -> Self {
        self.waits_left_out.push(site);
        self
    }
}
