//! Warp operations, compared with what the CUDA C++ programming guide says about them.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the contract of each call is what its test is about"
)]

use cuda_std::simulator::{Fault, Launch, Place, ThreadOrder};
use cuda_std::warp::{
    WarpReductionOp, lane_id, sync_warp, warp_reduce, warp_shuffle_down, warp_shuffle_idx,
    warp_shuffle_up, warp_shuffle_xor, warp_vote_any,
};
use cuda_std::{shared_array, thread};
use std::sync::atomic::{AtomicU32, Ordering};

const ALL: u32 = u32::MAX;

#[test]
fn shuffles_read_the_lane_that_the_guide_says() {
    for width in [1, 2, 4, 8, 16, 32] {
        for argument in 0..32 {
            let launch = Launch::new(1, 64).thread_order(ThreadOrder::Random(argument.into()));
            let result = launch.run(|| {
                let (lane, warp) = (lane_id(), thread::thread_idx_x() / 32);
                let value = 100 * warp + lane;
                let segment = lane / width * width;
                let own = (value, false);
                let from = |lane: u32| (100 * warp + lane, true);

                let below = lane.checked_sub(argument).filter(|&below| below >= segment);
                let up = unsafe { warp_shuffle_up(ALL, value, argument, width) };
                assert_eq!(up, below.map_or(own, from));

                let above = Some(lane + argument).filter(|&above| above < segment + width);
                let down = unsafe { warp_shuffle_down(ALL, value, argument, width) };
                assert_eq!(down, above.map_or(own, from));

                let idx = unsafe { warp_shuffle_idx(ALL, value, argument, width) };
                assert_eq!(idx, from(segment + argument % width));

                // A later segment is out of reach, an earlier one is not.
                let other = Some(lane ^ argument).filter(|&other| other < segment + width);
                let xor = unsafe { warp_shuffle_xor(ALL, value, argument, width) };
                assert_eq!(xor, other.map_or(own, from));
            });
            result.unwrap();
        }
    }
}

#[test]
fn float_reductions_ignore_nan_and_add_in_a_fixed_order() {
    let result = Launch::new(1, 32).run(|| unsafe {
        let lane = lane_id();
        let x = if lane == 7 { f32::NAN } else { lane as f32 };
        assert_eq!(warp_reduce(ALL, x, WarpReductionOp::Min), 0.0);
        assert_eq!(warp_reduce(ALL, x, WarpReductionOp::Max), 31.0);
        assert!(warp_reduce(ALL, x, WarpReductionOp::Add).is_nan());
        // 1 is lost beside 2^24; the two ones are not if they come together first.
        let large = 16_777_216.0_f32;
        let x = match lane {
            0 => large,
            1 | 17 => 1.0,
            _ => 0.0,
        };
        let sum = warp_reduce(ALL, x, WarpReductionOp::Add);
        assert_eq!(sum, large + 2.0);
        if lane < 3 {
            let x = [1.0, large, -large][lane as usize];
            assert_eq!(warp_reduce(0b111, x, WarpReductionOp::Add), 0.0);
        }
    });
    result.unwrap();
    let bitwise = Launch::new(1, 32).run(|| unsafe {
        warp_reduce(ALL, 1.0_f32, WarpReductionOp::Xor);
    });
    let said = bitwise.unwrap_err().to_string();
    assert!(said.contains("floats have no bitwise reduction"), "{said}");
}

#[test]
fn sync_warp_waits_for_the_warp_only() {
    for order in [ThreadOrder::Forward, ThreadOrder::Reverse] {
        let result = Launch::new(1, 64).thread_order(order).run(|| {
            if thread::thread_idx_x() >= 32 {
                return; // The other warp need not come.
            }
            let staged = shared_array![u32; 32];
            let lane = lane_id();
            unsafe {
                *staged.add(lane as usize) = lane;
                sync_warp(ALL);
                assert_eq!(*staged.add(31 - lane as usize), 31 - lane);
            }
        });
        result.unwrap();
    }
}

