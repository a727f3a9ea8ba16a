//! Loops, launch bounds, integers, and other code that rustc generates from ordinary Rust.

use cuda_std::prelude::*;
use cuda_std::unroll;

#[cfg(not(cuda_device))]
use crate::probe::{Probe, of_words, probe, scrambled};
use crate::write;

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        unrolled_sums,
        input: scrambled,
        expected: |_, input| {
            let sum = input.iter().fold(0, |sum: u32, &word| sum.wrapping_add(word));
            vec![sum; 3 * 64]
        },
    ),
    probe!(
        bounded_launch,
        input: scrambled,
        ptx: &[".maxntid 64", ".minnctapersm 4"],
        expected: |_, input| input.iter().map(|word| word ^ 1).collect(),
    ),
    probe!(
        integers,
        input: scrambled,
        expected: |_, input| of_words(input, |word| {
            let signed = i64::from(word as i32);
            [
                (i128::from(word) * 3 % 1000) as u32,
                (signed.rem_euclid(7)) as u32,
                (signed.clamp(-5, 5)) as u32,
                (u64::from(word) + 4_000_000_000).min(u64::from(u32::MAX)) as u32,
                word.leading_zeros() ^ word.count_ones() ^ word.trailing_zeros(),
                (u64::from(word) << 32 | u64::from(word)).rotate_left(word % 64) as u32,
                u64::from(word).rotate_right(word % 64) as u32,
                word.rotate_left(word % 32),
                u32::from((word as u16).rotate_right(word % 16)),
                u32::from_be_bytes(word.to_le_bytes()),
                u32::from((word as i32) < 0),
            ]
        }),
    ),
    probe!(
        matches_and_options,
        input: scrambled,
        expected: |_, input| {
            input
                .iter()
                .map(|&word| match word % 4 {
                    0 => word / 3,
                    1 => word >> 7,
                    2 => 77,
                    _ => input[(word % 64) as usize],
                })
                .collect()
        },
    ),
];

#[kernel]
pub unsafe fn unrolled_sums(input: &[u32], output: *mut u32) {
    let start = output.add(3 * thread::thread_idx_x() as usize);
    let mut sums = [0u32; 3];
    for i in unroll::<1>(0..64) {
        sums[0] = sums[0].wrapping_add(input[i]);
    }
    for i in unroll::<4>(0..64) {
        sums[1] = sums[1].wrapping_add(input[i]);
    }
    for i in unroll::<0>(0..64) {
        sums[2] = sums[2].wrapping_add(input[i]);
    }
    for (i, sum) in sums.into_iter().enumerate() {
        *start.add(i) = sum;
    }
}

#[kernel(max_threads = 32 * 2, min_blocks = 4)]
pub unsafe fn bounded_launch(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = input[i] ^ 1;
}

#[kernel]
pub unsafe fn integers(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let word = input[i];
    let signed = word as i32;
    let results = [
        (u64::from(word) * 3 % 1000) as u32,
        signed.rem_euclid(7) as u32,
        signed.clamp(-5, 5) as u32,
        word.saturating_add(4_000_000_000),
        word.leading_zeros() ^ word.count_ones() ^ word.trailing_zeros(),
        (u64::from(word) << 32 | u64::from(word)).rotate_left(word) as u32,
        u64::from(word).rotate_right(word) as u32,
        word.rotate_left(word),
        u32::from((word as u16).rotate_right(word)),
        word.swap_bytes(),
        u32::from(signed.is_negative()),
    ];
    write(results, output);
}

#[kernel]
pub unsafe fn matches_and_options(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let word = input[i];
    *output.add(i) = match word % 4 {
        0 => word / 3,
        1 => word >> 7,
        2 => word.checked_add(u32::MAX - word).map_or(0, |_| 77),
        _ => input.get((word % 64) as usize).copied().unwrap_or(0),
    };
}
