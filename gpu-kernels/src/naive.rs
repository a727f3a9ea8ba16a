//! One thread computes one element of C, straight from global memory.
//!
//! Every sum reads a row of A and a column of B again:
//! Global-memory reads: 2*M*N*K, one for each flop: a compute-to-global-memory-access ratio of 1.0
//! Block: 64 x 4 threads, 4 x 64 patch of C. Any M, N, K.
//!
//! Over `naive-1d`: a 2-D grid makes the division unnecessary. Neighbouring threads (x) take neighbouring columns, so that a
//! warp reads B and writes C in whole cache lines, and one element of A serves all of its lanes.
//!
//! What limits it is the number of instructions around each FMA: two loads, and the arithmetic of their addresses. Sixteen steps
//! of the loop at a time (`unroll`) share the counting: 6.5 TFLOP/s instead of 5.2 (4096, H200); with blocks of 32 x 8
//! threads it is 6.3, with 16 x 16 5.4.
//!
//! ```sh
//! cargo run -p host -- --kernel naive --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;

use crate::beyond::unroll;
use crate::gemm::Gemm;
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Kernel};

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "naive",
    idea: "one thread, one element of C, from a 2-D grid",
    source: file!(),
    variants: &[variant!("naive", F32(naive), block(64, 4), tile(4, 64, 1))],
};

// The signature that every kernel has, spelled out here once; `gemm_kernel!` writes it for the rungs that follow.
#[kernel]
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn naive(
    m: usize,
    n: usize,
    k: usize,
    alpha: f32,
    a: &[f32],
    lda: usize,
    b: &[f32],
    ldb: usize,
    beta: f32,
    c: *mut f32,
    ldc: usize,
) {
    let gemm = Gemm {
        m,
        n,
        k,
        alpha,
        a,
        lda,
        b,
        ldb,
        beta,
        c,
        ldc,
    };
    let position = thread::index_2d();
    let (row, col) = (position.y as usize, position.x as usize);
    if row >= m || col >= n {
        return; // the grid is rounded up to whole blocks
    }
    let mut sum = 0.0;
    for i in unroll::<16>(0..gemm.depth()) {
        sum += gemm.a(row, i) * gemm.b(i, col);
    }
    gemm.update(row, col, sum);
}
