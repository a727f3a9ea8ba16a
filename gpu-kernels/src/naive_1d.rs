//! One thread computes one element of C; a 1-D grid numbers the elements, and a division gives row
//! and column.
//!
//! Every element of C reads a row of A and a column of B again, straight from global memory.
//! Global-memory reads: 2*M*N*K, one for each flop
//! Block: 256 threads, 256 consecutive elements of C. Any M, N, K.
//!
//! Which elements are consecutive decides everything. A load of a warp is one request, for 4
//! sectors of 32 bytes if its lanes read neighbours, for 32 if they read 32 rows ("coalescing"):
//! - `naive-1d` counts down the columns of C: the lanes of a warp are neighbours in a column,
//!   their loads of A are LDA apart, and their stores of C are LDC apart;
//! - `naive-1d-rows` counts along the rows: the lanes are neighbours in a row, load neighbours of
//!   B, and all the same element of A.
//!
//! ```sh
//! cargo run -p host -- --kernel naive-1d,naive-1d-rows --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;

use crate::gemm::Gemm;
use crate::kernel::kernel;

const THREADS: usize = 256;

/// The body of both variants, which differ in the direction to the next thread.
#[inline(always)]
unsafe fn multiply<const ALONG_ROWS: bool>(gemm: Gemm<'_, f32>) {
    let thread = thread::thread_idx_x() as usize;
    let index = thread::block_idx_x() as usize * THREADS + thread;
    if index >= gemm.m * gemm.n {
        return; // the grid is rounded up to full blocks
    }
    let (row, col) = if ALONG_ROWS {
        (index / gemm.n, index % gemm.n)
    } else {
        (index % gemm.m, index / gemm.m)
    };
    let mut sum = 0.0;
    for i in 0..gemm.depth() {
        sum += gemm.a(row, i) * gemm.b(i, col);
    }
    gemm.update(row, col, sum);
}

kernel! {
    name: "naive-1d",
    idea: "one thread computes one element of C; a 1-D grid, row and column by division",
    variants: [
        "naive-1d" = fn naive_1d(gemm: f32)
            block(THREADS, 1) tile(1, THREADS, 1)
            { grid: Grid::Linear }
            => multiply::<false>(gemm);
        "naive-1d-rows" = fn naive_1d_rows(gemm: f32)
            block(THREADS, 1) tile(1, THREADS, 1)
            { grid: Grid::Linear }
            => multiply::<true>(gemm);
    ],
}
