//! Launches of the simulator: shapes, positions, reports and rejected launches.

use cuda_std::simulator::{Dim3, Fault, Launch, ThreadOrder};
use cuda_std::{launch_bounds, thread};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The order in which the threads of one block run before and after a barrier.
fn turns(order: ThreadOrder) -> Vec<u32> {
    let seen = Mutex::new(Vec::new());
    let launch = Launch::new(1, 40).thread_order(order);
    let result = launch.run(|| {
        seen.lock().unwrap().push(thread::thread_idx_x());
        thread::sync_threads();
        seen.lock().unwrap().push(thread::thread_idx_x());
    });
    result.unwrap();
    seen.into_inner().unwrap()
}

#[test]
fn threads_run_forward_in_reverse_or_shuffled_anew_after_each_barrier() {
    let forward: Vec<u32> = (0..40).chain(0..40).collect();
    assert_eq!(turns(ThreadOrder::Forward), forward);
    let reverse: Vec<u32> = (0..40).rev().chain((0..40).rev()).collect();
    assert_eq!(turns(ThreadOrder::Reverse), reverse);

    let random = turns(ThreadOrder::Random(1));
    assert_eq!(random, turns(ThreadOrder::Random(1)));
    assert_ne!(random, turns(ThreadOrder::Random(2)));
    assert_ne!(random[..40], random[40..]);
    let mut sorted = random[..40].to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, forward[..40]);
}

#[test]
fn blocks_done_are_counted_as_they_finish() {
    let done = AtomicU32::new(0);
    let count = || {
        done.fetch_add(1, Ordering::Relaxed);
    };
    let report = Launch::new(77, 3).run_observed(|| {}, &count).unwrap();
    assert_eq!((done.into_inner(), report.blocks), (77, 77));
}

#[test]
fn shapes_that_no_gpu_takes_are_refused_with_a_sentence() {
    let cases: [(Dim3, Dim3, usize, &str); 10] = [
        (0.into(), 1.into(), 0, "grid of (0, 1, 1) has no blocks"),
        ((1, 0).into(), 1.into(), 0, "has no blocks"),
        (
            1.into(),
            (1, 1, 0).into(),
            0,
            "block of (1, 1, 0) has no threads",
        ),
        (1.into(), 1025.into(), 0, "1025 threads"),
        (
            1.into(),
            (u32::MAX, u32::MAX, u32::MAX).into(),
            0,
            "at most 1024",
        ),
        (1.into(), (1, 1, 65).into(), 0, "65 threads deep"),
        ((1, 65536).into(), 1.into(), 0, "65535 along y"),
        ((1, 1, 65536).into(), 1.into(), 0, "65535 along z"),
        ((1 << 31).into(), 1.into(), 0, "2147483647 blocks along x"),
        (
            1.into(),
            1.into(),
            227 * 1024 + 1,
            "232449 bytes of dynamic",
        ),
    ];
    for (grid, block, dynamic, words) in cases {
        let launch = Launch::new(grid, block).dynamic_shared_bytes(dynamic);
        let fault = launch.run(|| panic!("it ran")).unwrap_err();
        assert!(matches!(fault, Fault::InvalidLaunch(_)), "{fault:?}");
        assert!(fault.to_string().contains(words), "{fault}");
    }
}

#[test]
fn the_largest_block_runs() {
    let launch = Launch::new(1, (16, 1, 64)).dynamic_shared_bytes(227 * 1024);
    let report = launch.run(thread::sync_threads).unwrap();
    assert_eq!(report.shared_bytes, 227 * 1024);
    assert_eq!(report.barriers.into_values().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_launch_beyond_the_launch_bounds_is_a_fault() {
    let kernel = || launch_bounds::<64, 2>();
    assert!(Launch::new(2, 64).run(kernel).is_ok());
    let fault = Launch::new(2, (33, 2)).run(kernel).unwrap_err();
    let expected = Fault::LaunchBounds {
        max_threads: 64,
        block_size: (33, 2).into(),
    };
    assert_eq!(fault, expected);
    assert!(fault.to_string().contains("66 threads"), "{fault}");
    assert!(Launch::new(1, 1024).run(launch_bounds::<0, 2>).is_ok());
}

#[test]
fn a_kernel_cannot_launch_a_kernel() {
    let outer = Launch::new(1, 1).run(|| {
        let inner = Launch::new(1, 1).run(|| {});
        assert!(matches!(inner, Err(Fault::InvalidLaunch(_))));
    });
    outer.unwrap();
}

#[test]
fn kernel_functions_outside_of_a_launch_panic_and_say_so() {
    let calls: [fn(); 4] = [
        || _ = thread::thread_idx_x(),
        || _ = thread::grid_dim(),
        thread::sync_threads,
        || _ = cuda_std::shared::dynamic_shared_mem::<u8>(),
    ];
    for call in calls {
        let payload = std::panic::catch_unwind(call).unwrap_err();
        let message = payload.downcast_ref::<&str>().unwrap();
        assert!(message.contains("outside of a launch"), "{message}");
    }
}

#[test]
fn launches_from_several_threads_do_not_disturb_each_other() {
    std::thread::scope(|scope| {
        for size in 1..=8_u32 {
            scope.spawn(move || {
                for _ in 0..20 {
                    let sum = AtomicU32::new(0);
                    let launch = Launch::new(size, 32 * size);
                    let report = launch.run(|| {
                        let votes = thread::sync_threads_count(thread::block_dim_x());
                        sum.fetch_add(votes, Ordering::Relaxed);
                    });
                    assert_eq!(report.unwrap().blocks, u64::from(size));
                    assert_eq!(sum.into_inner(), size * (32 * size).pow(2));
                }
            });
        }
    });
}
