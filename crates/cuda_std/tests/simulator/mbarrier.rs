//! Barriers in shared memory: phases, arrivals, and what cannot be.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the contract of each call is what its test is about"
)]

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::simulator::{Fault, Launch, Place, ThreadOrder};
use cuda_std::{shared_array, thread};
use std::sync::atomic::{AtomicU32, Ordering};

/// A barrier for this many arrivals, which all threads may use.
fn new_barrier(arrivals: u32) -> *mut Mbarrier {
    let barrier = shared_array![Mbarrier; 1];
    if thread::thread_idx_x() == 0 {
        unsafe { mbarrier::init(barrier, arrivals) };
        mbarrier::fence_init();
    }
    thread::sync_threads();
    barrier
}

/// What may be wrong with a ring of one buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// A producer arrives before it has written.
    FullTooEarly,
    /// A consumer arrives before it has read.
    EmptyTooEarly,
}

/// Hands 32 values over five times; returns their sum and where threads waited.
fn ring(order: ThreadOrder, mistake: Mistake) -> Result<(u32, usize), Fault> {
    let sum = AtomicU32::new(0);
    let launch = Launch::new(1, 64).thread_order(order);
    let report = launch.run(|| {
        let full = new_barrier(32);
        let empty = shared_array![Mbarrier; 1];
        let buffer = shared_array![u32; 32];
        let (lane, is_producer) = (thread::thread_idx_x() % 32, thread::thread_idx_x() < 32);
        if thread::thread_idx_x() == 0 {
            unsafe { mbarrier::init(empty, 32) };
            mbarrier::fence_init();
        }
        thread::sync_threads();
        for round in 0..5 {
            let place = unsafe { buffer.add(lane as usize) };
            if is_producer {
                // Before the first round the buffer is empty.
                unsafe { mbarrier::wait(empty, (round + 1) % 2) };
                if mistake == Mistake::FullTooEarly {
                    unsafe { mbarrier::arrive(full) };
                }
                unsafe { place.write(100 * round + lane) };
                if mistake != Mistake::FullTooEarly {
                    unsafe { mbarrier::arrive(full) };
                }
            } else {
                unsafe { mbarrier::wait(full, round % 2) };
                if mistake == Mistake::EmptyTooEarly {
                    unsafe { mbarrier::arrive(empty) };
                }
                // Another producer's value.
                let value = unsafe { buffer.add(31 - lane as usize).read() };
                assert_eq!(value, 100 * round + 31 - lane);
                sum.fetch_add(value, Ordering::Relaxed);
                if mistake != Mistake::EmptyTooEarly {
                    unsafe { mbarrier::arrive(empty) };
                }
            }
        }
    });
    Ok((sum.into_inner(), report?.waits.len()))
}

#[test]
fn a_ring_of_one_buffer_hands_each_value_over_once() {
    let rounds = (0..5).map(|round| 32 * 100 * round + 31 * 32 / 2);
    let expected = rounds.sum();
    for order in ThreadOrder::ALL {
        assert_eq!(ring(order, Mistake::None), Ok((expected, 2)), "{order:?}");
    }
}

#[test]
fn an_arrival_before_what_it_stands_for_shows_where_the_seed_is_even() {
    for mistake in [Mistake::FullTooEarly, Mistake::EmptyTooEarly] {
        for seed in [2, 4, 6] {
            let found = ring(ThreadOrder::Random(seed), mistake);
            assert!(
                matches!(found, Err(Fault::Panic { .. })),
                "{mistake:?}: {found:?}"
            );
        }
    }
}

#[test]
fn a_wait_that_nothing_ends_is_a_fault() {
    let fault = Launch::new(1, 32)
        .run(|| {
            let barrier = new_barrier(33);
            unsafe { mbarrier::arrive(barrier) };
            unsafe { mbarrier::wait(barrier, 0) };
        })
        .unwrap_err();
    let Fault::DivergentBarrier { threads, .. } = fault else {
        panic!("{fault}");
    };
    let Place::Waits { function, .. } = threads[0].place else {
        panic!("{threads:?}");
    };
    assert_eq!((threads.len(), function), (1, "mbarrier::wait"));
}

#[test]
fn what_is_no_barrier_is_refused() {
    let problem = |kernel: &(dyn Fn() + Sync)| {
        let fault = Launch::new(1, 1).run(kernel).unwrap_err();
        fault.to_string()
    };
    let uninitialized = problem(&|| unsafe { mbarrier::arrive(shared_array![Mbarrier; 1]) });
    assert!(
        uninitialized.contains("no barrier that was initialized"),
        "{uninitialized}"
    );
    let elsewhere = problem(&|| {
        let mut local = 0_u64;
        unsafe { mbarrier::init((&raw mut local).cast(), 1) };
    });
    assert!(elsewhere.contains("shared memory"), "{elsewhere}");
    let for_nobody = problem(&|| unsafe { mbarrier::init(shared_array![Mbarrier; 1], 0) });
    assert!(for_nobody.contains("0 arrivals"), "{for_nobody}");
    let of_an_earlier_block = Launch::new(64, 1).run(|| unsafe {
        let barrier = shared_array![Mbarrier; 1];
        if thread::block_idx_x() < 32 {
            mbarrier::init(barrier, 1);
        }
        mbarrier::arrive(barrier);
    });
    let of_an_earlier_block = of_an_earlier_block.unwrap_err().to_string();
    let words = "of block (32, 0, 0)";
    assert!(of_an_earlier_block.contains(words), "{of_an_earlier_block}");
    let too_many = problem(&|| {
        let barrier = new_barrier(1);
        unsafe { mbarrier::arrive_expect_tx(barrier, 16) };
        unsafe { mbarrier::arrive(barrier) };
    });
    assert!(
        too_many.contains("16 were announced, 0 are on their way"),
        "{too_many}"
    );
}
