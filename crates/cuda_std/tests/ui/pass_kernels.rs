//! Everything that a kernel may be.

use cuda_std::prelude::*;

const THREADS: u32 = 128;

#[kernel]
pub unsafe fn every_parameter(
    _a: i8,
    _b: u64,
    _c: usize,
    _d: f32,
    _e: f64,
    _f: bool,
    _g: *const f32,
    _h: *mut (i32, u8),
    _i: &u32,
    _j: &[f64],
) {
}

#[kernel(max_threads = THREADS * 2, min_blocks = 2)]
pub(crate) unsafe fn bounded(mut count: u32) {
    count += 1;
    let _ = count;
}

#[kernel(min_blocks = 1,)]
#[allow(dead_code)]
unsafe fn with_a_lifetime<'a>(_values: &'a [f32]) {}

fn main() {
    let _: unsafe fn(u32) = bounded;
}
