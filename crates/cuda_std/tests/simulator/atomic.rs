//! Atomics of the simulator, where blocks run on several threads of the CPU.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the contract of each call is what its test is about"
)]

use cuda_std::atomic::{
    AtomicF32, AtomicF64, AtomicI32, AtomicU32, BlockAtomicF32, Ordering, SystemAtomicU64, mid,
};
use cuda_std::simulator::{Fault, Launch};
use cuda_std::{shared_array, thread};

const BLOCKS: u32 = 64;
const THREADS: u32 = 128;

#[test]
fn no_update_of_any_block_is_lost() {
    let (single, double) = (AtomicF32::new(0.0), AtomicF64::new(0.5));
    let (count, least) = (SystemAtomicU64::new(0), AtomicI32::new(0));
    let result = Launch::new(BLOCKS, THREADS).run(|| {
        single.fetch_add(1.0, Ordering::Relaxed);
        double.fetch_sub(1.0, Ordering::SeqCst);
        count.fetch_add(1 << 40, Ordering::AcqRel);
        least.fetch_min(-thread::index_1d().cast_signed(), Ordering::Relaxed);
    });
    result.unwrap();
    let threads = BLOCKS * THREADS;
    assert_eq!(single.into_inner(), threads as f32);
    assert_eq!(double.into_inner(), 0.5 - f64::from(threads));
    assert_eq!(count.into_inner(), u64::from(threads) << 40);
    assert_eq!(least.into_inner(), 1 - threads.cast_signed());
}

#[test]
fn a_block_sums_in_its_own_shared_memory() {
    let total = AtomicF32::new(0.0);
    let result = Launch::new(BLOCKS, THREADS).run(|| unsafe {
        let sum = shared_array![f32; 1];
        if thread::thread_idx_x() == 0 {
            *sum = 0.0;
        }
        thread::sync_threads(); // the sum is 0
        BlockAtomicF32::from_ptr(sum).fetch_add(2.0, Ordering::Relaxed);
        thread::sync_threads(); // the sum is complete
        if thread::thread_idx_x() == 0 {
            assert_eq!(*sum, 2.0 * THREADS as f32);
            total.fetch_add(*sum, Ordering::Relaxed);
        }
    });
    result.unwrap();
    assert_eq!(total.into_inner(), (2 * BLOCKS * THREADS) as f32);
}

#[test]
fn only_one_thread_takes_a_lock() {
    let (lock, winners) = (AtomicU32::new(0), AtomicU32::new(0));
    let result = Launch::new(BLOCKS, THREADS).run(|| {
        let taken = lock.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
        winners.fetch_add(u32::from(taken.is_ok()), Ordering::Relaxed);
        assert!(taken.is_ok() || taken == Err(1));
    });
    result.unwrap();
    assert_eq!(winners.into_inner(), 1);
}

#[test]
fn a_store_before_a_fence_is_seen_after_one() {
    let (data, flag) = (AtomicU32::new(0), AtomicU32::new(0));
    let result = Launch::new(2, 1).run(|| {
        if thread::block_idx_x() == 0 {
            data.store(7, Ordering::Relaxed);
            mid::device_thread_fence(Ordering::Release);
            flag.store(1, Ordering::Relaxed);
        } else {
            while flag.load(Ordering::Relaxed) == 0 {
                thread::nanosleep(100);
            }
            mid::device_thread_fence(Ordering::Acquire);
            assert_eq!(data.load(Ordering::Relaxed), 7);
        }
    });
    result.unwrap();
}

#[test]
fn an_ordering_that_an_access_cannot_have_is_a_panic() {
    let number = AtomicF32::new(0.0);
    let load = Launch::new(1, 1).run(|| {
        number.load(Ordering::Release);
    });
    assert!(matches!(load, Err(Fault::Panic { .. })), "{load:?}");
    let store = Launch::new(1, 1).run(|| number.store(1.0, Ordering::Acquire));
    assert!(matches!(store, Err(Fault::Panic { .. })), "{store:?}");
}
