//! Register blocking: each thread keeps an 8 x 8 patch of C in registers.
//!
//! Over `tiled`: one value read from shared memory now feeds eight FMAs instead of one.
//! Shared-memory reads: M*N*K * (1/8 + 1/8)          (tiled: 2*M*N*K)
//! Global-memory reads: M*N*K * (1/128 + 1/128)      (tiled: M*N*K * 2/TILE)
//! Block: 16 x 16 threads, 128 x 128 patch of C, SN 8 or 16 deep. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel register-blocked --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::launch_bounds;
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
    name: "register-blocked",
    idea: "an 8 x 8 patch of C in each thread's registers",
    source: file!(),
    variants: &[
        variant!(
            "register-blocked-sn8",
            F32(register_blocked_sn8),
            block(BLOCK, BLOCK),
            tile(TILE, TILE, 8)
        ),
        variant!(
            "register-blocked-sn16",
            F32(register_blocked_sn16),
            block(BLOCK, BLOCK),
            tile(TILE, TILE, 16)
        ),
    ],
};

gemm_kernel! {
    fn register_blocked_sn8(gemm: f32) {
        multiply::<8>(gemm, shared_array![f32; TILE * 8], shared_array![f32; 8 * TILE])
    }
}

gemm_kernel! {
    fn register_blocked_sn16(gemm: f32) {
        multiply::<16>(gemm, shared_array![f32; TILE * 16], shared_array![f32; 16 * TILE])
    }
}

/// The body of every variant. `a_tile` is (TILE, SN) and `b_tile` is (SN, TILE), row-major, in shared memory.
#[inline(always)]
unsafe fn multiply<const SN: usize>(gemm: Gemm<'_, f32>, a_tile: *mut f32, b_tile: *mut f32) {
    const {
        assert!(
            (TILE * SN).is_multiple_of(THREADS),
            "a tile must split evenly over the block"
        )
    }
    launch_bounds::<{ THREADS as u32 }, 2>();

    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let thread = y * BLOCK + x;
    let tile_row = thread::block_idx_y() as usize * TILE;
    let tile_col = thread::block_idx_x() as usize * TILE;

    let mut sums = [[0.0f32; PATCH]; PATCH];
    let mut k0 = 0;
    while k0 < gemm.depth() {
        // Neighbouring threads fetch neighbouring elements of a row.
        for i in 0..TILE * SN / THREADS {
            let at = i * THREADS + thread;
            *a_tile.add(at) = gemm.a_or_zero(tile_row + at / SN, k0 + at % SN);
        }
        for i in 0..TILE * SN / THREADS {
            let at = i * THREADS + thread;
            *b_tile.add(at) = gemm.b_or_zero(k0 + at / TILE, tile_col + at % TILE);
        }
        thread::sync_threads(); // both tiles are whole

        // A column of A times a row of B is an outer product: 16 reads feed 64 FMAs.
        for kk in 0..SN {
            let mut a_frag = [0.0; PATCH];
            let mut b_frag = [0.0; PATCH];
            for i in 0..PATCH {
                a_frag[i] = *a_tile.add((y * PATCH + i) * SN + kk);
                b_frag[i] = *b_tile.add(kk * TILE + x * PATCH + i);
            }
            for i in 0..PATCH {
                for j in 0..PATCH {
                    sums[i][j] += a_frag[i] * b_frag[j];
                }
            }
        }
        thread::sync_threads(); // every thread has finished reading the tiles
        k0 += SN;
    }

    for i in 0..PATCH {
        for j in 0..PATCH {
            gemm.update(
                tile_row + y * PATCH + i,
                tile_col + x * PATCH + j,
                sums[i][j],
            );
        }
    }
}
