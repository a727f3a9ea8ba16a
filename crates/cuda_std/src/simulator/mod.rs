//! Runs kernels on a CPU, one coroutine for each GPU thread.
//!
//! ```text
//!   Launch::run
//!     |                     blocks are handed out in ascending order
//!     +-- worker 0 -------- block 0 --------------------- block 2 ---------- ...
//!     +-- worker 1 -------- block 1 ------------- block 3 ------------------ ...
//!            |
//!            |  one block on one worker (an OS thread of rayon's pool)
//!            v
//!     thread 0   #####|              ####|             ##.       # runs  | waits at a barrier
//!     thread 1        |####|             |####|          ##.     . returns
//!     thread 2             |####|             |####|       ##.
//!                               ^                  ^
//!                all have arrived: the barrier opens, the next pass begins
//! ```
//!
//! A simulated thread has a stack of its own and runs until it reaches a barrier or returns; then
//! the worker resumes the next one. Threads of a block therefore never run at the same time, and
//! always in the same order, so a run can be repeated exactly. That order can be chosen
//! ([`ThreadOrder`]): a kernel that lacks a barrier gives different results in different orders, and
//! [`Launch::run_in_all_orders`] finds the barriers between which it is missing.
//! Shared memory is the worker's, filled with the byte 0xFF (a NaN in every float format) as a
//! block first touches it. Asynchronous copies ([`pipeline`](crate::pipeline)) are performed as
//! late as a GPU may perform them.
//!
//! What is undefined on a GPU is a [`Fault`] here: a barrier that only some threads reach, a warp
//! operation that not all of its lanes reach, an asynchronous copy that is not aligned or reads
//! what the launch does not let it read, more shared memory than there is. A panic in a thread,
//! for example an index out of bounds, is a fault too. The first fault ends the launch; of
//! several, the one in the lowest block is reported.
//!
//! Not simulated: races that show in no order, such as updates that are lost when several threads
//! add to one word without atomics (in shared memory they show in [`ThreadOrder::AtOnce`], which is
//! not for every kernel), the order of memory accesses between blocks, caches, timing. Each thread has 256 KiB of stack; one that needs more ends the process, as any stack
//! overflow does.
//!
//! ```
//! use cuda_std::simulator::Launch;
//! use cuda_std::thread;
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! let sum = AtomicU32::new(0);
//! let report = Launch::new(4, 64).run(|| {
//!     sum.fetch_add(thread::index_1d(), Ordering::Relaxed);
//! })?;
//! assert_eq!(sum.into_inner(), 255 * 256 / 2);
//! assert_eq!(report.blocks, 4);
//! # Ok::<(), cuda_std::simulator::Fault>(())
//! ```

// A file imports only files of the groups above its own, or of its own group in the order below.
mod dim3;
mod extensions;
mod groups;
mod mma;
mod order;
mod site;
mod warp_operation;

mod barrier;
mod launch;
mod shared_memory;

mod fault;
mod watchdog;

mod block;

mod coroutines;
mod current;

mod cluster;
mod panic_hook;
mod shared_static;
mod sync;
mod warp;

mod mbarrier;
mod pipeline;
mod tma;
mod warpgroup;

mod settle;
mod worker;

mod run;

mod all_orders;

pub use dim3::Dim3;
pub use fault::{Fault, Place, Waiting};
pub use launch::Launch;
pub use order::ThreadOrder;
pub use run::{Report, cpu_threads};
#[doc(hidden)]
pub use shared_static::{NamedStatic, SharedStatic};
pub use site::BarrierSite;

pub(crate) use cluster::{cluster_barrier, cluster_place, shared_of};
pub(crate) use current::{
    block_index, block_size, check_cluster_dim, check_launch_bounds, grid_size, is_local,
    is_shared, lane, thread_index,
};
pub(crate) use mbarrier::{
    mbarrier_arrive, mbarrier_arrive_at, mbarrier_init, mbarrier_wait, mbarrier_wait_turn,
};
pub(crate) use mma::{Float8, Integer8, Multiplication, Products, Registers};
pub(crate) use pipeline::{commit_copies, copy_async, wait_for_copies};
pub(crate) use shared_static::{
    dynamic_shared_bytes, dynamic_shared_memory, shared_bytes, shared_offset,
};
pub(crate) use site::CallSite;
pub(crate) use sync::{
    barrier, barrier_and, barrier_count, barrier_or, let_others_run, named_barrier,
};
pub(crate) use tma::{
    tma_commit, tma_fence, tma_load, tma_load_multicast, tma_store, tma_wait, tma_wait_read,
};
pub(crate) use warp::{load_matrices, multiply, store_matrices, warp_exchange};
pub(crate) use warp_operation::WarpOperation;
pub(crate) use warpgroup::{
    Operand, warpgroup_commit, warpgroup_fence, warpgroup_multiply, warpgroup_wait,
};

/// Threads of a warp.
pub(crate) const WARP_SIZE: u32 = 32;
