//! Asynchronous copies: what has arrived when, and that a missing or insufficient wait is
//! detected.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "each thread copies into elements of its own and reads them, or what a barrier has made safe"
)]

use cuda_std::simulator::{Fault, Launch, Report};
use cuda_std::{pipeline, shared_array, thread};
use std::sync::atomic::{AtomicU32, Ordering};

/// What shared memory holds where nothing has arrived.
const NOTHING: u32 = u32::MAX;

/// Runs one thread, which gets 16 words of shared memory.
fn alone(kernel: impl Fn(*mut u32) + Sync) -> Result<Report, Fault> {
    Launch::new(1, 1).run(|| kernel(shared_array![u32; 16]))
}

#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Aligned<T>(T);

#[test]
fn a_copy_arrives_at_the_wait_and_not_before() {
    let source = [1, 2, 3];
    alone(|staged| unsafe {
        *staged = 7;
        pipeline::memcpy_async(staged, &source[0]);
        assert_eq!(*staged, NOTHING, "issued");
        pipeline::commit();
        assert_eq!(*staged, NOTHING, "committed");
        pipeline::wait_prior::<0>();
        assert_eq!(*staged, 1);
        assert_eq!(*staged.add(1), NOTHING, "only what was asked for");
    })
    .unwrap();
}

#[test]
fn a_wait_leaves_the_newest_groups_on_their_way() {
    let source = [10, 11, 12, 13];
    let arrived = |staged: *mut u32| -> Vec<usize> {
        (0..4)
            .filter(|&i| unsafe { *staged.add(i) } == source[i])
            .collect()
    };
    alone(|staged| {
        for (i, word) in source.iter().enumerate() {
            unsafe { pipeline::memcpy_async(staged.add(i), word) };
            pipeline::commit();
        }
        pipeline::wait_prior::<4>();
        assert!(arrived(staged).is_empty());
        pipeline::wait_prior::<3>();
        assert_eq!(arrived(staged), [0]);
        pipeline::wait_prior::<1>();
        assert_eq!(arrived(staged), [0, 1, 2]);
        pipeline::wait_prior::<2>();
        assert_eq!(arrived(staged), [0, 1, 2], "a weaker wait changes nothing");
        pipeline::wait_prior::<0>();
        assert_eq!(arrived(staged), [0, 1, 2, 3]);
    })
    .unwrap();
}

#[test]
fn a_group_without_copies_counts_and_copies_without_a_group_do_not_arrive() {
    let source = [1, 2];
    alone(|staged| unsafe {
        pipeline::memcpy_async(staged, &source[0]);
        pipeline::commit();
        pipeline::commit();
        pipeline::memcpy_async(staged.add(1), &source[1]);
        pipeline::wait_prior::<1>();
        assert_eq!((*staged, *staged.add(1)), (1, NOTHING));
        pipeline::wait_prior::<0>();
        assert_eq!(*staged.add(1), NOTHING, "it is in no group");
        pipeline::commit();
        pipeline::wait_prior::<0>();
        assert_eq!(*staged.add(1), 2);
    })
    .unwrap();
}

#[test]
fn the_source_is_read_when_the_copy_arrives() {
    let source = AtomicU32::new(1);
    alone(|staged| unsafe {
        pipeline::memcpy_async(staged, source.as_ptr());
        pipeline::commit();
        source.store(2, Ordering::Relaxed);
        pipeline::wait_prior::<0>();
        assert_eq!(*staged, 2);
    })
    .unwrap();
}

/// Two tiles of 64 elements, one on its way while the other is read: each element plus its mirror
/// image in its tile.
fn two_stages(launch: Launch, output: &[AtomicU32]) -> Result<Report, Fault> {
    let source: Vec<u32> = (0..128).collect();
    launch.run(|| {
        let staged = shared_array![u32; 128];
        let i = thread::thread_idx_x() as usize;
        let finish = |tile: usize| {
            let mirrored = unsafe { *staged.add(64 * tile + 63 - i) };
            output[64 * tile + i].store(mirrored, Ordering::Relaxed);
        };
        for tile in [0, 64] {
            unsafe { pipeline::memcpy_async(staged.add(tile + i), &source[tile + i]) };
            pipeline::commit();
        }
        pipeline::wait_prior::<1>(); // the first tile
        thread::sync_threads();
        finish(0);
        pipeline::wait_prior::<0>(); // the second
        thread::sync_threads();
        finish(1);
    })
}

fn mirrored(launch: Launch) -> (Vec<u32>, Report) {
    let output: Vec<AtomicU32> = (0..128).map(|_| AtomicU32::new(0)).collect();
    let report = two_stages(launch, &output).unwrap();
    (
        output.into_iter().map(AtomicU32::into_inner).collect(),
        report,
    )
}

