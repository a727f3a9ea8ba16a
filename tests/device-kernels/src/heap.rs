//! The device's heap: the types of `alloc`, and memory that threads pass to each other.

use cuda_std::prelude::*;
use cuda_std::shared_array;

#[cfg(not(cuda_device))]
use crate::probe::{Probe, of_threads, probe, scrambled};
use crate::write;

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        collections,
        input: scrambled,
        expected: |_, input| of_threads(|i| {
            let sum = input[..i % 16].iter().fold(0, |sum: u32, &word| sum.wrapping_add(word));
            let digits = (0..i % 7).map(|_| 'x' as u32).sum::<u32>() + 'é'.len_utf8() as u32;
            [sum, (i % 16) as u32, input[i], 3, digits, 0]
        }),
    ),
    probe!(
        boxes_handed_over,
        input: scrambled,
        expected: |_, input| input.iter().rev().map(|word| !word).collect(),
    ),
];

/// A larger alignment than `malloc`'s.
#[repr(align(64))]
struct Aligned([u32; 16]);

#[kernel]
pub unsafe fn collections(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let mut list = Vec::new();
    for &word in &input[..i % 16] {
        list.push(word);
    }
    let boxed = Box::new(Aligned([input[i]; 16]));
    let counted = Rc::new(input[i]);
    let (other, third) = (counted.clone(), counted.clone());
    let mut text = String::from("é");
    for _ in 0..i % 7 {
        text += "x";
    }
    cuda_std::assert_eq!(*other, *third);
    cuda_std::assert_ne!(text.len(), 100);
    let digits = text.bytes().filter(|&byte| byte == b'x').count() as u32 * 'x' as u32;
    let results = [
        list.iter()
            .fold(0, |sum: u32, &word| sum.wrapping_add(word)),
        list.len() as u32,
        boxed.0[i % 16],
        Rc::strong_count(&counted) as u32,
        digits + (text.len() - i % 7) as u32,
        ((&raw const *boxed).addr() % 64) as u32,
    ];
    write(results, output);
}

#[kernel]
pub unsafe fn boxes_handed_over(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let boxes = shared_array![*mut u32; 64];
    *boxes.add(63 - i) = Box::into_raw(Box::new(!input[i]));
    thread::sync_threads(); // every box is stored
    let word = Box::from_raw(*boxes.add(i));
    *output.add(i) = *word;
}
