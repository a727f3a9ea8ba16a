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

/// Each thread adds to one word: by itself, if it is alone, or by an atomic.
fn counted(threads: u32, order: ThreadOrder) -> Result<[u32; 2], Fault> {
    let mut found = [0; 2];
    let launch = Launch::new(2, threads).thread_order(order);
    let kernel = |data: *mut u32| unsafe {
        let sum = shared_array![u32; 1];
        if thread::thread_idx_x() == 0 {
            *sum = 7;
        }
        thread::sync_threads(); // the sum is begun
        *sum += 1;
        thread::sync_threads(); // all have added
        *data.add(thread::block_idx_x() as usize) = *sum;
    };
    launch.run_in_all_orders(&mut found, kernel)?;
    Ok(found)
}

#[test]
fn a_lost_update_shows_if_threads_run_at_once() {
    assert_eq!(counted(1, ThreadOrder::AtOnce).unwrap(), [8, 8]);
    // In no other order.
    assert_eq!(counted(64, ThreadOrder::Forward).unwrap(), [71, 71]);
    let fault = counted(64, ThreadOrder::AtOnce).unwrap_err();
    let sentence = fault.to_string();
    let Fault::OrderDependent { between, .. } = fault else {
        panic!("{sentence}");
    };
    let Some([Some(first), Some(second)]) = between else {
        panic!("{sentence}");
    };
    assert_eq!(second.line, first.line + 2, "{sentence}");
    assert!(
        sentence.contains("AtOnce, element 0 is 8, not 71"),
        "{sentence}"
    );
    let end = "or several threads change one word without an atomic.";
    assert!(sentence.ends_with(end), "{sentence}");
}

#[test]
fn a_softmax_is_the_same_if_threads_run_at_once_but_not_without_a_barrier() {
    let launch = Launch::new(4, THREADS as u32).thread_order(ThreadOrder::AtOnce);
    let run = |has_barrier| {
        launch.run(|| {
            let data = shared_array![f32; THREADS];
            let i = thread::thread_idx_x() as usize;
            unsafe {
                *data.add(i) = i as f32;
                if has_barrier {
                    thread::sync_threads();
                }
                let next = *data.add((i + THREADS - 1) % THREADS);
                assert_eq!(next, ((i + THREADS - 1) % THREADS) as f32);
            }
        })
    };
    run(true).unwrap();
    assert!(run(false).unwrap_err().to_string().contains("panicked"));
    let softmax = |data| unsafe { softmax(data, true) };
    launch.run_in_all_orders(&mut rows(), softmax).unwrap();
}
