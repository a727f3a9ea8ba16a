//! Barriers of a block: which threads wait for which, and what happens if one does not arrive.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "each thread uses elements of its own, or what a barrier has made safe, or tests that it has not"
)]

use cuda_std::simulator::{Fault, Launch, Place, Report, ThreadOrder};
use cuda_std::{shared_array, thread};
use std::sync::atomic::{AtomicU32, Ordering};

/// Reverses each group of 64 values through shared memory.
fn reverse(launch: Launch, values: &[AtomicU32]) -> Result<Report, Fault> {
    launch.run(|| {
        let staged = shared_array![u32; 64];
        let (block, i) = (
            64 * thread::block_idx_x() as usize,
            thread::thread_idx_x() as usize,
        );
        unsafe { *staged.add(i) = values[block + i].load(Ordering::Relaxed) };
        thread::sync_threads(); // every value is staged
        let turned = unsafe { *staged.add(63 - i) };
        values[block + i].store(turned, Ordering::Relaxed);
    })
}

fn numbered() -> Vec<AtomicU32> {
    (0..128).map(AtomicU32::new).collect()
}

fn is_reversed(values: &[AtomicU32]) -> bool {
    let values = values.iter().map(|value| value.load(Ordering::Relaxed));
    values.eq((0..64).rev().chain((64..128).rev()))
}

#[test]
fn what_others_wrote_before_a_barrier_is_there_after_it_in_every_order() {
    for order in ThreadOrder::ALL {
        let values = numbered();
        let report = reverse(Launch::new(2, 64).thread_order(order), &values).unwrap();
        assert!(is_reversed(&values), "{order:?}");
        let (site, openings) = report.barriers.first_key_value().unwrap();
        assert!(site.file.ends_with("barrier.rs"), "{site}");
        assert_eq!((report.barriers.len(), *openings), (1, 2));
        assert_eq!(report.shared_bytes, 256);
    }
}

#[test]
fn a_missing_barrier_changes_the_result_in_every_order() {
    let report = reverse(Launch::new(2, 64), &numbered()).unwrap();
    let site = *report.barriers.first_key_value().unwrap().0;
    for order in ThreadOrder::ALL {
        let values = numbered();
        let launch = Launch::new(2, 64).thread_order(order);
        // SAFETY: the numbers that threads then read too early are no addresses.
        let launch = unsafe { launch.without_barrier(site) };
        let report = reverse(launch, &values).unwrap();
        assert!(report.barriers.is_empty());
        assert!(!is_reversed(&values), "{order:?}");
    }
}

/// The threads of a divergent barrier, by the function they wait in ("" for returned).
fn divergence(fault: &Fault) -> Vec<(&str, &[u32])> {
    let Fault::DivergentBarrier { threads, .. } = fault else {
        panic!("{fault:?}");
    };
    let named = threads.iter().map(|group| match group.place {
        Place::Waits { function, .. } => (function, &group.threads[..]),
        _ => ("", &group.threads[..]),
    });
    named.collect()
}

#[test]
fn a_barrier_that_some_threads_never_reach_names_block_and_threads() {
    for order in ThreadOrder::ALL {
        let launch = Launch::new((3, 2), (8, 4)).thread_order(order);
        let fault = launch.run(|| {
            let returns_early =
                thread::block_idx() == cuda_std::Vec3::new(1, 1, 0) && thread::thread_idx_y() == 2;
            if !returns_early {
                thread::sync_threads();
            }
        });
        let fault = fault.unwrap_err();
        let (waiting, returned): (Vec<u32>, Vec<u32>) = (0..32).partition(|thread| thread / 8 != 2);
        assert_eq!(
            divergence(&fault),
            [("sync_threads", &waiting[..]), ("", &returned[..])]
        );
        let sentence = fault.to_string();
        for words in [
            "In block (1, 1, 0)",
            "threads 0-15, 24-31 (from (0, 0, 0)) wait in sync_threads() at ",
            "barrier.rs:",
            "threads 16-23 (from (0, 2, 0)) have returned",
        ] {
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}

#[test]
fn threads_at_different_barriers_are_divergent() {
    #[expect(
        clippy::if_same_then_else,
        reason = "they differ in their place in the source"
    )]
    let sites = Launch::new(1, 2).run(|| {
        if thread::thread_idx_x() == 0 {
            thread::sync_threads();
        } else {
            thread::sync_threads();
        }
    });
    let kinds = Launch::new(1, 2).run(|| {
        let wait: fn() = [thread::sync_threads, || _ = thread::sync_threads_or(1)]
            [thread::thread_idx_x() as usize];
        wait();
    });
    let names = |fault: &Fault| -> Vec<String> {
        let groups = divergence(fault);
        groups.iter().map(|(name, _)| name.to_string()).collect()
    };
    assert_eq!(names(&sites.unwrap_err()), ["sync_threads", "sync_threads"]);
    assert_eq!(
        names(&kinds.unwrap_err()),
        ["sync_threads", "sync_threads_or"]
    );
}

#[test]
fn a_named_barrier_is_for_as_many_threads_as_it_says() {
    // Of three warps the first two meet; without the barrier one of them reads too early.
    let run = |launch: Launch| {
        launch.run(|| {
            let staged = shared_array![u32; 64];
            let i = thread::thread_idx_x() as usize;
            if i < 64 {
                unsafe { *staged.add(i) = 7 };
                unsafe { thread::named_barrier(1, 64) }; // both warps have written
                assert_eq!(unsafe { *staged.add(63 - i) }, 7);
            }
        })
    };
    for order in ThreadOrder::ALL {
        let report = run(Launch::new(2, 96).thread_order(order)).unwrap();
        let site = *report.waits.first_key_value().unwrap().0;
        let launch = unsafe { Launch::new(2, 96).thread_order(order).without_wait(site) };
        assert!(matches!(run(launch), Err(Fault::Panic { .. })), "{order:?}");
    }
    let odd = Launch::new(1, 32).run(|| unsafe { thread::named_barrier(1, 33) });
    assert!(odd.unwrap_err().to_string().contains("a multiple of 32"));
    let too_few = Launch::new(1, 32).run(|| unsafe { thread::named_barrier(1, 64) });
    assert_eq!(divergence(&too_few.unwrap_err())[0].0, "named_barrier");
}

#[test]
fn a_sleeping_thread_lets_the_others_of_its_block_run() {
    let flag = AtomicU32::new(0);
    let result = Launch::new(1, 4).run(|| {
        if thread::thread_idx_x() == 3 {
            flag.store(1, Ordering::Relaxed);
        }
        while flag.load(Ordering::Relaxed) == 0 {
            thread::nanosleep(100);
        }
    });
    assert!(result.is_ok());
}
