//! Shared, dynamic and constant memory, and slices as parameters.

use core::sync::atomic::{AtomicU32, Ordering};

use cuda_std::prelude::*;
use cuda_std::{address_space, global, shared, shared_array};

#[cfg(not(cuda_device))]
use crate::probe::{Launch, Probe, one_block, probe, scrambled};

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        dynamic_shared_memory,
        launch: Launch { dynamic_shared_bytes: 256, ..one_block(64) },
        input: scrambled,
        ptx: &["ld.shared.u32"],
        expected: |_, input| (0..64).map(|i| input[(i + 17) % 64]).collect(),
    ),
    probe!(
        two_arrays_do_not_overlap,
        input: scrambled,
        expected: |_, input| input.iter().map(|word| word ^ 0xFFFF).collect(),
    ),
    probe!(
        constant_table,
        ptx: &["ld.const"],
        expected: |_, _| (0..64).map(|i| SQUARES_EXPECTED[i % 8]).collect(),
    ),
    probe!(
        fours,
        launch: one_block(16),
        input: scrambled,
        ptx: &["ld.global.v4.f32", "st.global.v4.f32"],
        expected: |_, input| input.chunks(4).flat_map(|four| four.iter().rev().copied()).collect(),
    ),
    probe!(
        slice_lengths,
        input: scrambled,
        expected: |_, input| vec![input.len() as u32; 64],
    ),
    probe!(
        atomic_sum,
        launch: Launch { grid: [5, 1, 1], ..one_block(64) },
        input: || vec![0],
        ptx: &["atom.global.add.u32"],
        expected: |_, _| vec![crate::probe::UNWRITTEN.wrapping_add(5 * (63 * 64 / 2))],
    ),
];

#[kernel]
pub unsafe fn dynamic_shared_memory(input: &[u32], output: *mut u32) {
    let staged = shared::dynamic_shared_mem::<u32>();
    let i = thread::thread_idx_x() as usize;
    *staged.add(i) = input[i];
    thread::sync_threads(); // every word is staged
    *output.add(i) = *staged.add((i + 17) % 64);
}

#[kernel]
pub unsafe fn two_arrays_do_not_overlap(input: &[u32], output: *mut u32) {
    let words = shared_array![u32; 64];
    let masks = shared_array![u16; 64];
    let i = thread::thread_idx_x() as usize;
    *words.add(i) = input[i];
    *masks.add(63 - i) = 0xFFFF;
    thread::sync_threads(); // both are complete
    *output.add(i) = *words.add(i) ^ u32::from(*masks.add(i));
}

#[address_space(constant)]
static SQUARES: [u32; 8] = [0, 1, 4, 9, 16, 25, 36, 49];

#[cfg(not(cuda_device))]
const SQUARES_EXPECTED: [u32; 8] = [0, 1, 4, 9, 16, 25, 36, 49];

#[kernel]
pub unsafe fn constant_table(_input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = SQUARES[i % 8];
}

#[kernel]
pub unsafe fn fours(input: &[u32], output: *mut u32) {
    let first = 4 * thread::thread_idx_x() as usize;
    let [x, y, z, w] = global::load4(input.as_ptr().add(first).cast());
    global::store4(output.add(first).cast(), [w, z, y, x]);
}

#[kernel]
pub unsafe fn slice_lengths(input: &[u32], output: *mut u32) {
    *output.add(thread::thread_idx_x() as usize) = input.len() as u32;
}

#[kernel]
pub unsafe fn atomic_sum(_input: &[u32], output: *mut u32) {
    AtomicU32::from_ptr(output).fetch_add(thread::thread_idx_x(), Ordering::Relaxed);
}