#[test]
fn every_wait_is_in_the_report_and_leaving_it_out_is_seen() {
    let (right, report) = mirrored(Launch::new(1, 64));
    let expected: Vec<u32> = (0..64).rev().chain((64..128).rev()).collect();
    assert_eq!(right, expected);
    let counts: Vec<u64> = report.waits.values().copied().collect();
    assert_eq!(counts, [64, 64]);
    for (number, site) in report.waits.into_keys().enumerate() {
        assert!(site.file.ends_with("pipeline.rs"), "{site}");
        // SAFETY: what is copied outlives the launch, and is no address.
        let launch = unsafe { Launch::new(1, 64).without_wait(site) };
        let (wrong, report) = mirrored(launch);
        for tile in 0..2 {
            let elements = 64 * tile..64 * (tile + 1);
            let has_arrived = wrong[elements.clone()] == right[elements];
            assert_eq!(has_arrived, tile != number, "without the wait at {site}");
        }
        assert!(!report.waits.contains_key(&site));
    }
}

#[test]
fn a_wait_is_for_the_calling_threads_copies_alone() {
    let source = [5, 6];
    Launch::new(1, 2)
        .run(|| {
            let staged = shared_array![u32; 2];
            let i = thread::thread_idx_x() as usize;
            unsafe { pipeline::memcpy_async(staged.add(i), &source[i]) };
            pipeline::commit();
            if i == 0 {
                pipeline::wait_prior::<0>();
            }
            thread::sync_threads();
            assert_eq!(unsafe { [*staged, *staged.add(1)] }, [5, NOTHING]);
        })
        .unwrap();
}

#[test]
fn copies_that_nobody_waits_for_are_forgotten_with_their_block() {
    let source = [1];
    let result = Launch::new(8, 1).run(|| {
        let staged = shared_array![u32; 1];
        // Nothing remains of an earlier block on the same worker.
        pipeline::wait_prior::<0>();
        assert_eq!(unsafe { *staged }, NOTHING);
        unsafe { pipeline::memcpy_async(staged, &source[0]) };
        pipeline::commit();
    });
    assert!(result.is_ok(), "{result:?}");
}

/// The problem that a launch of one thread is stopped for.
fn problem(kernel: impl Fn(*mut u32) + Sync) -> String {
    match alone(kernel) {
        Err(fault @ Fault::InvalidCopy { .. }) => fault.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn copies_that_no_gpu_can_make_are_faults_that_name_thread_and_place() {
    let source = Aligned([0_u32; 8]);
    let from = |offset| unsafe { source.0.as_ptr().add(offset).cast::<[u32; 4]>() };
    let unaligned_target =
        problem(|staged| unsafe { pipeline::memcpy_async(staged.add(1).cast(), from(0)) });
    let unaligned_source =
        problem(|staged| unsafe { pipeline::memcpy_async(staged.cast(), from(1)) });
    for sentence in [&unaligned_target, &unaligned_source] {
        assert!(sentence.contains("must be multiples of 16"), "{sentence}");
    }
    let too_many =
        problem(|staged| unsafe { pipeline::memcpy_async_zfill(staged.cast(), from(0), 17) });
    assert!(
        too_many.contains("a copy of 16 bytes of which 17"),
        "{too_many}"
    );
    let elsewhere = problem(|_| unsafe {
        let mut local = Aligned([0_u32; 4]);
        pipeline::memcpy_async(&raw mut local.0, from(0));
    });
    assert!(
        elsewhere.contains("not in the block's shared memory"),
        "{elsewhere}"
    );
    for part in ["Thread (0, 0, 0) of block (0, 0, 0), at ", "pipeline.rs:"] {
        assert!(elsewhere.contains(part), "{elsewhere}");
    }
}

#[test]
fn copies_read_no_byte_beside_the_memories_that_they_may_read() {
    // Its 22 readable bytes begin in the first float4 and end in the second.
    let source = Aligned([5_u32; 12]);
    let start = source.0.as_ptr().cast::<u8>();
    let launch = Launch::new(1, 1).readable_by_copies([
        start..start,
        start.wrapping_add(8)..start.wrapping_add(30),
        start.wrapping_add(32)..start.wrapping_add(48),
    ]);
    let copied = |word: usize, valid_bytes: u32| {
        launch.run(|| {
            let staged = shared_array![u32; 4];
            let from = source.0.as_ptr().wrapping_add(word);
            unsafe {
                match word % 4 {
                    0 => pipeline::memcpy_async_zfill::<[u32; 4]>(
                        staged.cast(),
                        from.cast(),
                        valid_bytes,
                    ),
                    _ => pipeline::memcpy_async_zfill(staged, from, valid_bytes),
                }
            }
            pipeline::commit();
            pipeline::wait_prior::<0>();
        })
    };
    for (word, valid_bytes) in [(0, 0), (2, 4), (4, 14), (7, 2), (8, 16), (8, 3)] {
        let result = copied(word, valid_bytes);
        assert!(result.is_ok(), "{valid_bytes} bytes at {word}: {result:?}");
    }
    // Before the first byte, after the last, and across two memories' gap.
    for (word, valid_bytes) in [(0, 1), (0, 16), (1, 4), (4, 15), (4, 16), (7, 3), (7, 4)] {
        match copied(word, valid_bytes) {
            Err(fault @ Fault::InvalidCopy { .. }) => {
                let reads = format!("a copy that reads {valid_bytes} bytes from ");
                assert!(fault.to_string().contains(&reads), "{fault}");
            }
            other => panic!("{valid_bytes} bytes at {word}: {other:?}"),
        }
    }
}
