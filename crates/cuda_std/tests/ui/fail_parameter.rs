//! Parameters that a launch cannot pass.

use cuda_std::kernel;

#[derive(Clone, Copy)]
struct Shape {
    m: usize,
    n: usize,
}

#[kernel]
unsafe fn exclusive_slice(x: &mut [f32]) {
    x[0] = 1.0;
}

#[kernel]
unsafe fn by_value(shape: Shape) {
    let _ = shape.m * shape.n;
}

#[kernel]
unsafe fn owned(_x: Vec<f32>) {}

#[kernel]
unsafe fn too_wide(_x: u128) {}

#[kernel]
unsafe fn fat_pointer(_x: *const [f32]) {}

fn main() {}
