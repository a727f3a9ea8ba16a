//! Orders by warps: a barrier that is missing between uses of shared memory shows even if a
//! shuffle brings the lanes of each warp into step.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "each thread uses elements of its own, or what a barrier has made safe"
)]

use cuda_std::simulator::{Fault, Launch, ThreadOrder};
use cuda_std::warp::{lane_id, warp_shuffle_xor};
use cuda_std::{shared_array, thread};

const WARPS: usize = 8;
const THREADS: usize = 32 * WARPS;

/// What the warp's lanes combine their values to.
fn combine(value: f32, with: fn(f32, f32) -> f32) -> f32 {
    [16, 8, 4, 2, 1].into_iter().fold(value, |value, distance| {
        let (other, _) = unsafe { warp_shuffle_xor(u32::MAX, value, distance, 32) };
        with(value, other)
    })
}

/// The softmax of each row of [`THREADS`] elements. Both of its reductions use one array, so the
/// second must not begin before the first has been read.
unsafe fn softmax(data: *mut f32, has_second_barrier: bool) {
    let partials = shared_array![f32; WARPS];
    let i = thread::thread_idx_x() as usize;
    let element = unsafe { data.add(thread::block_idx_x() as usize * THREADS + i) };
    let of_block = |value: f32, with: fn(f32, f32) -> f32| unsafe {
        let of_warp = combine(value, with);
        if lane_id() == 0 {
            *partials.add(i / 32) = of_warp;
        }
        thread::sync_threads(); // every warp has stored its part
        combine(*partials.add(i % WARPS), with)
    };
    let largest = of_block(unsafe { *element }, f32::max);
    if has_second_barrier {
        thread::sync_threads(); // every thread has read the largest
    }
    let power = unsafe { *element - largest }.exp();
    // Every partial sum is in the array four times.
    let sum = of_block(power, |a, b| a + b) / (32 / WARPS) as f32;
    unsafe { *element = power / sum };
}

fn rows() -> Vec<f32> {
    (0..4 * THREADS).map(|i| (i % 37) as f32 / 4.0).collect()
}

#[test]
fn a_softmax_is_the_same_in_all_orders() {
    let mut found = rows();
    let launch = Launch::new(4, THREADS as u32);
    let report = launch.run_in_all_orders(&mut found, |data| unsafe { softmax(data, true) });
    assert_eq!(report.unwrap().blocks, 4);
    for row in found.chunks(THREADS) {
        let sum: f32 = row.iter().sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    }
}

#[test]
fn a_softmax_without_its_second_barrier_is_refused() {
    let launch = Launch::new(4, THREADS as u32);
    let kernel = |data| unsafe { softmax(data, false) };
    let fault = launch.run_in_all_orders(&mut rows(), kernel).unwrap_err();
    let sentence = fault.to_string();
    let end = ": a barrier is missing there, unless the kernel adds floats by atomics.";
    assert!(sentence.ends_with(end), "{sentence}");
    let Fault::OrderDependent { order, between, .. } = &fault else {
        panic!("{fault}");
    };
    assert_eq!(*order, ThreadOrder::FirstWarpAhead);
    // The barrier of the first reduction, and the same of the second.
    let Some([Some(first), Some(second)]) = between else {
        panic!("{fault}");
    };
    assert_eq!(first, second);
}
