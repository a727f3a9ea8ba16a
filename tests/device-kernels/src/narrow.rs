//! Atomics of 8 and 16 bits, and comparisons of bytes.

use core::sync::atomic::{AtomicI16, AtomicU8, AtomicU16, Ordering};

use cuda_std::prelude::*;
use cuda_std::shared_array;

#[cfg(not(cuda_device))]
use crate::probe::{Probe, UNWRITTEN, one_block, probe, scrambled};

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        parts_of_words_are_updated_together,
        launch: one_block(256),
        ptx: &["cas.b32"],
        expected: |launch, _| {
            let start = UNWRITTEN.to_le_bytes();
            let threads = launch.block[0];
            // Words 0 and 1: each thread adds its number to one of eight bytes.
            let bytes: Vec<u8> = (0..8u32)
                .map(|byte| {
                    let numbers = (0..threads).filter(|thread| thread % 8 == byte);
                    numbers.fold(start[byte as usize % 4], |sum, n| sum.wrapping_add(n as u8))
                })
                .collect();
            let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
            let halves = |low: u16, high: u16| u32::from(low) | u32::from(high) << 16;
            let (low, high) = (UNWRITTEN as u16, (UNWRITTEN >> 16) as u16);
            let flipped = (0..threads).fold(0, |bits, thread| bits ^ 1 << (thread % 15));
            vec![
                word(0),
                word(4),
                // The minimum, and, with a sign, the maximum.
                halves(1, -1_i16 as u16),
                // Each thread flips a bit of one half; the other stays unchanged.
                halves(low ^ flipped, high),
                // All threads count with compare-and-swap, in shared memory.
                threads,
                // One thread found its expected value.
                1,
                // That thread stores byte 1 while all threads add to byte 0.
                UNWRITTEN & 0xFFFF_0000
                    | 0x7B << 8
                    | u32::from(start[0].wrapping_add(threads as u8)),
            ]
        },
    ),
    probe!(
        bytes_are_compared,
        input: scrambled,
        expected: |_, input| {
            let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_ne_bytes()).collect();
            (0..64)
                .map(|i| {
                    let (a, b) = (&bytes[i / 2 * 4..][..i], &bytes[i * 2..][..i]);
                    let first = a.iter().zip(b).find(|(a, b)| a != b);
                    let order = first.map_or(0, |(a, b)| if a < b { 3 } else { 1 });
                    u32::from(first.is_none()) | order << 1 | [0, 3, 4, 8][i % 4] << 3
                })
                .collect()
        },
    ),
    // An H200 before the workaround for libNVVM's errors: 083a, ffff; 083a, fff8; 0936, ffff.
    probe!(
        halves_in_an_array_and_rotated_bytes_are_right,
        launch: one_block(3),
        input: || {
            vec![
                -1_i32 as u32, u32::MAX, -2_i32 as u32, 1,
                1, 0, -32_i32 as u32, 0x8000_0000,
                -1_i32 as u32, 0x7FFF_FFFF, -2_i32 as u32, u32::MAX,
            ]
        },
        expected: |_, _| {
            vec![
                0xF7CB, 0xBFFF, 0xFFFF_FFFF, 0,
                0x0835, 0x3FF8, 0x1000_0000, 0x7FFF_FFFF,
                0xF7CB, 0xBFFF, 0xFFFF_FFFF, 0xFFFF_FFFE,
            ]
        },
        ptx: &["call.uni"],
    ),
];

/// Halves are reversed, copied within an array and rotated; a byte is extended with its sign, and
/// rotated as a half; the high word of a product of 128 bits is one less than its factor.
#[kernel]
pub unsafe fn halves_in_an_array_and_rotated_bytes_are_right(input: &[u32], output: *mut u32) {
    let thread = thread::thread_idx_x() as usize;
    let [half, number, byte, factor] = [0, 1, 2, 3].map(|at| input[4 * thread + at]);
    let mut halves = [half as i16; 5];
    halves.reverse();
    halves.copy_within(1.., 0);
    halves.rotate_left((number % 5) as usize);
    let hash = halves
        .iter()
        .fold(0, |hash: i16, half| hash.wrapping_mul(7) ^ *half);
    let rotated = [
        u32::from(rotated_byte(byte as i8)),
        rotated_half(half as i16),
    ];
    let (_, high) = u128::from(factor).carrying_mul(u128::MAX, 0);
    let words = [u32::from(hash as u16), rotated[0], rotated[1], high as u32];
    for (at, word) in words.into_iter().enumerate() {
        *output.add(4 * thread + at) = word;
    }
}

/// `ptxas` did not extend a parameter with a sign, so the function has one: it is not inlined.
#[inline(never)]
fn rotated_byte(byte: i8) -> u16 {
    (byte as u16).rotate_right(2)
}

/// The same for 16 bits.
#[inline(never)]
fn rotated_half(half: i16) -> u32 {
    (half as u32).rotate_right(4)
}

#[kernel]
pub unsafe fn parts_of_words_are_updated_together(_input: &[u32], output: *mut u32) {
    let thread = thread::thread_idx_x();
    let byte = |at: usize| &*output.cast::<AtomicU8>().add(at);
    let half = |at: usize| &*output.cast::<AtomicU16>().add(at);
    byte(thread as usize % 8).fetch_add(thread as u8, Ordering::Relaxed);
    half(4).fetch_min(thread as u16 + 1, Ordering::AcqRel);
    let signed = &*output.cast::<AtomicI16>().add(5);
    signed.fetch_max(-1 - thread as i16, Ordering::SeqCst);
    half(6).fetch_xor(1 << (thread % 15), Ordering::Release);

    let count = shared_array![u32; 1];
    if thread == 0 {
        *count = 0;
        *output.add(5) = 0;
    }
    thread::sync_threads();
    let shared = &*count.cast::<AtomicU16>();
    let mut seen = shared.load(Ordering::Relaxed);
    while let Err(now) =
        shared.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Acquire)
    {
        seen = now;
    }
    let winner = byte(20).compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed);
    if winner.is_ok() {
        byte(25).store(0x7B, Ordering::Release);
    }
    byte(24).fetch_add(1, Ordering::Relaxed);
    thread::sync_threads();
    if thread == 0 {
        *output.add(4) = *count;
    }
}

#[kernel]
pub unsafe fn bytes_are_compared(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let bytes = core::slice::from_raw_parts(input.as_ptr().cast::<u8>(), size_of_val(input));
    // The same bytes for even numbers, different ones for odd numbers.
    let (a, b) = (&bytes[i / 2 * 4..][..i], &bytes[i * 2..][..i]);
    let name = ["", "add", "sub", "multiply"][i % 4];
    let number = match name {
        "add" => 3,
        "sub" => 4,
        "multiply" => 8,
        _ => 0,
    };
    *output.add(i) = u32::from(a == b) | (a.cmp(b) as i32 as u32 & 3) << 1 | number << 3;
}
