//! One thread block computes one row of C, and keeps the row of A for it in shared memory.
//!
//! Over `naive-kahan`: an element of A is read from global memory once, not N times. B is read as
//! often as before.
//! Global-memory reads: M*K + M*N*K      (naive: 2*M*N*K)
//! Shared-memory reads: M*N*K, all lanes the same element: a broadcast
//! Block: 256 threads, one row of C, 256 columns at a time, a thread a column; min(K, 4096)
//! elements of dynamic shared memory, allocated at launch. A longer row of A is staged in pieces,
//! again for every 256 columns. Any M, N, K.
//!
//! The sums are compensated, as in the lecture from which this rung comes.
//!
//! ```sh
//! cargo run -p host -- --kernel row-shared --m 100 --n 777 --k 10000
//! ```

use cuda_std::prelude::*;
use cuda_std::shared;

use crate::accumulator::{Accumulator, Compensated};
use crate::gemm::Gemm;
use crate::kernel::kernel;

pub(crate) const THREADS: usize = 256;
/// Elements of A that a block stages at a time: at most 16 KiB, so that shared memory has room for
/// all eight blocks, 2048 threads, of an SM.
pub(crate) const BK: usize = 4096;

/// The body, also for `pitched`. `a_row` is in shared memory.
#[inline(always)]
pub(crate) unsafe fn multiply(
    gemm: Gemm<'_, f32>,
    a_row: *mut f32, // (min(K, BK))
) {
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
            let length = (depth - k0).min(BK);
            // A row that fits is staged once; a longer one in pieces, again for every first_col.
            if staged != k0 {
                thread::sync_threads(); // every thread has finished reading the last piece
                let mut i = thread;
                while i < length {
                    *a_row.add(i) = gemm.a(row, k0 + i);
                    i += THREADS;
                }
                thread::sync_threads(); // the piece is complete
                staged = k0;
            }
            if col < gemm.n {
                for i in 0..length {
                    sum.add(*a_row.add(i), gemm.b(k0 + i, col));
                }
            }
            k0 += BK;
        }
        gemm.update(row, col, sum.value());
        first_col += THREADS;
    }
}

kernel! {
    name: "row-shared",
    idea: "one thread block computes one row of C; dynamic shared memory holds its row of A",
    variants: [
        "row-shared" = fn row_shared(gemm: f32)
            block(THREADS, 1) tile(1, THREADS, BK)
            {
                grid: Grid::Rows,
                staging: Staging::RowOfA,
                rounding: Rounding::Compensated,
            }
            => multiply(gemm, shared::dynamic_shared_mem::<f32>());
    ],
}
