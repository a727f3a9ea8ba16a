//! A block computes a row of C, and keeps the row of A that all of its elements need in shared memory.
//!
//! Over `naive-kahan`: an element of A is read from global memory once, not N times. B is read as often as before:
//! Global-memory reads: M*K + M*N*K      (naive: 2*M*N*K)
//! Shared-memory reads: M*N*K, all lanes the same element: a broadcast
//! Block: 256 threads, one row of C, 256 columns at a time, a thread a column; min(K, 4096) elements of dynamic shared
//! memory, whose size is given at launch. A longer row of A comes in parts, again for every 256 columns. Any M, N, K.
//!
//! The sums are compensated, as in the lecture that this rung comes from.
//!
//! ```sh
//! cargo run -p host -- --kernel row-shared --m 100 --n 777 --k 10000
//! ```

use cuda_std::prelude::*;
use cuda_std::shared;

use crate::gemm::{gemm_kernel, Gemm};
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Grid, Kernel, Stages};
use crate::sum::{Compensated, Sum};

pub(crate) const THREADS: usize = 256;
/// Elements of A that a block keeps at most: 16 KiB, little enough for eight blocks, or 2048 threads, a multiprocessor.
pub(crate) const PART: usize = 4096;

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "row-shared",
    idea: "a block a row of C: its row of A is read once, into dynamic shared memory",
    source: file!(),
    variants: &[variant!(
        "row-shared",
        F32(row_shared),
        block(THREADS, 1),
        tile(1, THREADS, PART),
        grid: Grid::Rows,
        stages: Stages::RowOfA,
    )],
};

gemm_kernel! {
    fn row_shared(gemm: f32) {
        multiply(gemm, shared::dynamic_shared_mem::<f32>())
    }
}

/// `row_part` holds min(K, PART) elements, in shared memory.
#[inline(always)]
pub(crate) unsafe fn multiply(gemm: Gemm<'_, f32>, row_part: *mut f32) {
    let row = thread::block_idx_x() as usize;
    let thread = thread::thread_idx_x() as usize;
    let depth = gemm.depth();

    // The first column of A in shared memory: none yet.
    let mut staged = usize::MAX;
    let mut first_col = 0;
    while first_col < gemm.n {
        let col = first_col + thread;
        let mut sum = Compensated::EMPTY;
        let mut k0 = 0;
        while k0 < depth {
            let length = (depth - k0).min(PART);
            // A row that fits is staged once; the parts of a longer one take turns.
            if staged != k0 {
                thread::sync_threads(); // every thread has finished reading the part before
                let mut i = thread;
                while i < length {
                    *row_part.add(i) = gemm.a(row, k0 + i);
                    i += THREADS;
                }
                thread::sync_threads(); // the part is whole
                staged = k0;
            }
            if col < gemm.n {
                for i in 0..length {
                    sum.add(*row_part.add(i), gemm.b(k0 + i, col));
                }
            }
            k0 += PART;
        }
        gemm.update(row, col, sum.value());
        first_col += THREADS;
    }
}
