//! Barriers of a CTA's threads.

use cuda_std::block::block_reduce;
use cuda_std::prelude::*;
use cuda_std::shared_array;
use cuda_std::warp::WarpReductionOp;

#[cfg(not(cuda_device))]
use crate::probe::{Launch, Probe, one_block, probe, scrambled};
#[cfg(not(cuda_device))]
use crate::warps::sum_of_halves;

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        reversed_through_shared_memory,
        input: scrambled,
        ptx: &["bar.sync", "ld.shared.u32", "st.shared.u32"],
        expected: |_, input| input.iter().rev().copied().collect(),
    ),
    probe!(
        reductions_at_a_barrier,
        input: scrambled,
        ptx: &["bar.red.popc.u32", "bar.red.and.pred", "bar.red.or.pred"],
        expected: |_, input| {
            let odd = input.iter().filter(|&&word| word % 2 == 1).count() as u32;
            [odd, 1, 0, 1, 0].repeat(64)
        },
    ),
    probe!(
        block_reductions,
        input: scrambled,
        launch: Launch { block: [10, 3, 2], ..one_block(64) },
        ptx: &["bar.sync", "ld.shared", "st.shared"],
        expected: |_, input| {
            let floats = Vec::from_iter(input.iter().map(|&word| (word >> 8) as f32));
            let last_warp = floats[32..60].iter().copied().reduce(|sum, x| sum + x);
            let sum = sum_of_halves(&floats[..32]) + last_warp.unwrap_or(0.0);
            let greatest = input[..60].iter().map(|&word| word as i32).max();
            let all_bits = input[..60].iter().fold(u32::MAX, |bits, word| bits & (word | 1));
            [sum.to_bits(), greatest.unwrap_or(0) as u32, all_bits].repeat(60)
        },
    ),
    probe!(
        fences,
        input: scrambled,
        ptx: &["membar.gl", "membar.sys"],
        expected: |_, input| input.to_vec(),
    ),
];

#[kernel]
pub unsafe fn reversed_through_shared_memory(input: &[u32], output: *mut u32) {
    let staged = shared_array![u32; 64];
    let i = thread::thread_idx_x() as usize;
    *staged.add(i) = input[i];
    thread::sync_threads(); // every word is staged
    *output.add(i) = *staged.add(63 - i);
}

#[kernel]
pub unsafe fn reductions_at_a_barrier(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x();
    let start = output.add(5 * i as usize);
    *start = thread::sync_threads_count(input[i as usize] % 2);
    // Any number but zero is true.
    *start.add(1) = u32::from(thread::sync_threads_and(i + 1) != 0);
    *start.add(2) = u32::from(thread::sync_threads_and(i) != 0);
    *start.add(3) = u32::from(thread::sync_threads_or(i) != 0);
    *start.add(4) = u32::from(thread::sync_threads_or(0) != 0);
}

#[kernel]
pub unsafe fn block_reductions(input: &[u32], output: *mut u32) {
    let at = thread::thread_idx();
    let i = (at.x + 10 * (at.y + 3 * at.z)) as usize;
    let word = input[i];
    let results = [
        block_reduce((word >> 8) as f32, WarpReductionOp::Add).to_bits(),
        block_reduce(word as i32, WarpReductionOp::Max) as u32,
        block_reduce(word | 1, WarpReductionOp::And),
    ];
    for (j, result) in results.into_iter().enumerate() {
        *output.add(results.len() * i + j) = result;
    }
}

#[kernel]
pub unsafe fn fences(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = 0;
    thread::grid_fence();
    thread::device_fence();
    thread::system_fence();
    *output.add(i) = input[i];
}
