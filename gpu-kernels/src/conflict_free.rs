//! No bank conflicts: what the lanes of a warp read from shared memory at once lies in different banks.
//!
//! Shared memory has 32 banks of 4 bytes; lanes that read different words of one bank wait for each other. Over
//! `vectorized`:
//! - A is stored transposed, so that the eight rows a thread needs of one column are neighbours: two reads of four
//!   instead of eight of one, SN apart;
//! - a thread's 8 x 8 patch is four 4 x 4 chunks half a tile apart, so that neighbouring lanes read neighbouring fours
//!   (with one patch of 8 they are 32 bytes apart, and half of the banks serve all of the lanes).
//!
//! Bank conflicts of all reads, as `ncu` counts them at 1024 cubed: 4,194,304 in `vectorized-sn8`, 0 here; with them, shared memory is
//! busy for 10,485,760 cycles there and for 6,291,456 here.
//!
//! Global-memory reads: M*N*K * (1/128 + 1/128), as before
//! Shared-memory reads: M*N*K * (1/8 + 1/8), four at a time
//! Block: 16 x 16 threads, 128 x 128 patch of C, SN 8 or 16 deep. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel conflict-free --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::launch_bounds;
use crate::float4::Float4;
use crate::gemm::{gemm_kernel, Gemm};
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Kernel};

/// Threads of a block along x and along y.
const BLOCK: usize = 16;
const THREADS: usize = BLOCK * BLOCK;
/// Rows and columns of C that a block computes.
const TILE: usize = 128;
/// From a thread's first four rows (columns) of C to its other four.
const HALF: usize = TILE / 2;
/// Elements from one row of the transposed A tile to the next: 4 more than it holds, so that the stores of a
/// warp, which walk down a column, spread over the banks.
const A_STRIDE: usize = TILE + 4;

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "conflict-free",
    idea: "A transposed and patches split in four, so that lanes read from different banks",
    source: file!(),
    variants: &[
        variant!(
            "conflict-free-sn8",
            F32(conflict_free_sn8),
            block(BLOCK, BLOCK),
            tile(TILE, TILE, 8)
        ),
        variant!(
            "conflict-free-sn16",
            F32(conflict_free_sn16),
            block(BLOCK, BLOCK),
            tile(TILE, TILE, 16)
        ),
    ],
};

gemm_kernel! {
    fn conflict_free_sn8(gemm: f32) {
        multiply::<1>(gemm, shared_array![f32; 8 * A_STRIDE], shared_array![f32; 8 * TILE])
    }
}

gemm_kernel! {
    fn conflict_free_sn16(gemm: f32) {
        multiply::<2>(gemm, shared_array![f32; 16 * A_STRIDE], shared_array![f32; 16 * TILE])
    }
}

/// The body of every variant. `SHARE` is how many `Float4` of A, and of B, a thread carries from global to shared memory
/// a step; the tiles are SN = 8 * SHARE deep.
#[inline(always)]
unsafe fn multiply<const SHARE: usize>(gemm: Gemm<'_, f32>, a_tile: *mut f32, b_tile: *mut f32) {
    launch_bounds::<{ THREADS as u32 }, 2>();
    let tile_row = thread::block_idx_y() as usize * TILE;
    let tile_col = thread::block_idx_x() as usize * TILE;
    let whole = gemm.tile_is_whole(tile_row, tile_col, TILE, 8 * SHARE);
    if whole && gemm.rows_are_float4_aligned() {
        steps::<SHARE, false>(gemm, a_tile, b_tile, tile_row, tile_col)
    } else {
        steps::<SHARE, true>(gemm, a_tile, b_tile, tile_row, tile_col)
    }
}

/// `a_tile` is (SN, A_STRIDE), A transposed; `b_tile` is (SN, TILE); both in shared memory. `GUARDED` unless the
/// block's tiles are whole and the rows aligned.
#[inline(always)]
unsafe fn steps<const SHARE: usize, const GUARDED: bool>(
    gemm: Gemm<'_, f32>,
    a_tile: *mut f32,
    b_tile: *mut f32,
    tile_row: usize,
    tile_col: usize,
) {
    let sn = 8 * SHARE;
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let thread = y * BLOCK + x;
    let (row, col) = (y * 4, x * 4);

    let mut sums = [[0.0f32; 8]; 8];
    let mut k0 = 0;
    while k0 < gemm.depth() {
        for i in 0..SHARE {
            let at = (i * THREADS + thread) * 4;
            let (a_row, a_col) = (at / sn, at % sn);
            let a = gemm.a4::<GUARDED>(tile_row + a_row, k0 + a_col);
            let b = gemm.b4::<GUARDED>(k0 + at / TILE, tile_col + at % TILE);
            for j in 0..4 {
                *a_tile.add((a_col + j) * A_STRIDE + a_row) = a.0[j];
            }
            b.write(b_tile.add(at));
        }
        thread::sync_threads(); // both tiles are whole

        for kk in 0..sn {
            let a_column = a_tile.add(kk * A_STRIDE + row);
            let b_row = b_tile.add(kk * TILE + col);
            let a_frag = [Float4::read(a_column), Float4::read(a_column.add(HALF))];
            let b_frag = [Float4::read(b_row), Float4::read(b_row.add(HALF))];
            for i in 0..8 {
                for j in 0..8 {
                    sums[i][j] += a_frag[i / 4].0[i % 4] * b_frag[j / 4].0[j % 4];
                }
            }
        }
        thread::sync_threads(); // every thread has finished reading the tiles
        k0 += sn;
    }

    for i in 0..8 {
        let c_row = tile_row + row + i / 4 * HALF + i % 4;
        let [a, b, c, d, e, f, g, h] = sums[i];
        gemm.update4::<GUARDED>(c_row, tile_col + col, Float4([a, b, c, d]));
        gemm.update4::<GUARDED>(c_row, tile_col + col + HALF, Float4([e, f, g, h]));
    }
}
