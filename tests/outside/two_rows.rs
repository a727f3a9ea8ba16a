//! One thread computes two elements of C, one below the other, and reads B once for both.
//!
//! Global-memory reads: 1.5*M*N*K. Block: 64 x 4 threads, block tile 8 x 64. Any M, N, K.

use cuda_std::prelude::*;

use crate::gemm::Gemm;
use crate::kernel::kernel;

kernel! {
    name: "two-rows",
    idea: "one thread, two elements of C, one below the other",
    variants: [
        "two-rows" = fn two_rows(gemm: f32) block(64, 4) tile(8, 64, 1) => multiply(gemm);
    ],
}

#[inline(always)]
unsafe fn multiply(gemm: Gemm<'_, f32>) {
    let position = thread::index_2d();
    let (row, col) = (2 * position.y as usize, position.x as usize);
    if row >= gemm.m || col >= gemm.n {
        return;
    }
    let mut sums = [0.0; 2];
    for i in 0..gemm.depth() {
        let b = gemm.b(i, col);
        sums[0] += gemm.a(row, i) * b;
        sums[1] += gemm.a_or_zero(row + 1, i) * b;
    }
    gemm.update(row, col, sums[0]);
    gemm.update(row + 1, col, sums[1]);
}
