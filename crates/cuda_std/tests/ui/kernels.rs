//! Everything that a kernel may be, without a warning.

#![allow(dead_code, clippy::all, clippy::undocumented_unsafe_blocks)]
#![deny(unused_braces)]

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

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Shape {
    m: usize,
    n: usize,
}

#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    _elements: &'a [f32],
}

#[kernel]
pub unsafe fn every_value(
    _a: Shape,
    _b: [Shape; 4],
    _c: (u8, f64),
    _d: u128,
    _e: char,
    _f: Option<u32>,
    _g: Matrix,
    _h: Matrix<'_>,
    _i: (),
    _j: *const [f32],
    _k: std::num::NonZeroU32,
    _: i128,
    Shape { m, mut n }: Shape,
) {
    n += m;
    let _ = n;
}

#[kernel]
pub unsafe fn on_one_line(x: *mut u32) { unsafe { *x = 1 } }

#[kernel]
pub unsafe fn grid_constant(#[grid_constant] _table: &[u32; 16], _x: u32) {}

#[kernel(max_threads = THREADS * 2, min_blocks = 2)]
pub(crate) unsafe fn bounded(mut count: u32) {
    count += 1;
    let _ = count;
}

#[kernel(min_blocks = 1,)]
#[allow(dead_code)]
unsafe fn with_a_lifetime<'a>(_values: &'a [f32], _matrix: Matrix<'a>) {}

#[kernel(maxnreg = 64, max_threads = THREADS, cluster_dim = (2, THREADS / 128, 1))]
pub unsafe fn clustered() {}

/// Scales the elements.
#[kernel(
    max_threads = 64,
    instantiate(
        scale_f32 = scale::<f32, 4>,
        scale_pairs = scale::<(u8, u8), { 2 + 2 }>,
    ),
)]
pub unsafe fn scale<'a, T: Copy, const N: usize>(
    _x: &'a [T],
    mut _by: [T; N],
    #[grid_constant] _table: &[T; N],
    _item: <[T; N] as std::ops::Index<usize>>::Output,
) where
    T: 'static,
{
}

#[test]
fn instances_of_generic_kernels_have_their_types() {
    let _: unsafe fn(u32) = bounded;
    let _: unsafe fn(&[f32], [f32; 4], &[f32; 4], f32) = scale_f32;
    let _: unsafe fn(&[(u8, u8)], [(u8, u8); 4], &[(u8, u8); 4], (u8, u8)) = scale_pairs;
    let _: unsafe fn(&[u8], [u8; 1], &[u8; 1], u8) = scale::<u8, 1>;
}
