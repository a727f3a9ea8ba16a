//! Thread coarsening: a thread computes eight elements of a column of C instead of one.
//!
//! Over `tiled`: an element of B, once read from shared memory, serves eight FMAs; and a grid of so many blocks covers a C
//! eight times as tall. Where even that is not enough (a grid has at most 65535 blocks along y), the host cuts C into bands
//! of rows and launches once for each.
//! Global-memory reads: M*N*K * (1/32 + 1/64)      (tiled-32: M*N*K * (1/32 + 1/32))
//! Shared-memory reads: M*N*K * (1 + 1/8)          (tiled: 2*M*N*K), those of A broadcasts
//! Block: 32 x 8 threads, 64 x 32 patch of C, 32 deep. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel thread-coarsened --m 5000000 --n 3 --k 5
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::gemm::{gemm_kernel, Gemm};
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Kernel};

/// Columns of C that a block computes, and the depth of its tiles.
const TILE: usize = 32;
/// Threads of a block along y.
const THREADS_Y: usize = 8;
/// Elements of C that a thread computes, THREADS_Y rows apart.
const COARSE: usize = 8;
/// Rows of C that a block computes.
const ROWS: usize = THREADS_Y * COARSE;

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "thread-coarsened",
    idea: "eight elements of C a thread: a value of B from shared memory serves them all",
    source: file!(),
    variants: &[variant!(
        "thread-coarsened",
        F32(thread_coarsened),
        block(TILE, THREADS_Y),
        tile(ROWS, TILE, TILE)
    )],
};

gemm_kernel! {
    fn thread_coarsened(gemm: f32) {
        multiply(gemm, shared_array![f32; ROWS * TILE], shared_array![f32; TILE * TILE])
    }
}

/// `a_tile` is (ROWS, TILE), `b_tile` is (TILE, TILE), row-major, in shared memory.
#[inline(always)]
unsafe fn multiply(gemm: Gemm<'_, f32>, a_tile: *mut f32, b_tile: *mut f32) {
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let tile_row = thread::block_idx_y() as usize * ROWS;
    let col = thread::block_idx_x() as usize * TILE + x;

    let mut sums = [0.0f32; COARSE];
    let mut k0 = 0;
    while k0 < gemm.depth() {
        for i in 0..COARSE {
            let row = y + i * THREADS_Y;
            *a_tile.add(row * TILE + x) = gemm.a_or_zero(tile_row + row, k0 + x);
        }
        for i in 0..TILE / THREADS_Y {
            let row = y + i * THREADS_Y;
            *b_tile.add(row * TILE + x) = gemm.b_or_zero(k0 + row, col);
        }
        thread::sync_threads(); // both tiles are whole

        for kk in 0..TILE {
            let b = *b_tile.add(kk * TILE + x);
            for i in 0..COARSE {
                sums[i] += *a_tile.add((y + i * THREADS_Y) * TILE + kk) * b;
            }
        }
        thread::sync_threads(); // every thread has finished reading the tiles
        k0 += TILE;
    }

    for i in 0..COARSE {
        gemm.update(tile_row + y + i * THREADS_Y, col, sums[i]);
    }
}
