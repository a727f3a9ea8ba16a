//! A block that makes no progress ends its launch, with block, thread and line.

use cuda_std::simulator::{Fault, Launch};
use cuda_std::thread;
use cuda_std::warp::{sync_warp, warp_vote_any};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A launch of two blocks of two warps, in which one thread of the second block loops.
fn looping(in_loop: fn()) -> Result<(), Fault> {
    let launch = Launch::new(2, 64).time_limit(Duration::from_millis(300));
    let report = launch.run(|| {
        thread::sync_threads();
        while thread::block_idx_x() == 1 && thread::thread_idx_x() < 32 {
            in_loop();
        }
    });
    report.map(|_| ())
}

/// The line that the fault names, of a thread of the first warp of the second block.
fn line(fault: Fault) -> u32 {
    let Fault::NoProgress {
        block,
        thread,
        last_wait: Some(site),
        ..
    } = fault
    else {
        panic!("{fault}");
    };
    assert_eq!(block.x, 1);
    assert!(thread.x < 32, "{thread}");
    assert!(site.file.ends_with("time_limit.rs"), "{site}");
    site.line
}

#[test]
fn sleeping_and_voting_for_ever_is_a_fault() {
    let sleeps = line!() + 1;
    let fault = looping(|| thread::nanosleep(100));
    assert_eq!(line(fault.unwrap_err()), sleeps);

    let votes = line!() + 3;
    let fault = looping(|| {
        // SAFETY: all lanes of the warp are there.
        unsafe { warp_vote_any(u32::MAX, false) };
    });
    assert_eq!(line(fault.unwrap_err()), votes);
}

#[test]
fn a_loop_that_never_waits_ends_the_process_with_a_sentence() {
    const CHILD: &str = "LOOP_IN_A_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let flag = AtomicU32::new(0);
        let launch = Launch::new((1, 3), 40).time_limit(Duration::from_millis(300));
        let result = launch.run(|| {
            // SAFETY: all lanes of the warp that the block has are there.
            unsafe {
                sync_warp(if thread::thread_idx_x() < 32 {
                    u32::MAX
                } else {
                    0xFF
                })
            };
            while thread::thread_idx_x() == 35 && flag.load(Ordering::Relaxed) == 0 {}
        });
        panic!("{result:?}");
    }
    let this = "time_limit::a_loop_that_never_waits_ends_the_process_with_a_sentence";
    let child = crate::in_a_child(this, CHILD, "1");
    assert!(!child.status.success());
    let printed = String::from_utf8(child.stderr).unwrap();
    let words = "Thread (35, 0, 0) runs, which waited last at crates/cuda_std/tests/simulator/time_limit.rs:";
    assert!(printed.contains(words), "{printed}");
}

#[test]
fn a_block_that_makes_progress_may_take_longer_than_the_limit() {
    let launch = Launch::new(1, 2).time_limit(Duration::from_millis(300));
    let report = launch.run(|| {
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(5));
            thread::sync_threads();
        }
    });
    assert_eq!(report.unwrap().blocks, 1);
}
