//! Threads of a CTA waiting for each other.

use cuda_std::prelude::*;
use cuda_std::shared_array;

#[cfg(not(cuda_device))]
use crate::probe::{Probe, probe, scrambled};

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
pub unsafe fn fences(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = 0;
    thread::grid_fence();
    thread::device_fence();
    thread::system_fence();
    *output.add(i) = input[i];
}
