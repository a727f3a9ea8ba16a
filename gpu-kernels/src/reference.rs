//! Not a rung: the reference for `f64` results, where the host would take minutes.
//!
//! Each sum is as accurate as in twice the precision, and rounded once (`Dot2`). One thread
//! computes one element of C, as in `naive`; each product takes ten additions and multiplications
//! instead of two.
//!
//! Global-memory reads: 2*M*N*K
//! Block: 64 x 4 threads, block tile 4 x 64. Any M, N, K.

use cuda_std::prelude::*;

use crate::accumulator::{Accumulator, Dot2};
use crate::gemm::Gemm;
use crate::kernel::kernel;

kernel! {
    name: "reference",
    idea: "sums as if in twice the precision of f64",
    variants: [
        "reference-f64" = fn reference_f64(gemm: f64)
            block(64, 4) tile(4, 64, 1)
            { rounding: Rounding::Compensated }
            => multiply(gemm);
    ],
}

#[inline(always)]
unsafe fn multiply(gemm: Gemm<'_, f64>) {
    let position = thread::index_2d();
    let (row, col) = (position.y as usize, position.x as usize);
    if row >= gemm.m || col >= gemm.n {
        return; // the grid is rounded up to full blocks
    }
    let mut sum = Dot2::EMPTY;
    for i in 0..gemm.depth() {
        sum.add(gemm.a(row, i), gemm.b(i, col));
    }
    gemm.update(row, col, sum.value());
}
