//! Parameters that a launch cannot pass.

use cuda_std::kernel;

struct Buffer {
    _elements: *mut f32,
}

#[kernel]
unsafe fn exclusive_slice(x: &mut [f32]) {
    x[0] = 1.0;
}

#[kernel]
unsafe fn not_copy(_buffer: Buffer) {}

#[kernel]
unsafe fn owned(_x: Vec<f32>) {}

#[kernel]
unsafe fn owned_part((_n, _x): (u32, Vec<f32>)) {}

#[kernel]
unsafe fn owned_by_reference(ref _x: Vec<f32>) {}

fn main() {}
