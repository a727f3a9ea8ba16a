//! Lines from the device, written to the host's standard output: of numbers, of texts, of 128-bit
//! integers and by `{:?}`.

use cuda_std::prelude::*;
use cuda_std::println;

/// The expected output of [`print_lines`] for one CTA of two threads, in the order of the threads.
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

/// The expected output of [`print_texts`] for one thread.
#[cfg(not(cuda_device))]
pub const PRINTED_TEXTS: &str = "\
row 'A' [h\u{e9}] [   abc] [abc   ] \"a\\n\\\"b\\\"\"
340282366920938463463374607431768211455 -170141183460469231731687303715884105728 deadbeef00000000000000000000C0FFEE
7 -7 true 0.5     1
";

#[kernel]
pub unsafe fn print_texts(input: &[u32], _output: *mut u32) {
    // Not constants: 64 words come in.
    let count = input.len();
    let text = &"abcdef"[..count / 20];
    let one = (count / 64) as u128;
    println!(
        "row 'A' [{}] [{text:>6}] [{text:6}] {:?}",
        "h\u{e9}", "a\n\"b\""
    );
    println!(
        "{} {} {:x}{:X}",
        u128::MAX / one,
        i128::MIN + one as i128 - 1,
        (0xDEAD_BEEF * one) << 80,
        one * 0xC0_FFEE,
    );
    println!(
        "{:?} {:?} {:?} {:?} {one:5}",
        7u8,
        -7i64,
        count == 64,
        0.5f32
    );
}
