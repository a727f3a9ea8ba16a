//! Tensor cores for f64 (DMMA): a warp multiplies 16 x 8 x 8 elements with one instruction.
//!
//! Over `tensor-core`:
//! - `mma::m16n8k8_f64` takes elements of 64 bits, which `ldmatrix` cannot load: lanes read them
//!   one by one, and no two lanes of a warp read the same element of a tile;
//! - A is copied K-major, as stored, since lanes read single elements: nothing is transposed;
//! - in shared memory elements of a tile are swizzled in pieces of 4 (32 bytes), so that the 8
//!   rows of a fragment that a warp reads at once are in different banks without padding: three
//!   stages fill the 48 KiB that a CTA's arrays may have.
//!
//! It rounds as the CUDA cores do: each product is an IEEE FMA.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/WM + 1/WN), where a thread tile had 1/TM + 1/TN;
//! 3 * 8 * BK * (BM + BN) bytes a CTA
//! Block: 256 threads in 2 x 4 warps, block tile 128 x 128 x 8, warp tile 64 x 32, 8 x 8 a thread.
//! Any M, N, K. Since compute capability 8.0; before 9.0 it takes four instructions of 8 x 8 x 4.
//!
//! ```sh
//! cargo run -p host -- --kernel fp64-tensor --dtype f64 --m 1000 --n 777 --k 123
//! ```

use cuda_std::mma::{self, Layout};
use cuda_std::prelude::*;

use crate::compat::pipeline;
use crate::gemm::Gemm;
use crate::kernel::kernel;
use crate::raster;

/// Block tile.
const BM: usize = 128;
const BN: usize = 128;
const BK: usize = 8;
/// Warp tile.
const WM: usize = 64;
const WN: usize = 32;
/// Warps of a CTA along M and N.
const WARPS_M: usize = BM / WM;
const WARPS_N: usize = BN / WN;
const THREADS: usize = 32 * WARPS_M * WARPS_N;
/// The fragments of one instruction.
const FRAGMENTS: Layout = Layout::M16N8K8_F64;
/// Instructions along M and N that a warp needs for its tile.
const STEPS_M: usize = WM / 16;
const STEPS_N: usize = WN / 8;
/// Tiles of A, and of B, in the ring buffer.
const STAGES: usize = 3;
/// Elements of a stage: a tile of A and one of B.
const A_TILE: usize = BM * BK;
const STAGE: usize = A_TILE + BK * BN;
/// Copies of 16 bytes that a thread issues for a tile of A, and of B.
const COPIES: usize = A_TILE / 2 / THREADS;

/// The offset of element (row, k) in a tile of A. Rows are 8 elements long, half of all banks. To
/// avoid conflicts between rows two apart, every second pair of rows has its halves swapped:
///
/// ```text
///   row 0   | k 0 1 2 3 | k 4 5 6 7 |      banks  0 ..  7,  8 .. 15
///   row 1   | k 0 1 2 3 | k 4 5 6 7 |            16 .. 23, 24 .. 31
///   row 2   | k 4 5 6 7 | k 0 1 2 3 |             0 ..  7,  8 .. 15
///   row 3   | k 4 5 6 7 | k 0 1 2 3 |            16 .. 23, 24 .. 31
///   row 4 as row 0 ...
/// ```
///
/// 16 lanes read at once: k 0 to 3, or k 4 to 7, of four rows.
#[inline(always)]
const fn in_a_tile(row: usize, k: usize) -> usize {
    row * BK + (k ^ (row / 2 % 2 * 4))
}

/// The offset of element (k, col) in a tile of B. A row is a multiple of all banks, so each of
/// four rows has its pieces of four elements in another order:
///
/// ```text
///   k 0   | col  0 ..  3 | col  4 ..  7 | col  8 .. 11 | col 12 .. 15 | 16 ...
///   k 1   | col  4 ..  7 | col  0 ..  3 | col 12 .. 15 | col  8 .. 11 |
///   k 2   | col  8 .. 11 | col 12 .. 15 | col  0 ..  3 | col  4 ..  7 |
///   k 3   | col 12 .. 15 | col  8 .. 11 | col  4 ..  7 | col  0 ..  3 |
///   k 4 as k 0 ...
/// ```
///
/// 16 lanes read at once: four columns of k 0 to 3, or of k 4 to 7.
#[inline(always)]
const fn in_b_tile(k: usize, col: usize) -> usize {
    k * BN + (col ^ (k % 4 * 4))
}

