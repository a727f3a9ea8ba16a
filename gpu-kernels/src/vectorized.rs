//! Vectorised access: 128-bit loads and stores (float4s) between global memory, shared memory and
//! registers.
//!
//! Over `register-blocked`: a quarter of the instructions for loads and stores (`LDG.128`,
//! `STS.128`, `STG.128`); the bytes are the same.
//! Global-memory reads: M*N*K * (1/BM + 1/BN) elements, in a quarter as many instructions
//! Shared-memory reads: M*N*K * (1/TM + 1/TN)
//! Block: 16 x 16 threads, block tile 128 x 128 x BK, BK 8 or 16, thread tile 8 x 8. Any M, N, K:
//! tiles that cross an edge, or rows that are not aligned to 16 bytes, take a second path, with
//! accesses predicated element by element.
//!
//! ```sh
//! cargo run -p host -- --kernel vectorized --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;

use crate::compat::unroll;
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

/// The body of every variant. The tiles are in shared memory, row-major.
#[inline(always)]
unsafe fn multiply<const BK: usize>(
    gemm: Gemm<'_, f32>,
    a_tile: *mut f32, // (BM, BK)
    b_tile: *mut f32, // (BK, BN)
) {
    const {
        assert!((BM * BK).is_multiple_of(4 * THREADS), "tiles split evenly");
        assert!(BM == BN, "a thread loads as many float4s of either tile");
        assert!(TM == 8 && TN == 8, "a fragment of B is two float4s");
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
    a_tile: *mut f32, // (BM, BK)
    b_tile: *mut f32, // (BK, BN)
    tile_row: usize,
    tile_col: usize,
) {
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let thread = y * THREADS_X + x;

    // The float4s of each tile that a thread loads in a k-iteration.
    let loads = BM * BK / (4 * THREADS);
    let mut accumulators = [[0.0f32; TN]; TM];
    let mut k0 = 0;
    while k0 < gemm.depth() {
        // Neighbouring threads load neighbouring float4s of a row.
        for i in 0..loads {
            let at = (i * THREADS + thread) * 4;
            let float4 = gemm.a4::<PREDICATED>(tile_row + at / BK, k0 + at % BK);
            float4.write(a_tile.add(at));
        }
        for i in 0..loads {
            let at = (i * THREADS + thread) * 4;
            let float4 = gemm.b4::<PREDICATED>(k0 + at / BN, tile_col + at % BN);
            float4.write(b_tile.add(at));
        }
        thread::sync_threads(); // both tiles are complete

        // Four columns of A at a time. It stays a loop: if it were fully unrolled, reads would be
        // hoisted until registers run out (BK 16).
        for k4 in unroll::<1>(0..BK / 4) {
            let mut a_frag = [Float4::ZERO; TM];
            for i in 0..TM {
                a_frag[i] = Float4::read(a_tile.add((y * TM + i) * BK + k4 * 4));
            }
            for k in 0..4 {
                let b_row = b_tile.add((k4 * 4 + k) * BN + x * TN);
                let b_frag = [Float4::read(b_row), Float4::read(b_row.add(4))];
                for i in 0..TM {
                    for j in 0..TN {
                        accumulators[i][j] += a_frag[i].0[k] * b_frag[j / 4].0[j % 4];
                    }
                }
            }
        }
        thread::sync_threads(); // every thread has finished reading the tiles
        k0 += BK;
    }

    for i in 0..TM {
        let (row, col) = (tile_row + y * TM + i, tile_col + x * TN);
        let [a, b, c, d, e, f, g, h] = accumulators[i];
        gemm.update4::<PREDICATED>(row, col, Float4([a, b, c, d]));
        gemm.update4::<PREDICATED>(row, col + 4, Float4([e, f, g, h]));
    }
}

kernel! {
    name: "vectorized",
    idea: "128-bit loads and stores: a float4 for each access to global and shared memory",
    variants: [
        "vectorized-k8" = fn vectorized_k8(gemm: f32)
            block(THREADS_X, THREADS_Y) tile(BM, BN, 8)
            shared(a_tile: [f32; BM * 8], b_tile: [f32; 8 * BN])
            launch_bounds(2)
            { vector_stores: true }
            => multiply::<8>(gemm, a_tile, b_tile);
        "vectorized-k16" = fn vectorized_k16(gemm: f32)
            block(THREADS_X, THREADS_Y) tile(BM, BN, 16)
            shared(a_tile: [f32; BM * 16], b_tile: [f32; 16 * BN])
            launch_bounds(2)
            { vector_stores: true }
            => multiply::<16>(gemm, a_tile, b_tile);
    ],
}
