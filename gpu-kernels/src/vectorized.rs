//! Vectorised access: floats travel four at a time between global memory, shared memory and registers.
//!
//! Over `register-blocked`: a quarter of the instructions for loads and stores (`LDG.128`, `STS.128`, `STG.128`); the bytes
//! are the same.
//! Global-memory reads: M*N*K * (1/128 + 1/128) elements, in M*N*K / 256 instructions of four
//! Shared-memory reads: M*N*K * (1/8 + 1/8)
//! Block: 16 x 16 threads, 128 x 128 patch of C, SN 8 or 16 deep. Any M, N, K: tiles that cross an edge, or rows that
//! are not aligned to 16 bytes, take a second path that looks at each element.
//!
//! ```sh
//! cargo run -p host -- --kernel vectorized --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::{launch_bounds, unroll};
use crate::float4::Float4;
use crate::gemm::{gemm_kernel, Gemm};
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Kernel};

/// Threads of a block along x and along y.
const BLOCK: usize = 16;
/// Rows and columns of C that a thread computes.
const PATCH: usize = 8;
/// Rows and columns of C that a block computes.
const TILE: usize = BLOCK * PATCH;
const THREADS: usize = BLOCK * BLOCK;

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "vectorized",
    idea: "four floats an access, between global memory, shared memory and registers",
    source: file!(),
    variants: &[
        variant!(
            "vectorized-sn8",
            F32(vectorized_sn8),
            block(BLOCK, BLOCK),
            tile(TILE, TILE, 8)
        ),
        variant!(
            "vectorized-sn16",
            F32(vectorized_sn16),
            block(BLOCK, BLOCK),
            tile(TILE, TILE, 16)
        ),
    ],
};

gemm_kernel! {
    fn vectorized_sn8(gemm: f32) {
        multiply::<1>(gemm, shared_array![f32; TILE * 8], shared_array![f32; 8 * TILE])
    }
}

gemm_kernel! {
    fn vectorized_sn16(gemm: f32) {
        multiply::<2>(gemm, shared_array![f32; TILE * 16], shared_array![f32; 16 * TILE])
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

/// `a_tile` is (TILE, SN) and `b_tile` is (SN, TILE), row-major, in shared memory. `GUARDED` unless the
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

    let mut sums = [[0.0f32; PATCH]; PATCH];
    let mut k0 = 0;
    while k0 < gemm.depth() {
        // Neighbouring threads fetch neighbouring fours of a row.
        for i in 0..SHARE {
            let at = (i * THREADS + thread) * 4;
            let four = gemm.a4::<GUARDED>(tile_row + at / sn, k0 + at % sn);
            four.write(a_tile.add(at));
        }
        for i in 0..SHARE {
            let at = (i * THREADS + thread) * 4;
            let four = gemm.b4::<GUARDED>(k0 + at / TILE, tile_col + at % TILE);
            four.write(b_tile.add(at));
        }
        thread::sync_threads(); // both tiles are whole

        // Four columns of A at a time, kept a loop: unrolled whole, reads are hoisted until registers run out (SN 16).
        for k4 in unroll::<1>(0..sn / 4) {
            let mut a_frag = [Float4::ZERO; PATCH];
            for i in 0..PATCH {
                a_frag[i] = Float4::read(a_tile.add((y * PATCH + i) * sn + k4 * 4));
            }
            for kk in 0..4 {
                let b_row = b_tile.add((k4 * 4 + kk) * TILE + x * PATCH);
                let b_frag = [Float4::read(b_row), Float4::read(b_row.add(4))];
                for i in 0..PATCH {
                    for j in 0..PATCH {
                        sums[i][j] += a_frag[i].0[kk] * b_frag[j / 4].0[j % 4];
                    }
                }
            }
        }
        thread::sync_threads(); // every thread has finished reading the tiles
        k0 += sn;
    }

    for i in 0..PATCH {
        let (row, col) = (tile_row + y * PATCH + i, tile_col + x * PATCH);
        let [a, b, c, d, e, f, g, h] = sums[i];
        gemm.update4::<GUARDED>(row, col, Float4([a, b, c, d]));
        gemm.update4::<GUARDED>(row, col + 4, Float4([e, f, g, h]));
    }
}
