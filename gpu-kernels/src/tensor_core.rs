//! Tensor cores for short elements: bf16 and f16 (`tensor_core_half.rs`, to be read first), and
//! here f32 rounded to tf32, with about half of the precision at more than twice the speed.
//!
//! Over bf16:
//! - `mma::m16n8k8_tf32` multiplies elements of 11 bits exactly, and adds the products in f32 with
//!   truncation. So this kernel is less accurate than those in f32 before it, has its own error
//!   bound (docs/src/error-analysis.md), and runs only if `--math tf32` allows it;
//! - elements are rounded to tf32, to nearest, after they are read from shared memory
//!   (`mma::round_to_tf32`). Otherwise the instruction truncates them: twice the error, all in one
//!   direction;
//! - `ldmatrix` does not transpose elements of 32 bits. It loads fragments of A, whose rows run
//!   along K; lanes read those of B element by element.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/WM + 1/WN); 3 * 4 * BK * (BM + BN) bytes a CTA
//! Block: 128 threads in 2 x 2 warps, block tile 128 x 128 x 16, warp tile 64 x 64, 8 x 16 a
//! thread. Any M, N, K. Since compute capability 8.0.
//!
//! ```sh
//! cargo run -p host -- --kernel tensor-core --math tf32 --m 1000 --n 777 --k 123
//! ```

use cuda_std::mma::{self, Layout};
use cuda_std::prelude::*;

use crate::compat::pipeline;
use crate::epilogue::Epilogue;
use crate::fix_up_half::sink;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::half::{Bf16, F16};
use crate::kernel::{each_of_16_bits, kernel};
use crate::raster;
use crate::tensor_core_half::{self, KMajor, MnMajor};
use crate::warpgroup::layout;

/// Block tile.
const BM: usize = 128;
const BN: usize = 128;
const BK: usize = 16;
/// Warp tile.
const WM: usize = 64;
const WN: usize = 64;
/// Warps of a CTA along M and N.
const WARPS_M: usize = BM / WM;
const WARPS_N: usize = BN / WN;
const THREADS: usize = 32 * WARPS_M * WARPS_N;
/// The fragments of one instruction.
const FRAGMENTS: Layout = Layout::M16N8K8_TF32;
/// Instructions along M, N and K that a warp needs for a tile.
const STEPS_M: usize = WM / 16;
const STEPS_N: usize = WN / 8;
const STEPS_K: usize = BK / 8;
/// Tiles of A, and of B, in the ring buffer.
const STAGES: usize = 3;
/// Elements of a stage: a tile of A and one of B.
const A_TILE: usize = BM * BK;
const STAGE: usize = A_TILE + BK * BN;
/// Copies of 16 bytes that a thread issues for a tile of A, and of B.
const COPIES: usize = A_TILE / 4 / THREADS;

/// The offset of element (row, k) in a tile of A: a row is four float4s, half of all banks, and
/// their order changes with every second row, so that the eight rows that `ldmatrix` reads at once
/// are in different banks.
///
/// ```text
///   row 0   | k 0 ..  3 | k 4 ..  7 | k 8 .. 11 | k 12 .. 15 |    banks  0 .. 15
///   row 1   | k 0 ..  3 | k 4 ..  7 | k 8 .. 11 | k 12 .. 15 |          16 .. 31
///   row 2   | k 4 ..  7 | k 0 ..  3 | k 12 .. 15 | k 8 .. 11 |           0 .. 15
///   row 4   | k 8 .. 11 | k 12 .. 15 | k 0 ..  3 | k 4 ..  7 |           0 .. 15
///   row 6   | k 12 .. 15 | k 8 .. 11 | k 4 ..  7 | k 0 ..  3 |           0 .. 15
///   row 8 as row 0 ...
/// ```
#[inline(always)]
const fn in_a_tile(row: usize, k: usize) -> usize {
    row * BK + (k ^ (row / 2 % 4 * 4))
}

/// The offset of element (k, col) in a tile of B: a row is a multiple of all banks, and each of
/// four rows has its pieces of eight elements in another order, so that the eight columns of four
/// rows that a warp reads at once are in different banks.
///
/// ```text
///   k 0   | col  0 ..  7 | col  8 .. 15 | col 16 .. 23 | col 24 .. 31 | 32 ...
///   k 1   | col  8 .. 15 | col  0 ..  7 | col 24 .. 31 | col 16 .. 23 |
///   k 2   | col 16 .. 23 | col 24 .. 31 | col  0 ..  7 | col  8 .. 15 |
///   k 3   | col 24 .. 31 | col 16 .. 23 | col  8 .. 15 | col  0 ..  7 |
///   k 4 as k 0 ...
/// ```
#[inline(always)]
const fn in_b_tile(k: usize, col: usize) -> usize {
    k * BN + (col ^ (k % 4 * 8))
}

