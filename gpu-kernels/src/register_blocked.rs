//! Register blocking: each thread keeps a thread tile of C, 8 x 8, in registers.
//!
//! Over `tiled`: one value read from shared memory now serves eight FMAs instead of one.
//! Shared-memory reads: M*N*K * (1/TM + 1/TN)      (tiled: 2*M*N*K)
//! Global-memory reads: M*N*K * (1/BM + 1/BN)      (tiled: M*N*K * 2/TILE)
//! Block: 16 x 16 threads, block tile 128 x 128 x BK, BK 8 or 16, thread tile 8 x 8. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel register-blocked --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;

use crate::gemm::Gemm;
use crate::kernel::kernel;

/// Block tile, and thread tile.
const BM: usize = 128;
const BN: usize = 128;
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
        assert!((BM * BK).is_multiple_of(THREADS), "A splits evenly");
        assert!((BK * BN).is_multiple_of(THREADS), "B splits evenly");
        assert!(TM == TN, "one loop reads both fragments");
    }
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let thread = y * THREADS_X + x;
    let tile_row = thread::block_idx_y() as usize * BM;
    let tile_col = thread::block_idx_x() as usize * BN;

    let mut accumulators = [[0.0f32; TN]; TM];
    let mut k0 = 0;
    while k0 < gemm.depth() {
        // Neighbouring threads load neighbouring elements of a row.
        for i in 0..BM * BK / THREADS {
            let at = i * THREADS + thread;
            *a_tile.add(at) = gemm.a_or_zero(tile_row + at / BK, k0 + at % BK);
        }
        for i in 0..BK * BN / THREADS {
            let at = i * THREADS + thread;
            *b_tile.add(at) = gemm.b_or_zero(k0 + at / BN, tile_col + at % BN);
        }
        thread::sync_threads(); // both tiles are complete

        // A column of A times a row of B is an outer product: 16 reads for 64 FMAs.
        for k in 0..BK {
            let mut a_frag = [0.0; TM];
            let mut b_frag = [0.0; TN];
            for i in 0..TM {
                a_frag[i] = *a_tile.add((y * TM + i) * BK + k);
                b_frag[i] = *b_tile.add(k * BN + x * TN + i);
            }
            for i in 0..TM {
                for j in 0..TN {
                    accumulators[i][j] += a_frag[i] * b_frag[j];
                }
            }
        }
        thread::sync_threads(); // every thread has finished reading the tiles
        k0 += BK;
    }

    for i in 0..TM {
        for j in 0..TN {
            gemm.update(
                tile_row + y * TM + i,
                tile_col + x * TN + j,
                accumulators[i][j],
            );
        }
    }
}

kernel! {
    name: "register-blocked",
    idea: "each thread keeps an 8 x 8 thread tile of C in registers",
    variants: [
        "register-blocked-k8" = fn register_blocked_k8(gemm: f32)
            block(THREADS_X, THREADS_Y) tile(BM, BN, 8)
            shared(a_tile: [f32; BM * 8], b_tile: [f32; 8 * BN])
            launch_bounds(2)
            => multiply::<8>(gemm, a_tile, b_tile);
        "register-blocked-k16" = fn register_blocked_k16(gemm: f32)
            block(THREADS_X, THREADS_Y) tile(BM, BN, 16)
            shared(a_tile: [f32; BM * 16], b_tile: [f32; 16 * BN])
            launch_bounds(2)
            => multiply::<16>(gemm, a_tile, b_tile);
    ],
}
