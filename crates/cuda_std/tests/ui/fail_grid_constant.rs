//! Grid constants that are not.

use cuda_std::kernel;

#[kernel]
unsafe fn by_value(#[grid_constant] _table: [u32; 16]) {}

#[kernel]
unsafe fn exclusive(#[grid_constant] table: &mut [u32; 16]) {
    table[0] = 0;
}

#[kernel]
unsafe fn without_a_name(#[grid_constant] [_a, _b]: &[u32; 2]) {}

#[kernel]
unsafe fn with_an_argument(#[grid_constant(64)] _table: &[u32; 16]) {}

#[kernel]
unsafe fn without_a_length(#[grid_constant] _table: &[u32]) {}

#[kernel]
unsafe fn owned(#[grid_constant] _table: &Vec<u32>) {}

fn main() {}