/// The body. The stages are in shared memory.
#[inline(always)]
unsafe fn multiply(
    gemm: Gemm<'_, f32, f32, f32, impl Epilogue>,
    stages: *mut f32, // (STAGES, A: BM x BK, B: BK x BN)
) {
    const {
        assert!(BM == BN, "a thread copies as much of either tile");
        assert!(COPIES * 4 * THREADS == A_TILE, "tiles split evenly");
        assert!(BK == STEPS_K * FRAGMENTS.depth as usize, "full fragments");
        assert!(WM == 16 * STEPS_M && WN == 8 * STEPS_N, "full fragments");
        assert!(STAGES >= 2, "one stage is read, the others arrive");
    }
    let depth = gemm.depth();
    let thread = thread::thread_idx_x() as usize;
    let (blocks_x, blocks_y) = (thread::grid_dim_x() as usize, thread::grid_dim_y() as usize);
    let block = thread::block_idx_y() as usize * blocks_x + thread::block_idx_x() as usize;
    let (tile_row, tile_col) = raster::tile_position(block, blocks_y, blocks_x);
    let (tile_row, tile_col) = (tile_row * BM, tile_col * BN);

    // The copies of this thread, a float4 at a time: BK / 4 neighbours copy a row of A, BN / 4
    // neighbours one of B.
    let (a_row, a_k) = (thread / (BK / 4), thread % (BK / 4) * 4);
    let (b_k, b_col) = (thread / (BN / 4), thread % (BN / 4) * 4);
    let (a_rows, b_rows) = (THREADS / (BK / 4), THREADS / (BN / 4));
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
                a_tile.add(in_a_tile(row, k)).cast::<Float4>(),
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
                b_tile.add(in_b_tile(k, col)).cast::<Float4>(),
                gemm.b.as_ptr().wrapping_add(source).cast(),
                in_bounds,
            );
        }
    };

    // The first row and column of this thread's warp in the block tile.
    let (warp, lane) = (thread / 32, thread as u32 % 32);
    let (row, col) = (warp / WARPS_N * WM, warp % WARPS_N * WN);

    let mut accumulators = [[[0.0f32; 4]; STEPS_N]; STEPS_M];
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
        for step in 0..STEPS_K {
            let mut a_frag = [[0.0f32; 4]; STEPS_M];
            let mut b_frag = [[0.0f32; 2]; STEPS_N];
            for i in 0..STEPS_M {
                // The four 8 x 4 matrices of a fragment: lanes 0 to 7 address the rows of the
                // first, which is above the second and left of the third.
                let (m, k) = (lane as usize % 16, lane as usize / 16 * 4);
                let place = in_a_tile(row + 16 * i + m, 8 * step + k);
                let registers = mma::ldmatrix_x4(a_tile.add(place).cast_const());
                a_frag[i] = registers.map(|bits| mma::round_to_tf32(f32::from_bits(bits)));
            }
            for j in 0..STEPS_N {
                for element in 0..2 {
                    let (k, n) = FRAGMENTS.b(lane, element as u32);
                    let place = in_b_tile(8 * step + k as usize, col + 8 * j + n as usize);
                    b_frag[j][element] = mma::round_to_tf32(*b_tile.add(place));
                }
            }
            for i in 0..STEPS_M {
                for index in 0..STEPS_N {
                    let j = raster::serpentine(i, index, STEPS_N);
                    accumulators[i][j] =
                        mma::m16n8k8_tf32(a_frag[i], b_frag[j], accumulators[i][j]);
                }
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

/// The bytes of the float4 at `start` that are before `end`.
#[inline(always)]
fn bytes_in_bounds(start: usize, end: usize) -> u32 {
    let elements = end.saturating_sub(start);
    if elements < 4 {
        4 * elements as u32
    } else {
        16
    }
}

/// The table: tf32, and rows of 16 bits (`tensor_core_half.rs`).
macro_rules! table {
    ($(
        $name:tt $entry:ident ($($types:tt)+) $input:ident $output:ident $a:ident $b:ident ();
    )*) => {
        kernel! {
            name: "tensor-core",
            idea: "tensor cores: a warp multiplies 16 x 16 by 16 x 8 elements of bf16 or f16 at once",
            epilogue: any,
            variants: [
                "tensor-core" = fn tensor_core(gemm: f32)
                    block(THREADS, 1) tile(BM, BN, BK)
                    shared(stages: [f32; STAGES * STAGE])
                    launch_bounds(2)
                    {
                        unit: Unit::TensorCores { warp_tile: (WM as u32, WN as u32) },
                        least_capability: 80,
                        thread_tile: (2 * STEPS_M as u32, 2 * STEPS_N as u32),
                        a: OperandLayout::K_MAJOR_ALIGNED,
                        b: OperandLayout::MN_MAJOR_ALIGNED,
                        rounding: Rounding::Tf32,
                        rate: Some(Rate::h200(150.0, 0.7, 2)),
                    }
                    => multiply(gemm, stages);
                $(
                    $name = fn $entry(gemm: $($types)+)
                        block(tensor_core_half::THREADS, 1) tile(tensor_core_half::BM, tensor_core_half::BN, tensor_core_half::BK)
                        shared(stages: [u16; tensor_core_half::ELEMENTS])
                        launch_bounds(2)
                        {
                            unit: Unit::TensorCores {
                                warp_tile: (tensor_core_half::WM as u32, tensor_core_half::WN as u32)
                            },
                            least_capability: 80,
                            grid: Grid::StreamK,
                            thread_tile: (2 * tensor_core_half::STEPS_M as u32, 2 * tensor_core_half::STEPS_N as u32),
                            a: layout!($a),
                            b: layout!($b),
                            rate: Some(Rate::h200(380.0, 0.7, 2)),
                        }
                        => tensor_core_half::multiply::<$input, $a, $b, _>(
                            gemm, sink!($output)(&gemm), stages,
                        );
                )*
            ],
        }
    };
}

each_of_16_bits!(table! { "tensor-core" tensor_core (); });
