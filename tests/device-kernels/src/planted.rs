//! Kernels that are wrong on purpose. If a checker misses these errors, its silence elsewhere
//! shows nothing. Each is launched with one CTA of 64 threads on 64 words.

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::prelude::*;
use cuda_std::{shared_array, warp};

#[cfg(not(cuda_device))]
use crate::probe::ProbeFn;

/// Every planted error: its entry point, the kernel, and the tool of `compute-sanitizer` that
/// must find it, if any.
#[cfg(not(cuda_device))]
pub static PLANTED: &[(&str, ProbeFn, Option<&str>)] = &[
    (
        "writes_out_of_bounds",
        writes_out_of_bounds,
        Some("memcheck"),
    ),
    ("misses_a_barrier", misses_a_barrier, Some("racecheck")),
    (
        "reads_uninitialized_memory",
        reads_uninitialized_memory,
        Some("initcheck"),
    ),
    ("leaves_itself_out", leaves_itself_out, Some("synccheck")),
    (
        "misses_an_mbarrier_wait",
        misses_an_mbarrier_wait,
        Some("racecheck"),
    ),
    ("overwrites_a_stage", overwrites_a_stage, Some("racecheck")),
    ("waits_in_a_branch", waits_in_a_branch, None),
    ("panics", panics, None),
    ("asserts", asserts, None),
];

/// The last thread writes far beyond the output.
#[kernel]
pub unsafe fn writes_out_of_bounds(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(if i == 63 { 1 << 24 } else { i }) = input[i];
}

/// Reads words that another thread writes, without a barrier between.
#[kernel]
pub unsafe fn misses_a_barrier(input: &[u32], output: *mut u32) {
    let staged = shared_array![u32; 64];
    let i = thread::thread_idx_x() as usize;
    *staged.add(i) = input[i];
    *output.add(i) = *staged.add(63 - i);
}

/// Reads the output, which no thread has written.
#[kernel]
pub unsafe fn reads_uninitialized_memory(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = (*output.add(63 - i)).wrapping_add(input[i]);
}

/// Half of each warp waits at a warp barrier whose mask leaves it out.
#[kernel]
pub unsafe fn leaves_itself_out(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = input[i];
    warp::sync_warp(0x0000_FFFF);
}

/// The second warp reads the stage without waiting until the first has filled it.
#[kernel]
pub unsafe fn misses_an_mbarrier_wait(input: &[u32], output: *mut u32) {
    hand_over::<false, true>(input, output);
}

/// The first warp fills the stage a second time without waiting until it has been read.
#[kernel]
pub unsafe fn overwrites_a_stage(input: &[u32], output: *mut u32) {
    hand_over::<true, false>(input, output);
}

/// The first warp passes 32 words to the second, which mirrors them, and then 32 more, through one
/// stage. The first barrier of a round tells when the stage is full, the second when it is empty.
#[inline(always)]
unsafe fn hand_over<const WAITS_UNTIL_FULL: bool, const WAITS_UNTIL_EMPTY: bool>(
    input: &[u32],
    output: *mut u32,
) {
    let stage = shared_array![u32; 32];
    let full = shared_array![Mbarrier; 2];
    let empty = shared_array![Mbarrier; 2];
    let (warp, lane) = (thread::thread_idx_x() / 32, warp::lane_id() as usize);
    if thread::thread_idx_x() == 0 {
        for round in 0..2 {
            mbarrier::init(full.add(round), 32);
            mbarrier::init(empty.add(round), 32);
        }
        mbarrier::fence_init();
    }
    thread::sync_threads(); // the barriers may be used
    for round in 0..2 {
        if warp == 0 {
            if WAITS_UNTIL_EMPTY && round == 1 {
                mbarrier::wait(empty, 0);
            }
            *stage.add(lane) = input[32 * round + lane];
            mbarrier::arrive(full.add(round));
        } else {
            if WAITS_UNTIL_FULL {
                mbarrier::wait(full.add(round), 0);
            }
            *output.add(32 * round + lane) = *stage.add(31 - lane);
            mbarrier::arrive(empty.add(round));
        }
    }
}

/// Half of each warp waits for the other half, which has returned. A GPU counts threads that
/// have returned as arrived, so only the simulator reports it.
#[kernel]
pub unsafe fn waits_in_a_branch(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = input[i];
    if i % 32 < 16 {
        thread::sync_threads();
        *output.add(i) = input[63 - i];
    }
}

/// Thread 40 indexes past the end of a slice.
#[kernel]
pub unsafe fn panics(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = input[if i == 40 { input.len() } else { i }];
}

/// In thread 40 two values differ.
#[kernel]
pub unsafe fn asserts(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = input[i];
    cuda_std::assert_eq!(input[i], input[if i == 40 { 41 } else { i }]);
}
