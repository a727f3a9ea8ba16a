//! Shared memory: one copy per block, poisoned, aligned, and no more than there is.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "each thread uses elements of its own, or what a barrier has made safe"
)]

use cuda_std::simulator::{Fault, Launch, Place};
use cuda_std::{shared, shared_array, thread};
use std::sync::Mutex;

#[test]
fn a_mention_is_one_array_for_all_threads_and_every_time() {
    let addresses = Mutex::new(Vec::new());
    let result = Launch::new(1, 32).run(|| {
        for _ in 0..2 {
            let (bytes, floats) = (shared_array![u8; 5], shared_array![f32; 8]);
            addresses
                .lock()
                .unwrap()
                .push((bytes.addr(), floats.addr()));
        }
    });
    assert_eq!(result.unwrap().shared_bytes, 16 + 32);
    let mut addresses = addresses.into_inner().unwrap();
    assert_eq!(addresses.len(), 64);
    addresses.dedup();
    let [(bytes, floats)] = addresses[..] else {
        panic!("{addresses:?}");
    };
    assert!(bytes + 5 <= floats || floats + 32 <= bytes);
    assert_eq!((bytes % 16, floats % 16), (0, 0));
}

#[test]
fn every_block_finds_nan_in_static_and_dynamic_shared_memory() {
    // One worker runs many of these blocks, each of which leaves zeros behind.
    let launch = Launch::new(64, 16).dynamic_shared_bytes(16 * 4);
    let result = launch.run(|| {
        let i = thread::thread_idx_x() as usize;
        let (array, dynamic) = (shared_array![f32; 16], shared::dynamic_shared_mem::<f32>());
        unsafe {
            assert!((*array.add(i)).is_nan());
            assert!((*dynamic.add(i)).is_nan());
            *array.add(i) = 0.0;
            *dynamic.add(i) = 0.0;
        }
    });
    result.unwrap();
}

#[test]
fn dynamic_shared_memory_is_apart_from_arrays_and_the_blocks_own() {
    let launch = Launch::new(20, 64).dynamic_shared_bytes(64 * 4 + 1);
    let result = launch.run(|| {
        let (i, block) = (thread::thread_idx_x() as usize, thread::block_idx_x());
        let (array, dynamic) = (shared_array![u32; 64], shared::dynamic_shared_mem::<u32>());
        unsafe {
            *array.add(i) = 2 * block;
            *dynamic.add(i) = 2 * block + 1;
            thread::sync_threads();
            assert_eq!(*array.add(63 - i), 2 * block);
            assert_eq!(*dynamic.add(63 - i), 2 * block + 1);
        }
    });
    assert_eq!(result.unwrap().shared_bytes, 2 * 64 * 4 + 1);
}

#[test]
fn more_shared_memory_than_a_block_can_have_is_a_fault() {
    let arrays = Launch::new(1, 1).run(|| _ = shared_array![u8; 48 * 1024 + 1]);
    let sentence = arrays.unwrap_err().to_string();
    let begin =
        "Thread (0, 0, 0) of block (0, 0, 0), at crates/cuda_std/tests/simulator/shared_memory.rs:";
    assert!(sentence.starts_with(begin), "{sentence}");
    // Arrays take whole 16 bytes.
    let sizes = ": with this array of 49168 bytes the block needs 49168 bytes of shared memory for its arrays and 0";
    assert!(sentence.contains(sizes), "{sentence}");

    let together = Launch::new(1, 1).dynamic_shared_bytes(227 * 1024);
    let fault = together.run(|| _ = shared_array![u8; 1]).unwrap_err();
    assert!(fault.to_string().contains("232448 bytes in all"), "{fault}");

    let fits = Launch::new(1, 1).dynamic_shared_bytes(179 * 1024);
    let report = fits.run(|| _ = shared_array![u8; 48 * 1024]).unwrap();
    assert_eq!(report.shared_bytes, 227 * 1024);
}

#[test]
fn a_thread_that_writes_past_the_end_of_an_array_is_stopped_where_it_waits_next() {
    let past_by = |elements: usize| {
        let launch = Launch::new(3, 32).dynamic_shared_bytes(64);
        launch.run(|| {
            let array = shared_array![u32; 8];
            if thread::block_idx_x() == 1 && thread::thread_idx_x() == 5 {
                unsafe { *array.add(8 - 1 + elements) = 7 };
            }
            thread::sync_threads();
        })
    };
    assert_eq!(past_by(0).unwrap().shared_bytes, 64 + 32);
    let fault = past_by(3).unwrap_err();
    let sentence = fault.to_string();
    let Fault::SharedMemoryOverrun {
        block,
        thread: Some((thread, Place::Waits { site: next, .. })),
        array: Some(array),
        bytes,
        at,
    } = fault
    else {
        panic!("{sentence}");
    };
    assert_eq!((block.x, thread.x, bytes, at), (1, 5, 32, 40));
    assert_eq!(next.line, array.line + 4);
    let words = format!(
        "before it came to sync_threads() at {next}: to byte 40 of the array of 32 bytes that is named at {array}. "
    );
    assert!(sentence.contains(&words), "{sentence}");

    // The next array is behind a guard.
    let launch = Launch::new(1, 32);
    let fault = launch.run(|| {
        let (first, second) = (shared_array![u32; 8], shared_array![u32; 8]);
        unsafe { *second = 1 };
        if thread::thread_idx_x() == 5 {
            unsafe { *first.add(8 + 3) = 7 };
        }
        thread::sync_threads();
    });
    let sentence = fault.unwrap_err().to_string();
    let begin = "Thread (5, 0, 0) of block (0, 0, 0) has written past the end of shared memory";
    assert!(sentence.starts_with(begin), "{sentence}");
    assert!(
        sentence.contains("to byte 44 of the array of 32 bytes"),
        "{sentence}"
    );

    // Further behind the end it is noticed when all threads wait, and the block runs again.
    let sentence = past_by(200).unwrap_err().to_string();
    let words = format!(
        "Thread (5, 0, 0) of block (1, 0, 0) has written past the end of shared memory, before it came to \
         sync_threads() at {next}: to byte 828 of"
    );
    assert!(sentence.starts_with(&words), "{sentence}");
}

#[test]
fn a_write_to_dynamic_shared_memory_that_the_launch_does_not_give_says_what_to_set() {
    for bytes in [0, 16] {
        for has_array in [false, true] {
            let launch = Launch::new(1, 1).dynamic_shared_bytes(bytes);
            let result = launch.run(|| {
                let dynamic = shared::dynamic_shared_mem::<u32>();
                if has_array {
                    unsafe { *shared_array![u32; 4] = 1 };
                }
                unsafe { *dynamic.byte_add(bytes + 4) = 7 };
            });
            let sentence = result.unwrap_err().to_string();
            let words = format!(
                "before it returned: to byte {} of {bytes} bytes of dynamic shared memory. Check the index, or request \
                 more: by `Launch::dynamic_shared_bytes`",
                bytes + 4
            );
            assert!(sentence.contains(&words), "{sentence}");
        }
    }
    let unused = Launch::new(1, 1).run(|| _ = shared::dynamic_shared_mem::<u32>());
    assert_eq!(unused.unwrap().shared_bytes, 0);
}
