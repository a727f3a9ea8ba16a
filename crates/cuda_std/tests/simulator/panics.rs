//! A panic in a simulated thread becomes an error of the launch, without output and without
//! leftover state.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "it is what is undefined that a dev build must stop"
)]

use cuda_std::simulator::{Fault, Launch, ThreadOrder};
use cuda_std::thread;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn an_index_out_of_bounds_is_a_fault_with_block_thread_message_and_place() {
    let values = [1, 2, 3];
    let fault = Launch::new(4, (2, 3)).run(|| {
        if thread::block_idx_x() == 2 && thread::thread_idx_y() == 1 {
            black_box(values[black_box(3 + thread::thread_idx_x() as usize)]);
        }
    });
    let fault = fault.unwrap_err();
    let Fault::Panic {
        block,
        thread,
        message,
        location,
    } = &fault
    else {
        panic!("{fault:?}");
    };
    assert_eq!((*block, *thread), ((2, 0, 0).into(), (0, 1, 0).into()));
    assert_eq!(
        message,
        "index out of bounds: the len is 3 but the index is 3"
    );
    assert!(location.as_ref().unwrap().contains("panics.rs:"));
    assert!(
        fault
            .to_string()
            .starts_with("Thread (0, 1, 0) of block (2, 0, 0) panicked at ")
    );
}

#[test]
fn of_several_faulty_blocks_the_lowest_is_reported() {
    for _ in 0..100 {
        let fault = Launch::new(64, 8).run(|| {
            assert!(thread::block_idx_x() < 5, "block {}", thread::block_idx_x());
        });
        let Err(Fault::Panic { block, message, .. }) = fault else {
            panic!("{fault:?}");
        };
        assert_eq!((block, &*message), ((5, 0, 0).into(), "block 5"));
    }
}

#[test]
fn a_worker_stops_at_its_first_fault() {
    let blocks = AtomicU32::new(0);
    let fault = Launch::new(1000, 1).run(|| {
        blocks.fetch_add(1, Ordering::Relaxed);
        panic!("every block has a fault");
    });
    assert!(fault.is_err());
    assert!(blocks.into_inner() as usize <= rayon::current_num_threads());
}

/// Counts its live instances.
struct Guard<'a>(&'a AtomicU32);

impl<'a> Guard<'a> {
    fn new(living: &'a AtomicU32) -> Self {
        living.fetch_add(1, Ordering::Relaxed);
        Self(living)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        // A barrier during unwinding must not wait for any thread.
        thread::sync_threads();
    }
}

#[test]
fn suspended_threads_are_unwound_when_another_one_panics() {
    for order in [ThreadOrder::Forward, ThreadOrder::Reverse] {
        let (living, most) = (AtomicU32::new(0), AtomicU32::new(0));
        let launch = Launch::new(1, 64).thread_order(order);
        for _ in 0..3 {
            let fault = launch.run(|| {
                let is_culprit = thread::thread_idx_x() == 40;
                let _guard = (!is_culprit).then(|| Guard::new(&living));
                thread::sync_threads();
                most.fetch_max(living.load(Ordering::Relaxed), Ordering::Relaxed);
                assert!(!is_culprit, "the culprit");
                thread::sync_threads();
            });
            assert!(matches!(fault, Err(Fault::Panic { .. })), "{fault:?}");
            assert_eq!(living.load(Ordering::Relaxed), 0);
        }
        assert_eq!(most.into_inner(), 63);
        // The stacks can be reused.
        launch.run(thread::sync_threads).unwrap();
    }
}

#[test]
fn a_thread_that_panics_while_it_is_unwound_does_not_hide_the_first_fault() {
    let fault = Launch::new(1, 4).run(|| {
        assert!(thread::thread_idx_x() != 3, "the first fault");
        let unwound = std::panic::catch_unwind(thread::sync_threads);
        assert!(unwound.is_ok(), "a second one");
    });
    let Err(Fault::Panic {
        message, location, ..
    }) = fault
    else {
        panic!("{fault:?}");
    };
    assert_eq!(message, "the first fault");
    assert!(location.unwrap().contains("panics.rs:"));
    // Its stack can be reused.
    Launch::new(1, 4).run(thread::sync_threads).unwrap();
}

/// Tells the process of a test apart.
const CHILD: &str = "PANIC_IN_A_CHILD";

#[test]
fn a_simulated_panic_prints_nothing_and_others_still_do() {
    let is_child = std::env::var_os(CHILD).is_some();
    if is_child {
        let fault = Launch::new(1, 1).run(|| panic!("simulated"));
        assert!(fault.is_err());
        let real = std::thread::spawn(|| panic!("real")).join();
        assert!(real.is_err());
        return;
    }
    let this = "panics::a_simulated_panic_prints_nothing_and_others_still_do";
    let child = crate::in_a_child(this, CHILD, "1");
    assert!(child.status.success());
    let printed = String::from_utf8(child.stderr).unwrap();
    assert!(printed.contains("real"), "{printed}");
    assert!(!printed.contains("simulated\n"), "{printed}");
}

/// What ends the process in a build with debug assertions: a reason, and what it says.
const UNDEFINED: [(&str, &str, unsafe fn()); 3] = [
    (
        "unchecked",
        "get_unchecked requires that the index is within the slice",
        || unsafe {
            let values = black_box(&[1, 2, 3][..]);
            black_box(*values.get_unchecked(values.len()));
        },
    ),
    ("null", "null pointer dereference occurred", || unsafe {
        black_box(*black_box(std::ptr::null::<u32>()));
    }),
    (
        "misaligned",
        "misaligned pointer dereference: ",
        || unsafe {
            let words = [0_u32; 2];
            black_box(*black_box(words.as_ptr().byte_add(1)));
        },
    ),
];

#[test]
#[cfg_attr(
    not(debug_assertions),
    ignore = "undefined behaviour, which only a dev build checks"
)]
fn a_panic_that_ends_the_process_says_what_where_and_which_thread() {
    if let Ok(name) = std::env::var(CHILD) {
        let (.., act) = UNDEFINED
            .into_iter()
            .find(|(other, ..)| *other == name)
            .unwrap();
        let culprit = (2, 5);
        let launched = Launch::new(3, 8).run(|| {
            if (thread::block_idx_x(), thread::thread_idx_x()) == culprit {
                unsafe { act() };
            }
        });
        panic!("{launched:?}");
    }
    for (name, reason, _) in UNDEFINED {
        let this = "panics::a_panic_that_ends_the_process_says_what_where_and_which_thread";
        let child = crate::in_a_child(this, CHILD, name);
        assert!(!child.status.success());
        let printed = String::from_utf8(child.stderr).unwrap();
        let begin = "Thread (5, 0, 0) of block (2, 0, 0) panicked at crates/cuda_std/tests/simulator/panics.rs:";
        assert!(printed.contains(begin), "{name}: {printed}");
        assert!(printed.contains(reason), "{name}: {printed}");
    }
}

#[test]
fn what_a_panic_leaves_behind_is_dropped_where_no_thread_waits() {
    /// Does something when it is dropped.
    struct Payload(fn());

    impl Drop for Payload {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    for when_dropped in [
        thread::sync_threads as fn(),
        || thread::nanosleep(1),
        || panic!("dropped"),
    ] {
        let fault = Launch::new(2, 4).run(|| {
            thread::sync_threads();
            std::panic::panic_any(Payload(when_dropped));
        });
        assert!(matches!(fault, Err(Fault::Panic { .. })), "{fault:?}");
    }
}