/// The body. The stages are in shared memory.
#[inline(always)]
unsafe fn multiply(
    gemm: Gemm<'_, f64>,
    stages: *mut f64, // (STAGES, A: BM x BK, B: BK x BN)
) {
    const {
        assert!(BM == BN, "a thread copies as much of either tile");
        assert!(COPIES * 2 * THREADS == A_TILE, "tiles split evenly");
        assert!(BK == FRAGMENTS.depth as usize, "one instruction along K");
        assert!(WM == 16 * STEPS_M && WN == 8 * STEPS_N, "full fragments");
        assert!(STAGES >= 2, "one stage is read, the others arrive");
    }
    let depth = gemm.depth();
    let thread = thread::thread_idx_x() as usize;
    let (blocks_x, blocks_y) = (thread::grid_dim_x() as usize, thread::grid_dim_y() as usize);
    let block = thread::block_idx_y() as usize * blocks_x + thread::block_idx_x() as usize;
    let (tile_row, tile_col) = raster::tile_position(block, blocks_y, blocks_x);
    let (tile_row, tile_col) = (tile_row * BM, tile_col * BN);

    // The copies of this thread, two elements at a time: BK / 2 neighbours copy a row of A, BN / 2
    // neighbours one of B.
    let (a_row, a_k) = (thread / (BK / 2), thread % (BK / 2) * 2);
    let (b_k, b_col) = (thread / (BN / 2), thread % (BN / 2) * 2);
    let (a_rows, b_rows) = (THREADS / (BK / 2), THREADS / (BN / 2));
    let copy = |stage: usize, k0: usize| {
        let a_tile = stages.add(stage * STAGE);
        let b_tile = a_tile.add(A_TILE);
        for i in 0..COPIES {
            let (row, k) = (a_row + i * a_rows, a_k);
            let in_bounds = if tile_row + row < gemm.m {
                bytes_in_bounds(k0 + k, depth)
            } else {
                0
            };
            let source = (tile_row + row) * gemm.lda + k0 + k;
            pipeline::memcpy_async_zfill(
                a_tile.add(in_a_tile(row, k)).cast::<[f64; 2]>(),
                gemm.a.as_ptr().wrapping_add(source).cast(),
                in_bounds,
            );
        }
        for i in 0..COPIES {
            let (k, col) = (b_k + i * b_rows, b_col);
            let in_bounds = if k0 + k < depth {
                bytes_in_bounds(tile_col + col, gemm.n)
            } else {
                0
            };
            let source = (k0 + k) * gemm.ldb + tile_col + col;
            pipeline::memcpy_async_zfill(
                b_tile.add(in_b_tile(k, col)).cast::<[f64; 2]>(),
                gemm.b.as_ptr().wrapping_add(source).cast(),
                in_bounds,
            );
        }
    };

    // The first row and column of this thread's warp in the block tile.
    let (warp, lane) = (thread / 32, thread as u32 % 32);
    let (row, col) = (warp / WARPS_N * WM, warp % WARPS_N * WN);

    let mut accumulators = [[[0.0f64; 4]; STEPS_N]; STEPS_M];
    let k_iterations = depth.div_ceil(BK);
    for stage in 0..STAGES - 1 {
        if stage < k_iterations {
            copy(stage, stage * BK);
        }
        pipeline::commit();
    }
    let mut stage = 0;
    for iteration in 0..k_iterations {
        pipeline::wait_prior::<{ STAGES as u32 - 2 }>();
        // This stage is complete, and every thread has finished reading the previous one.
        thread::sync_threads();
        let next = iteration + STAGES - 1;
        if next < k_iterations {
            let free = if stage == 0 { STAGES - 1 } else { stage - 1 };
            copy(free, next * BK);
        }
        pipeline::commit();

        let a_tile = stages.add(stage * STAGE);
        let b_tile = a_tile.add(A_TILE);
        let mut a_frag = [[0.0f64; 4]; STEPS_M];
        let mut b_frag = [[0.0f64; 2]; STEPS_N];
        for i in 0..STEPS_M {
            for element in 0..4 {
                let (m, k) = FRAGMENTS.a(lane, element as u32);
                let m = row + 16 * i + m as usize;
                a_frag[i][element] = *a_tile.add(in_a_tile(m, k as usize));
            }
        }
        for j in 0..STEPS_N {
            for element in 0..2 {
                let (k, n) = FRAGMENTS.b(lane, element as u32);
                let n = col + 8 * j + n as usize;
                b_frag[j][element] = *b_tile.add(in_b_tile(k as usize, n));
            }
        }
        for i in 0..STEPS_M {
            for index in 0..STEPS_N {
                let j = raster::serpentine(i, index, STEPS_N);
                accumulators[i][j] = mma::m16n8k8_f64(a_frag[i], b_frag[j], accumulators[i][j]);
            }
        }
        stage = if stage == STAGES - 1 { 0 } else { stage + 1 };
    }

    for i in 0..STEPS_M {
        for j in 0..STEPS_N {
            for element in 0..4 {
                let (m, n) = FRAGMENTS.c(lane, element as u32);
                gemm.update(
                    tile_row + row + 16 * i + m as usize,
                    tile_col + col + 8 * j + n as usize,
                    accumulators[i][j][element],
                );
            }
        }
    }
}

/// The bytes of the two elements at `start` that are before `end`.
#[inline(always)]
fn bytes_in_bounds(start: usize, end: usize) -> u32 {
    if start + 1 < end {
        16
    } else if start < end {
        8
    } else {
        0
    }
}

kernel! {
    name: "fp64-tensor",
    idea: "tensor cores in double precision: as exact as an FMA, at twice the speed of the CUDA cores",
    variants: [
        "fp64-tensor" = fn fp64_tensor(gemm: f64)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(stages: [f64; STAGES * STAGE])
            launch_bounds(1)
            {
                unit: Unit::TensorCores { warp_tile: (WM as u32, WN as u32) },
                least_capability: 80,
                thread_tile: (2 * STEPS_M as u32, 2 * STEPS_N as u32),
                a: OperandLayout::K_MAJOR_ALIGNED,
                b: OperandLayout::MN_MAJOR_ALIGNED,
                rate: Some(Rate::h200(38.0, 1.0, 1)),
            }
            => multiply(gemm, stages);
    ],
}
