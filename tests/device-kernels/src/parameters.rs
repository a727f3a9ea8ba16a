//! Instances of a generic kernel, and a kernel's attributes.

use core::ops::BitXor;

use cuda_std::prelude::*;
use cuda_std::{shared, shared_array};

#[cfg(not(cuda_device))]
use crate::probe::{Launch, Probe, one_block, probe, scrambled};

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        xor_of_2,
        input: scrambled,
        ptx: &[".maxntid 64, 1, 1"],
        expected: |_, input| xors(input, 2),
    ),
    probe!(
        xor_of_5,
        input: scrambled,
        ptx: &[".maxntid 64, 1, 1"],
        expected: |_, input| xors(input, 5),
    ),
    probe!(
        few_registers,
        input: scrambled,
        ptx: &[".maxnreg 32"],
        expected: |_, input| input.iter().map(|word| !word).collect(),
    ),
    probe!(
        aligned_dynamic_shared_memory,
        launch: Launch { dynamic_shared_bytes: 256, ..one_block(64) },
        input: scrambled,
        expected: |_, input| input.iter().rev().copied().collect(),
    ),
];

#[cfg(not(cuda_device))]
fn xors(input: &[u32], count: usize) -> Vec<u32> {
    let neighbours = |i: usize| (i..i + count).map(|j| input[j % 64]);
    (0..64)
        .map(|i| neighbours(i).fold(0, |a, b| a ^ b))
        .collect()
}

#[kernel(max_threads = 64, instantiate(xor_of_2 = xor_of::<u32, 2>, xor_of_5 = xor_of::<u32, 5>))]
pub unsafe fn xor_of<T, const COUNT: usize>(input: &[T], output: *mut T)
where
    T: Copy + BitXor<Output = T>,
{
    let i = thread::thread_idx_x() as usize;
    let mut sum = input[i];
    for offset in 1..COUNT {
        sum = sum ^ input[(i + offset) % 64];
    }
    *output.add(i) = sum;
}

#[kernel(maxnreg = 32)]
pub unsafe fn few_registers(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = !input[i];
}

/// The low bits of the address are zero, even after an array of 20 bytes.
#[kernel]
pub unsafe fn aligned_dynamic_shared_memory(input: &[u32], output: *mut u32) {
    let before = shared_array![u32; 5];
    let staged = shared::dynamic_shared_mem_aligned::<u32, 1024>();
    let i = thread::thread_idx_x() as usize;
    if i < 5 {
        *before.add(i) = 0;
    }
    *staged.add(i) = input[i];
    thread::sync_threads(); // every word is staged
    *output.add(i) = *staged.add(63 - i) ^ *before.add(i % 5) ^ (staged.addr() % 1024) as u32;
}
