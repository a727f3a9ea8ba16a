//! Compensated summation: the rounding error of a sum is carried along instead of lost.
//!
//! Over `naive`: errors of about two units of u * sum |a||b| instead of up to K, for four
//! additions a product instead of one. They cost little: the kernel mostly waits for memory.
//! Global-memory reads: 2*M*N*K, as before
//! Block: 64 x 4 threads, block tile 4 x 64. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel naive,naive-kahan --m 64 --n 64 --k 100000
//! ```

use cuda_std::prelude::*;

use crate::accumulator::{Accumulator, Compensated};
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
    let mut sum = Compensated::EMPTY;
    for i in unroll::<16>(0..gemm.depth()) {
        sum.add(gemm.a(row, i), gemm.b(i, col));
    }
    gemm.update(row, col, sum.value());
}

kernel! {
    name: "naive-kahan",
    idea: "compensated (Kahan) summation: two units of rounding are lost, however long the sum",
    variants: [
        "naive-kahan" = fn naive_kahan(gemm: f32)
            block(64, 4) tile(4, 64, 1)
            { rounding: Rounding::Compensated }
            => multiply(gemm);
    ],
}
