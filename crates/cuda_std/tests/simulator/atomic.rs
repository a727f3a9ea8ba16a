//! Atomics of the simulator, where blocks run on several threads of the CPU.

use cuda_std::atomic::{AtomicF32, AtomicF64, AtomicI32, Ordering, SystemAtomicU64};
use cuda_std::simulator::{Fault, Launch};
use cuda_std::thread;

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
fn an_ordering_that_an_access_cannot_have_is_a_panic() {
    let number = AtomicF32::new(0.0);
    let load = Launch::new(1, 1).run(|| {
        number.load(Ordering::Release);
    });
    assert!(matches!(load, Err(Fault::Panic { .. })), "{load:?}");
    let store = Launch::new(1, 1).run(|| number.store(1.0, Ordering::Acquire));
    assert!(matches!(store, Err(Fault::Panic { .. })), "{store:?}");
}
