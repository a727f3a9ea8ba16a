//! Warp tiling: each warp owns a 64 x 64 patch of C, and each of its threads 16 x 8 of that.
//!
//! Over `double-buffer`: a patch of 16 x 8 instead of 8 x 8. Six reads of four feed 128 FMAs, not four of them 64, so that 92 % of
//! the inner loop are FMAs (before: 88 %). It takes twice the registers a thread, which leaves room for 8 warps a
//! multiprocessor instead of 16. So few warps do not hide each other's waiting: here all depends on reading one step ahead
//! (read where it is needed, 40 instead of 51 TFLOP/s at 4096 on an H200). What it gains in instructions it loses in
//! waiting: it is as fast as `double-buffer`.
//!
//! Global-memory reads: M*N*K * (1/128 + 1/128), as before
//! Shared-memory reads: M*N*K * (1/16 + 1/8), four at a time; 2 * 4 * 8 * (132 + 128) bytes a block
//! Block: 16 x 8 threads in 2 x 2 warps, 128 x 128 patch of C, 8 deep. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-tiled --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::launch_bounds;
use crate::float4::Float4;
use crate::gemm::{gemm_kernel, Gemm};
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Kernel};

/// Threads of a block along x and along y.
const BLOCK_X: usize = 16;
const BLOCK_Y: usize = 8;
const THREADS: usize = BLOCK_X * BLOCK_Y;
/// Rows and columns of C that a block computes.
const TILE: usize = 128;
/// Columns of A, rows of B, that a block stages at a time.
const DEPTH: usize = 8;
/// Rows and columns of C that a thread computes, in chunks of four rows and of four columns.
const PATCH_M: usize = 16;
const PATCH_N: usize = 8;
/// Lanes of a warp along M and along N, and from a thread's chunk to its next.
const LANES_M: usize = 4;
const LANES_N: usize = 8;
const NEXT_ROWS: usize = 4 * LANES_M;
const NEXT_COLS: usize = 4 * LANES_N;
/// Rows and columns of C that a warp computes.
const WARP_M: usize = PATCH_M * LANES_M;
const WARP_N: usize = PATCH_N * LANES_N;
/// Elements from one row of the transposed A tile to the next: 4 more than it holds, so that the stores of a warp, which
/// walk down a column, spread over the banks.
const A_STRIDE: usize = TILE + 4;
/// `Float4` of A, and of B, that a thread carries from global to shared memory for a tile.
const SHARE: usize = TILE * DEPTH / 4 / THREADS;

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "warp-tiled",
    idea: "16 x 8 elements of C a thread, 64 x 64 a warp: six reads feed 128 FMAs",
    source: file!(),
    variants: &[variant!(
        "warp-tiled",
        F32(warp_tiled),
        block(BLOCK_X, BLOCK_Y),
        tile(TILE, TILE, DEPTH)
    )],
};

gemm_kernel! {
    fn warp_tiled(gemm: f32) {
        multiply(gemm, shared_array![f32; 2 * DEPTH * A_STRIDE], shared_array![f32; 2 * DEPTH * TILE])
    }
}

#[inline(always)]
unsafe fn multiply(gemm: Gemm<'_, f32>, a_tiles: *mut f32, b_tiles: *mut f32) {
    launch_bounds::<{ THREADS as u32 }, 2>();
    let tile_row = thread::block_idx_y() as usize * TILE;
    let tile_col = thread::block_idx_x() as usize * TILE;
    let whole = gemm.tile_is_whole(tile_row, tile_col, TILE, DEPTH);
    if whole && gemm.rows_are_float4_aligned() {
        pipeline::<false>(gemm, a_tiles, b_tiles, tile_row, tile_col)
    } else {
        pipeline::<true>(gemm, a_tiles, b_tiles, tile_row, tile_col)
    }
}

/// What a thread multiplies at a time: 16 elements of a column of A and 8 of a row of B.
type Fragments = ([Float4; PATCH_M / 4], [Float4; PATCH_N / 4]);

