//! Asynchronous copies, and a hint to prefetch for a later copy.

use cuda_std::prelude::*;
use cuda_std::{pipeline, shared_array};

#[cfg(not(cuda_device))]
use crate::probe::{Probe, one_block, probe, scrambled};

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        copies_of_4_bytes,
        input: scrambled,
        ptx: &["cp.async.ca.shared.global", "cp.async.commit_group", "cp.async.wait_group 0"],
        ptx_since: "compute_80",
        expected: |_, input| input.iter().rev().copied().collect(),
    ),
    probe!(
        copies_of_8_bytes,
        input: scrambled,
        ptx: &["cp.async.ca.shared.global", "cp.async.commit_group", "cp.async.wait_group 0"],
        ptx_since: "compute_80",
        expected: |_, input| input.iter().rev().copied().collect(),
    ),
    probe!(
        copies_of_16_bytes,
        input: scrambled,
        ptx: &["cp.async.cg.shared.global", "cp.async.commit_group", "cp.async.wait_group 0"],
        ptx_since: "compute_80",
        expected: |_, input| input.iter().rev().copied().collect(),
    ),
    probe!(
        zero_filled_copies,
        launch: one_block(17),
        input: scrambled,
        ptx: &["cp.async.ca.shared.global", "cp.async.cg.shared.global"],
        ptx_since: "compute_80",
        expected: |_, input| {
            let words = |valid| [4, 2, 1].map(|words| zero_filled(&input[..words], valid));
            (0..=16).flat_map(words).flatten().collect()
        },
    ),
    probe!(
        stages_arrive_in_order,
        launch: one_block(8),
        input: scrambled,
        ptx: &["cp.async.ca.shared.global", "cp.async.wait_group 2"],
        ptx_since: "compute_80",
        expected: |_, input| {
            let folded = |i: usize| (0..8).fold(0, |sum: u32, stage| {
                sum.wrapping_mul(31).wrapping_add(input[8 * stage + (i + 1) % 8])
            });
            (0..8).map(folded).collect()
        },
    ),
    probe!(
        prefetched,
        input: scrambled,
        ptx: &["prefetch.global.L1", "prefetch.global.L2"],
        expected: |_, input| input.to_vec(),
    ),
];

/// Words that keep only their first bytes.
#[cfg(not(cuda_device))]
fn zero_filled(words: &[u32], valid_bytes: usize) -> Vec<u32> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes
        .iter_mut()
        .skip(valid_bytes)
        .for_each(|byte| *byte = 0);
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u32::from(byte))
    };
    bytes.chunks(4).map(word).collect()
}

/// Copies 64 words, `WORDS` a thread, and reverses them.
#[inline(always)]
unsafe fn reversed_by_copies<const WORDS: usize>(
    staged: *mut u32,
    input: &[u32],
    output: *mut u32,
) {
    let i = thread::thread_idx_x() as usize;
    if WORDS * i < 64 {
        let (to, from) = (staged.add(WORDS * i), input.as_ptr().add(WORDS * i));
        pipeline::memcpy_async(to.cast::<[u32; WORDS]>(), from.cast());
    }
    pipeline::commit();
    pipeline::wait_prior::<0>(); // this thread's words have arrived
    thread::sync_threads(); // all words have arrived
    *output.add(i) = *staged.add(63 - i);
}

#[kernel]
pub unsafe fn copies_of_4_bytes(input: &[u32], output: *mut u32) {
    reversed_by_copies::<1>(shared_array![u32; 64], input, output);
}

#[kernel]
pub unsafe fn copies_of_8_bytes(input: &[u32], output: *mut u32) {
    reversed_by_copies::<2>(shared_array![u32; 64], input, output);
}

#[kernel]
pub unsafe fn copies_of_16_bytes(input: &[u32], output: *mut u32) {
    reversed_by_copies::<4>(shared_array![u32; 64], input, output);
}

/// Thread i copies the first i bytes, or all if there are fewer, of 16, 8 and 4.
#[kernel]
pub unsafe fn zero_filled_copies(input: &[u32], output: *mut u32) {
    let staged = shared_array![u32; 17 * 8];
    let i = thread::thread_idx_x();
    let valid = |size| if i < size { i } else { size };
    let slot = staged.add(8 * i as usize);
    // Memory that is not read need not be valid.
    let from = if i == 0 {
        core::ptr::null()
    } else {
        input.as_ptr()
    };
    pipeline::memcpy_async_zfill(slot.cast::<[u32; 4]>(), from.cast(), valid(16));
    pipeline::memcpy_async_zfill(slot.add(4).cast::<[u32; 2]>(), from.cast(), valid(8));
    pipeline::memcpy_async_zfill(slot.add(6), from, valid(4));
    pipeline::commit();
    pipeline::wait_prior::<0>();
    for word in 0..7 {
        *output.add(7 * i as usize + word) = *slot.add(word);
    }
}

/// Eight stages of eight words through three buffers, each read by a thread other than the one
/// that copied it.
#[kernel]
pub unsafe fn stages_arrive_in_order(input: &[u32], output: *mut u32) {
    let staged = shared_array![u32; 3 * 8];
    let i = thread::thread_idx_x() as usize;
    let issue = |stage: usize| {
        if stage < 8 {
            let (to, from) = (
                staged.add(stage % 3 * 8 + i),
                input.as_ptr().add(8 * stage + i),
            );
            pipeline::memcpy_async(to, from);
        }
        pipeline::commit();
    };
    for stage in 0..3 {
        issue(stage);
    }
    let mut sum = 0u32;
    for stage in 0..8 {
        pipeline::wait_prior::<2>(); // this thread's part of the stage has arrived
        thread::sync_threads(); // the whole stage has arrived
        sum = sum
            .wrapping_mul(31)
            .wrapping_add(*staged.add(stage % 3 * 8 + (i + 1) % 8));
        thread::sync_threads(); // every thread has read it
        issue(stage + 3);
    }
    *output.add(i) = sum;
}

#[kernel]
pub unsafe fn prefetched(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    pipeline::prefetch_l2(input.as_ptr().add(i));
    pipeline::prefetch_l1(input.as_ptr().add(i));
    *output.add(i) = input[i];
}