#[test]
fn a_lane_that_does_not_come_is_named() {
    let fault = Launch::new((1, 3), 64).run(|| {
        if thread::block_idx_y() == 1 && thread::thread_idx_x() == 37 {
            return;
        }
        unsafe { sync_warp(ALL) };
    });
    let fault = fault.unwrap_err();
    let Fault::DivergentWarp { block, warp, lanes } = &fault else {
        panic!("{fault:?}");
    };
    assert_eq!((*block, *warp), ((0, 1, 0).into(), 1));
    assert_eq!(lanes.len(), 2);
    assert_eq!(lanes[1].place, Place::Returned);
    assert_eq!(lanes[1].threads, [5]);
    let sentence = fault.to_string();
    assert!(
        sentence.contains("lanes 0-4, 6-31 wait in sync_warp()"),
        "{sentence}"
    );
    assert!(sentence.contains("lane 5 has returned"), "{sentence}");
}

#[test]
fn lanes_that_the_block_is_too_small_to_have_are_missing() {
    let fault = Launch::new(1, 40).run(|| {
        unsafe { warp_vote_any(ALL, true) };
    });
    let fault = fault.unwrap_err();
    let sentence = fault.to_string();
    assert!(sentence.contains("warp 1"), "{sentence}");
    assert!(
        sentence.contains("lanes 8-31 are not in the block"),
        "{sentence}"
    );
}

#[test]
fn lanes_with_different_masks_or_calls_do_not_meet() {
    let masks = Launch::new(1, 32).run(|| {
        let mask = if lane_id() == 0 { ALL } else { !1 };
        unsafe { sync_warp(mask) };
    });
    assert!(matches!(masks, Err(Fault::DivergentWarp { .. })));
    let calls = Launch::new(1, 32).run(|| unsafe {
        if lane_id() == 0 {
            sync_warp(ALL);
        } else {
            warp_vote_any(ALL, true);
        }
    });
    assert!(matches!(calls, Err(Fault::DivergentWarp { .. })));
}

#[test]
fn a_lane_outside_of_its_own_mask_is_a_fault() {
    let fault = Launch::new(1, 32).run(|| unsafe { sync_warp(0xF) });
    let fault = fault.unwrap_err();
    let Fault::InvalidWarpOperation { thread, .. } = &fault else {
        panic!("{fault:?}");
    };
    assert_eq!(*thread, (4, 0, 0).into());
    assert!(
        fault.to_string().contains("leaves out the calling lane 4"),
        "{fault}"
    );
}

#[test]
fn reading_a_lane_outside_of_the_mask_is_a_fault() {
    let fault = Launch::new(1, 32).run(|| {
        if lane_id() < 4 {
            unsafe { warp_shuffle_down(0xF, 1_u32, 1, 32) };
        }
    });
    let fault = fault.unwrap_err();
    assert!(fault.to_string().contains("reads lane 4"), "{fault}");
}

#[test]
fn a_width_that_is_no_power_of_two_is_a_panic() {
    for width in [0, 3, 64] {
        let fault = Launch::new(1, 32).run(|| {
            unsafe { warp_shuffle_up(ALL, 1_u32, 1, width) };
        });
        assert!(matches!(fault, Err(Fault::Panic { .. })), "{fault:?}");
    }
}

/// What each of 64 threads reads of what thread 63 - i wrote, after a shuffle and without a
/// barrier.
fn found_without_a_barrier(order: ThreadOrder) -> Vec<u32> {
    let found: Vec<AtomicU32> = (0..64).map(|_| AtomicU32::new(0)).collect();
    let launch = Launch::new(1, 64).thread_order(order);
    launch
        .run(|| {
            let left = shared_array![u32; 64];
            let i = thread::thread_idx_x() as usize;
            unsafe { *left.add(i) = 0 };
            thread::sync_threads(); // all are 0
            let (own, _) = unsafe { warp_shuffle_idx(ALL, i as u32 + 1, lane_id(), 32) };
            unsafe { *left.add(i) = own };
            let (_, _) = unsafe { warp_shuffle_idx(ALL, 0u32, 0, 32) };
            let other = unsafe { *left.add(63 - i) };
            found[i].store(other, Ordering::Relaxed);
        })
        .unwrap();
    found
        .iter()
        .map(|found| found.load(Ordering::Relaxed))
        .collect()
}

#[test]
fn a_warp_goes_on_after_a_shuffle_while_others_still_wait_for_theirs() {
    let forward = found_without_a_barrier(ThreadOrder::Forward);
    assert!(forward[..32].iter().all(|&found| found == 0), "{forward:?}");
    let reverse = found_without_a_barrier(ThreadOrder::Reverse);
    assert!(reverse[32..].iter().all(|&found| found == 0), "{reverse:?}");
}