/// `a_tiles` is (2, DEPTH, A_STRIDE), A transposed; `b_tiles` is (2, DEPTH, TILE); both in shared memory. `GUARDED` unless
/// the block's tiles are whole and the rows aligned.
#[inline(always)]
unsafe fn pipeline<const GUARDED: bool>(
    gemm: Gemm<'_, f32>,
    a_tiles: *mut f32,
    b_tiles: *mut f32,
    tile_row: usize,
    tile_col: usize,
) {
    let depth = gemm.depth();
    let thread = thread::thread_idx_y() as usize * BLOCK_X + thread::thread_idx_x() as usize;

    // What this thread carries: two neighbours fetch a row of the A tile, 32 neighbours a row of the B tile.
    let (a_row, a_col) = (thread / 2, thread % 2 * 4);
    let (b_row, b_col) = (thread / 32, thread % 32 * 4);
    let a_rows = THREADS / 2;
    let b_rows = THREADS / 32;

    // What this thread computes: the first of its rows and columns in the block's tile.
    let (warp, lane) = (thread / 32, thread % 32);
    let (lane_m, lane_n) = (lane / 16 * 2 + lane % 2, lane / 2 % 8);
    let row = warp / 2 * WARP_M + lane_m * 4;
    let col = warp % 2 * WARP_N + lane_n * 4;

    // Pointers that walk along, since a multiplication for each address would cost as many instructions as the loads.
    let mut a_global = gemm
        .a
        .as_ptr()
        .wrapping_add((tile_row + a_row) * gemm.lda + a_col);
    let mut b_global = gemm
        .b
        .as_ptr()
        .wrapping_add(b_row * gemm.ldb + tile_col + b_col);
    let mut fetch = |k0: usize| {
        let mut a = [Float4::ZERO; SHARE];
        let mut b = [Float4::ZERO; SHARE];
        for i in 0..SHARE {
            if GUARDED {
                a[i] = gemm.a4::<true>(tile_row + a_row + i * a_rows, k0 + a_col);
                b[i] = gemm.b4::<true>(k0 + b_row + i * b_rows, tile_col + b_col);
            } else {
                a[i] = Float4::read(a_global.wrapping_add(i * a_rows * gemm.lda));
                b[i] = Float4::read(b_global.wrapping_add(i * b_rows * gemm.ldb));
            }
        }
        a_global = a_global.wrapping_add(DEPTH);
        b_global = b_global.wrapping_add(DEPTH * gemm.ldb);
        (a, b)
    };
    let store = |buffer: usize, a: [Float4; SHARE], b: [Float4; SHARE]| {
        let a_tile = a_tiles.add(buffer * DEPTH * A_STRIDE);
        let b_tile = b_tiles.add(buffer * DEPTH * TILE);
        for i in 0..SHARE {
            for j in 0..4 {
                *a_tile.add((a_col + j) * A_STRIDE + a_row + i * a_rows) = a[i].0[j];
            }
            b[i].write(b_tile.add((b_row + i * b_rows) * TILE + b_col));
        }
    };
    let read = |buffer: usize, k: usize| -> Fragments {
        let a_column = a_tiles.add((buffer * DEPTH + k) * A_STRIDE + row);
        let b_row = b_tiles.add((buffer * DEPTH + k) * TILE + col);
        let mut a_frag = [Float4::ZERO; PATCH_M / 4];
        let mut b_frag = [Float4::ZERO; PATCH_N / 4];
        for i in 0..PATCH_M / 4 {
            a_frag[i] = Float4::read(a_column.add(i * NEXT_ROWS));
        }
        for j in 0..PATCH_N / 4 {
            b_frag[j] = Float4::read(b_row.add(j * NEXT_COLS));
        }
        (a_frag, b_frag)
    };
    let mut sums = [[0.0f32; PATCH_N]; PATCH_M];
    // To and fro, so that each FMA shares an operand with the one before it.
    let mut multiply = |(a_frag, b_frag): Fragments| {
        for i in 0..PATCH_M {
            for turn in 0..PATCH_N {
                let j = if i % 2 == 0 { turn } else { PATCH_N - 1 - turn };
                sums[i][j] += a_frag[i / 4].0[i % 4] * b_frag[j / 4].0[j % 4];
            }
        }
    };

    if depth > 0 {
        let (a, b) = fetch(0);
        store(0, a, b);
        thread::sync_threads(); // the first tiles are whole

        let mut buffer = 0;
        let mut now = read(0, 0);
        let mut k0 = DEPTH;
        while k0 < depth {
            let (a, b) = fetch(k0); // on its way while the FMAs below run
            for k in 1..DEPTH {
                let next = read(buffer, k);
                multiply(now);
                now = next;
            }
            buffer = 1 - buffer;
            store(buffer, a, b);
            thread::sync_threads(); // the next tiles are whole, and every thread has finished reading these
            let next = read(buffer, 0);
            multiply(now);
            now = next;
            k0 += DEPTH;
        }
        for k in 1..DEPTH {
            let next = read(buffer, k);
            multiply(now);
            now = next;
        }
        multiply(now);
    }

    for i in 0..PATCH_M {
        for j in 0..PATCH_N / 4 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|lane| sums[i][4 * j + lane]);
            gemm.update4::<GUARDED>(
                tile_row + row + i / 4 * NEXT_ROWS + i % 4,
                tile_col + col + j * NEXT_COLS,
                Float4([a, b, c, d]),
            );
        }
    }
}
