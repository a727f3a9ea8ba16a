//! One thread computes one element of C, straight from global memory.
//!
//! Over `naive-1d`: a 2-D grid needs no division. Neighbouring threads (x) compute neighbouring
//! columns, so that a warp reads B and writes C in full cache lines, and one element of A serves
//! all its lanes.
//!
//! Every element of C reads a row of A and a column of B again:
//! Global-memory reads: 2*M*N*K, one for each flop: a compute-to-global-memory-access ratio of 1.0
//! Block: 64 x 4 threads, block tile 4 x 64. Any M, N, K.
//!
//! It is limited by the number of instructions around each FMA: two loads, and the arithmetic of
//! their addresses. With `unroll`, sixteen iterations of the loop share one counter and one
//! branch.
//!
//! ```sh
//! cargo run -p host -- --kernel naive --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;

use crate::compat::unroll;
use crate::gemm::Gemm;
use crate::kernel::kernel;

#[inline(always)]
unsafe fn multiply(gemm: Gemm<'_, f32>) {
    let position = thread::index_2d();
    let (row, col) = (position.y as usize, position.x as usize);
    if row >= gemm.m || col >= gemm.n {
        return; // the grid is rounded up to full blocks
    }
    let mut sum = 0.0;
    for i in unroll::<16>(0..gemm.depth()) {
        sum += gemm.a(row, i) * gemm.b(i, col);
    }
    gemm.update(row, col, sum);
}

// `kernel!` writes the entry point that every rung has, and its row in the table:
//
//     #[kernel]
//     pub unsafe fn naive(gemm: Gemm<'_, f32>) { // sizes, scalars, matrices and strides
//         let gemm = gemm.of_cta(); // this CTA's product in the batch
//         multiply(gemm)
//     }
kernel! {
    name: "naive",
    idea: "one thread computes one element of C; a 2-D grid",
    variants: [
        "naive" = fn naive(gemm: f32)
            // Faster than 32 x 8 and 16 x 16 (docs/src/tuning.md).
            block(64, 4) tile(4, 64, 1)
            => multiply(gemm);
    ],
}
