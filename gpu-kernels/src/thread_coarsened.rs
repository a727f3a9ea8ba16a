//! Thread coarsening: a thread computes eight elements of a column of C instead of one.
//!
//! Over `tiled`: an element of B, once read from shared memory, serves eight FMAs; and the same
//! number of blocks covers a C eight times as tall. If even that is not enough (a grid has at most
//! 65535 blocks along y), the host cuts C into bands of rows and launches once for each.
//! Global-memory reads: M*N*K * (1/32 + 1/64)      (tiled-32: M*N*K * (1/32 + 1/32))
//! Shared-memory reads: M*N*K * (1 + 1/8)          (tiled: 2*M*N*K), those of A broadcasts
//! Block: 32 x 8 threads, block tile 64 x 32 x 32, thread tile 8 x 1. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel thread-coarsened --m 5000000 --n 3 --k 5
//! ```

use cuda_std::prelude::*;

use crate::gemm::Gemm;
use crate::kernel::kernel;

/// Block tile.
const BM: usize = THREADS_Y * TM;
const BN: usize = 32;
const BK: usize = 32;
/// Rows of C that a thread computes, THREADS_Y rows apart.
const TM: usize = 8;
/// Threads of a block along y; along x there is one for each column.
const THREADS_Y: usize = 8;

/// The tiles are in shared memory, row-major.
#[inline(always)]
unsafe fn multiply(
    gemm: Gemm<'_, f32>,
    a_tile: *mut f32, // (BM, BK)
    b_tile: *mut f32, // (BK, BN)
) {
    const {
        assert!(BK == BN, "a row of threads loads a row of either tile");
        assert!(BK.is_multiple_of(THREADS_Y), "B splits evenly");
    }
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let tile_row = thread::block_idx_y() as usize * BM;
    let col = thread::block_idx_x() as usize * BN + x;

    let mut sums = [0.0f32; TM];
    let mut k0 = 0;
    while k0 < gemm.depth() {
        for i in 0..BM / THREADS_Y {
            let row = y + i * THREADS_Y;
            *a_tile.add(row * BK + x) = gemm.a_or_zero(tile_row + row, k0 + x);
        }
        for i in 0..BK / THREADS_Y {
            let row = y + i * THREADS_Y;
            *b_tile.add(row * BN + x) = gemm.b_or_zero(k0 + row, col);
        }
        thread::sync_threads(); // both tiles are complete

        for k in 0..BK {
            let b = *b_tile.add(k * BN + x);
            for i in 0..TM {
                sums[i] += *a_tile.add((y + i * THREADS_Y) * BK + k) * b;
            }
        }
        thread::sync_threads(); // every thread has finished reading the tiles
        k0 += BK;
    }

    for i in 0..TM {
        gemm.update(tile_row + y + i * THREADS_Y, col, sums[i]);
    }
}

kernel! {
    name: "thread-coarsened",
    idea: "one thread computes eight elements of C from each value of B in shared memory",
    variants: [
        "thread-coarsened" = fn thread_coarsened(gemm: f32)
            block(BN, THREADS_Y) tile(BM, BN, BK)
            shared(a_tile: [f32; BM * BK], b_tile: [f32; BK * BN])
            => multiply(gemm, a_tile, b_tile);
    ],
}
