//! Parameters by value, grid constants, instances of a generic kernel, and a kernel's attributes.

use core::ops::BitXor;
use core::ptr;

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

/// A type with padding.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Shape {
    pub rows: u8,
    pub cols: u16,
    pub scale: f64,
}

#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Meters(pub f32);

#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub struct Table(pub [u32; 64]);

/// A parameter of each kind of value.
#[derive(Clone, Copy)]
pub struct Values {
    pub shape: Shape,
    pub lengths: [u16; 3],
    pub length: Meters,
    pub letter: char,
    pub flag: bool,
    pub wide: u128,
    pub negative: i128,
    pub pair: (u8, u32),
    pub optional: Option<core::num::NonZeroU32>,
    pub table: Table,
}

/// The number of words that each thread writes.
pub const WORDS: usize = 16;

/// Writes every part of every value; `odd` is between them to misalign the next ones.
#[kernel]
#[allow(clippy::too_many_arguments)]
pub unsafe fn values_arrive(
    odd: u8,
    Shape { rows, cols, scale }: Shape,
    mut lengths: [u16; 3],
    length: Meters,
    letter: char,
    flag: bool,
    wide: u128,
    negative: i128,
    pair: (u8, u32),
    optional: Option<core::num::NonZeroU32>,
    nothing: (),
    table: Table,
    output: *mut u32,
) {
    let i = thread::thread_idx_x();
    // A parameter by value is the thread's own.
    let own = &mut lengths[i as usize % 3];
    *own = own.wrapping_add(i as u16);
    let () = nothing;
    let words: [u32; WORDS] = [
        u32::from(odd),
        u32::from(rows),
        u32::from(cols),
        (scale.to_bits() >> 32) as u32,
        u32::from(lengths[0]),
        u32::from(lengths[1]),
        u32::from(lengths[2]),
        length.0.to_bits(),
        u32::from(letter),
        u32::from(flag),
        (wide >> 96) as u32,
        wide as u32,
        (negative >> 64) as u32,
        u32::from(pair.0) ^ pair.1,
        optional.map_or(0, |number| number.get()),
        table.0[i as usize],
    ];
    let output = output.add(i as usize * WORDS);
    for (place, word) in words.into_iter().enumerate() {
        *output.add(place) = word;
    }
}

/// The word at a generic address.
unsafe fn word_at(address: *const u32) -> u32 {
    #[cfg(cuda_device)]
    {
        let word: u32;
        core::arch::asm!(
            "ld.u32 {:e}, [{}];", out(reg) word, in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
        word
    }
    #[cfg(not(cuda_device))]
    *address
}

/// All threads have the same aligned address, and the constant is stored there.
#[kernel]
pub unsafe fn grid_constants_have_addresses(
    odd: u8,
    #[grid_constant] table: &Table,
    #[grid_constant] shape: &Shape,
    output: *mut u32,
) {
    let i = thread::thread_idx_x() as usize;
    let first = shared_array![usize; 1];
    let table = ptr::from_ref(table).cast::<u32>();
    if i == 0 {
        *first = table.addr();
    }
    thread::sync_threads(); // the address is stored
    let moved = (table.addr() - *first) as u32 + (table.addr() % 128) as u32;
    let ends = word_at(ptr::from_ref(shape).cast());
    let word = word_at(table.add(63 - i));
    // Between the bytes of `shape` there is padding.
    *output.add(i) = moved.wrapping_add(word) ^ (ends & 0xFFFF_00FF) ^ u32::from(odd);
}
