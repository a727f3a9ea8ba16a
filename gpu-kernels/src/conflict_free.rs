//! Reads of shared memory without bank conflicts: the lanes of a warp read from different banks.
//!
//! Shared memory has 32 banks of 4 bytes; lanes that read different words of one bank wait for
//! each other. Over `vectorized`:
//! - A is stored transposed, so that a thread's eight elements of one column are neighbours: two
//!   float4s instead of eight elements BK apart;
//! - a thread tile is 2 x 2 pieces of 4 x 4, half a block tile apart, so that neighbouring lanes
//!   read neighbouring float4s (with one piece of 8 x 8 these would be 32 bytes apart, and half of
//!   the banks would serve all lanes).
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN), as before
//! Shared-memory reads: M*N*K * (1/TM + 1/TN), as float4s
//! Block: 16 x 16 threads, block tile 128 x 128 x BK, BK 8 or 16, thread tile 8 x 8. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel conflict-free --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;

use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::kernel::kernel;

/// Block tile, square, and thread tile.
const BM: usize = 128;
const BN: usize = BM;
const TM: usize = 8;
const TN: usize = 8;
/// Threads of a block along x and y.
const THREADS_X: usize = BN / TN;
const THREADS_Y: usize = BM / TM;
const THREADS: usize = THREADS_X * THREADS_Y;
/// The distance from a thread's first four rows (columns) of C to the other four.
const HALF: usize = BM / 2;
/// Elements from one row of the transposed A tile to the next, 4 more than a row has. A warp
/// stores to two rows (BK = 8), in different banks, or to four (BK = 16): two-way conflicts.
const A_STRIDE: usize = BM + 4;

/// The body of every variant. The tiles are in shared memory.
#[inline(always)]
unsafe fn multiply<const BK: usize>(
    gemm: Gemm<'_, f32>,
    a_tile: *mut f32, // (BK, A_STRIDE): A is stored transposed
    b_tile: *mut f32, // (BK, BN)
) {
    const {
        assert!((BM * BK).is_multiple_of(4 * THREADS), "tiles split evenly");
        assert!(BM == BN, "a thread loads as many float4s of either tile");
        assert!(TM == 8 && TN == 8, "a fragment is two float4s");
    }
    let tile_row = thread::block_idx_y() as usize * BM;
    let tile_col = thread::block_idx_x() as usize * BN;
    let is_exact = gemm.tile_is_exact(tile_row, tile_col, BM, BK);
    if is_exact && gemm.rows_are_float4_aligned() {
        mainloop::<BK, false>(gemm, a_tile, b_tile, tile_row, tile_col)
    } else {
        mainloop::<BK, true>(gemm, a_tile, b_tile, tile_row, tile_col)
    }
}

/// All k-iterations, and the epilogue. `PREDICATED` unless the tile is exact and the rows are
/// aligned.
#[inline(always)]
unsafe fn mainloop<const BK: usize, const PREDICATED: bool>(
    gemm: Gemm<'_, f32>,
    a_tile: *mut f32, // (BK, A_STRIDE)
    b_tile: *mut f32, // (BK, BN)
    tile_row: usize,
    tile_col: usize,
) {
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let thread = y * THREADS_X + x;
    let (row, col) = (y * 4, x * 4);

    // The float4s of each tile that a thread loads in a k-iteration.
    let loads = BM * BK / (4 * THREADS);
    let mut accumulators = [[0.0f32; TN]; TM];
    let mut k0 = 0;
    while k0 < gemm.depth() {
        for i in 0..loads {
            let at = (i * THREADS + thread) * 4;
            let (a_row, a_col) = (at / BK, at % BK);
            let a = gemm.a4::<PREDICATED>(tile_row + a_row, k0 + a_col);
            let b = gemm.b4::<PREDICATED>(k0 + at / BN, tile_col + at % BN);
            for j in 0..4 {
                *a_tile.add((a_col + j) * A_STRIDE + a_row) = a.0[j];
            }
            b.write(b_tile.add(at));
        }
        thread::sync_threads(); // both tiles are complete

        for k in 0..BK {
            let a_column = a_tile.add(k * A_STRIDE + row);
            let b_row = b_tile.add(k * BN + col);
            let a_frag = [Float4::read(a_column), Float4::read(a_column.add(HALF))];
            let b_frag = [Float4::read(b_row), Float4::read(b_row.add(HALF))];
            for i in 0..TM {
                for j in 0..TN {
                    accumulators[i][j] += a_frag[i / 4].0[i % 4] * b_frag[j / 4].0[j % 4];
                }
            }
        }
        thread::sync_threads(); // every thread has finished reading the tiles
        k0 += BK;
    }

    for i in 0..TM {
        let c_row = tile_row + row + i / 4 * HALF + i % 4;
        let [a, b, c, d, e, f, g, h] = accumulators[i];
        gemm.update4::<PREDICATED>(c_row, tile_col + col, Float4([a, b, c, d]));
        gemm.update4::<PREDICATED>(c_row, tile_col + col + HALF, Float4([e, f, g, h]));
    }
}

kernel! {
    name: "conflict-free",
    idea: "reads without bank conflicts: A is staged transposed, and each thread tile is split in four",
    variants: [
        "conflict-free-k8" = fn conflict_free_k8(gemm: f32)
            block(THREADS_X, THREADS_Y) tile(BM, BN, 8)
            shared(a_tile: [f32; 8 * A_STRIDE], b_tile: [f32; 8 * BN])
            launch_bounds(2)
            { vector_stores: true }
            => multiply::<8>(gemm, a_tile, b_tile);
        "conflict-free-k16" = fn conflict_free_k16(gemm: f32)
            block(THREADS_X, THREADS_Y) tile(BM, BN, 16)
            shared(a_tile: [f32; 16 * A_STRIDE], b_tile: [f32; 16 * BN])
            launch_bounds(2)
            { vector_stores: true }
            => multiply::<16>(gemm, a_tile, b_tile);
    ],
}
