//! Lines from the device, written to the host's standard output.

use cuda_std::prelude::*;
use cuda_std::println;

/// What [`print_lines`] must print for one CTA of two threads, in the order of the threads.
#[cfg(not(cuda_device))]
pub const PRINTED: &str =
    "C[0][7] = -3, x = 0.5, 000000ff true\nC[1][7] = -2, x = 1.5, 000000fe false\n";

#[kernel]
pub unsafe fn print_lines(_input: &[u32], _output: *mut u32) {
    let row = thread::thread_idx_x();
    let sum = row as i32 - 3;
    let x = f64::from(row) + 0.5;
    println!(
        "C[{}][{}] = {sum}, x = {x}, {:08x} {}",
        row,
        7u64,
        255 - row,
        row == 0
    );
}
