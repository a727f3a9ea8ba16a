//! Double buffering: the next tiles travel from global memory while these are multiplied.
//!
//! Over `conflict-free`:
//! - two shared buffers: the loads of step i + 1 are issued before the FMAs of step i, and go to the buffer that nobody reads.
//!   A waits in registers while those run, since it is transposed on its way; B is copied straight to shared memory
//!   (`cp.async`, from compute capability 8.0 on; before, over registers too). One barrier a step instead of two;
//! - what a thread multiplies is read from shared memory one step ahead, over the barrier too;
//! - the lanes of a warp as 4 x 8, neighbours in pairs along M: a quarter of a warp, which is what shared memory serves at a
//!   time when each lane reads 16 bytes, asks for 2 + 4 different fours instead of 1 + 8;
//! - the outer product walked to and fro, so that registers are read less often;
//! - tiles of C handed out in groups of eight rows (`raster.rs`): at 16384, what blocks read at a time is shared in the L2.
//!
//! Global-memory reads: M*N*K * (1/128 + 1/128), as before, behind 64*SN FMAs a thread that hide their latency
//! Shared-memory reads: M*N*K * (1/8 + 1/8), four at a time; 2 * 4 * SN * (132 + 128) bytes a block
//! Block: 16 x 16 threads, 128 x 128 patch of C, SN 8 or 16 deep. Any M, N, K.
//!
//! The variants of block 8 are 8 x 8 threads and a 64 x 64 patch: four times the blocks, for a C too small to occupy the GPU
//! otherwise, and twice the global-memory reads.
//!
//! ```sh
//! cargo run -p host -- --kernel double-buffer --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::{launch_bounds, pipeline};
use crate::float4::Float4;
use crate::gemm::{gemm_kernel, Gemm};
use crate::raster;
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Kernel};

/// Rows and columns of C that a thread computes.
const PATCH: usize = 8;
/// Added to the rows of the transposed A tile, so that the stores of a warp, which walk down a column, spread over the
/// banks.
const PADDING: usize = 4;
/// From a thread's first four rows of C to its other four, and likewise for columns. With 4 x 8 lanes of 4 x 4 chunks, the
/// chunks of a warp in between fill the gap.
const NEXT_ROWS: usize = 16;
const NEXT_COLS: usize = 32;

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "double-buffer",
    idea: "two shared buffers: load the next tiles while multiplying these",
    source: file!(),
    variants: &[
        variant!(
            "double-buffer-sn8",
            F32(double_buffer_sn8),
            block(16, 16),
            tile(128, 128, 8)
        ),
        variant!(
            "double-buffer-sn16",
            F32(double_buffer_sn16),
            block(16, 16),
            tile(128, 128, 16)
        ),
        variant!(
            "double-buffer-sn8-block8",
            F32(double_buffer_sn8_block8),
            block(8, 8),
            tile(64, 64, 8)
        ),
        variant!(
            "double-buffer-sn16-block8",
            F32(double_buffer_sn16_block8),
            block(8, 8),
            tile(64, 64, 16)
        ),
    ],
};

gemm_kernel! {
    fn double_buffer_sn8(gemm: f32) {
        launch_bounds::<256, 2>();
        multiply::<16, 1>(gemm, shared_array![f32; 2 * 8 * 132], shared_array![f32; 2 * 8 * 128])
    }
}

gemm_kernel! {
    fn double_buffer_sn16(gemm: f32) {
        launch_bounds::<256, 2>();
        multiply::<16, 2>(gemm, shared_array![f32; 2 * 16 * 132], shared_array![f32; 2 * 16 * 128])
    }
}

gemm_kernel! {
    fn double_buffer_sn8_block8(gemm: f32) {
        launch_bounds::<64, 6>();
        multiply::<8, 2>(gemm, shared_array![f32; 2 * 8 * 68], shared_array![f32; 2 * 8 * 64])
    }
}

gemm_kernel! {
    fn double_buffer_sn16_block8(gemm: f32) {
        launch_bounds::<64, 6>(); // 32 registers more to carry the next tiles in
        multiply::<8, 4>(gemm, shared_array![f32; 2 * 16 * 68], shared_array![f32; 2 * 16 * 64])
    }
}

/// The body of every variant. A block is BLOCK x BLOCK threads; `SHARE` is how many `Float4` of A, and of B, a thread
/// carries from global to shared memory a step: the tiles are SN = SHARE * BLOCK / 2 deep.
#[inline(always)]
unsafe fn multiply<const BLOCK: usize, const SHARE: usize>(
    gemm: Gemm<'_, f32>,
    a_tiles: *mut f32,
    b_tiles: *mut f32,
) {
    let tile = BLOCK * PATCH;
    let (blocks_x, blocks_y) = (thread::grid_dim_x() as usize, thread::grid_dim_y() as usize);
    let block = thread::block_idx_y() as usize * blocks_x + thread::block_idx_x() as usize;
    let (tile_row, tile_col) = raster::place(block, blocks_y, blocks_x);
    let (tile_row, tile_col) = (tile_row * tile, tile_col * tile);
    let whole = gemm.tile_is_whole(tile_row, tile_col, tile, SHARE * BLOCK / 2);
    if whole && gemm.rows_are_float4_aligned() {
        pipeline::<BLOCK, SHARE, false>(gemm, a_tiles, b_tiles, tile_row, tile_col)
    } else {
        pipeline::<BLOCK, SHARE, true>(gemm, a_tiles, b_tiles, tile_row, tile_col)
    }
}

/// `a_tiles` is (2, SN, a_stride), A transposed; `b_tiles` is (2, SN, tile); both in shared memory. `GUARDED` unless the
/// block's tiles are whole and the rows aligned.
#[inline(always)]
unsafe fn pipeline<const BLOCK: usize, const SHARE: usize, const GUARDED: bool>(
    gemm: Gemm<'_, f32>,
    a_tiles: *mut f32,
    b_tiles: *mut f32,
    tile_row: usize,
    tile_col: usize,
) {
    let (tile, sn) = (BLOCK * PATCH, SHARE * BLOCK / 2);
    let a_stride = tile + PADDING;
    let thread = thread::thread_idx_y() as usize * BLOCK + thread::thread_idx_x() as usize;

    // What this thread carries: `sn / 4` neighbours fetch a row of the A tile, `tile / 4` neighbours a row of the B tile.
    let (a_row, a_col) = (thread / (sn / 4), thread % (sn / 4) * 4);
    let (b_row, b_col) = (thread / (tile / 4), thread % (tile / 4) * 4);
    let a_rows = BLOCK * BLOCK / (sn / 4);
    let b_rows = BLOCK * BLOCK / (tile / 4);

    // What this thread computes: the block's warps are 4 x 2 (or 2 x 1) tiles of 32 x 64, a warp's lanes 4 x 8 of four
    // chunks each.
    let (warp, lane) = (thread / 32, thread % 32);
    let (lane_m, lane_n) = (lane / 16 * 2 + lane % 2, lane / 2 % 8);
    let row = warp / (tile / 64) * 32 + lane_m * 4;
    let col = warp % (tile / 64) * 64 + lane_n * 4;

    // A takes the way over registers, because it is transposed on it; B goes straight to shared memory. The pointers walk
    // along, since a multiplication for each address would cost as many instructions as the copies.
    let mut a_global = gemm
        .a
        .as_ptr()
        .wrapping_add((tile_row + a_row) * gemm.lda + a_col);
    let mut b_global = gemm
        .b
        .as_ptr()
        .wrapping_add(b_row * gemm.ldb + tile_col + b_col);
    let mut fetch = |buffer: usize, k0: usize| {
        let b_tile = b_tiles.add(buffer * sn * tile + b_row * tile + b_col);
        let mut a = [Float4::ZERO; SHARE];
        for i in 0..SHARE {
            let b_target = b_tile.add(i * b_rows * tile);
            if GUARDED {
                a[i] = gemm.a4::<true>(tile_row + a_row + i * a_rows, k0 + a_col);
                gemm.copy_b4_guarded(k0 + b_row + i * b_rows, tile_col + b_col, b_target);
            } else {
                a[i] = Float4::read(a_global.wrapping_add(i * a_rows * gemm.lda));
                let b = b_global.wrapping_add(i * b_rows * gemm.ldb);
                pipeline::memcpy_async(b_target.cast::<Float4>(), b.cast());
            }
        }
        pipeline::commit();
        a_global = a_global.wrapping_add(sn);
        b_global = b_global.wrapping_add(sn * gemm.ldb);
        a
    };
    let store = |buffer: usize, a: [Float4; SHARE]| {
        let a_tile = a_tiles.add(buffer * sn * a_stride);
        for i in 0..SHARE {
            for j in 0..4 {
                *a_tile.add((a_col + j) * a_stride + a_row + i * a_rows) = a[i].0[j];
            }
        }
        pipeline::wait_prior::<0>(); // this thread's share of B has arrived
    };
    let read = |buffer: usize, kk: usize| {
        let a_column = a_tiles.add((buffer * sn + kk) * a_stride + row);
        let b_row = b_tiles.add((buffer * sn + kk) * tile + col);
        let b_frag = [Float4::read(b_row), Float4::read(b_row.add(NEXT_COLS))];
        let a_frag = [
            Float4::read(a_column),
            Float4::read(a_column.add(NEXT_ROWS)),
        ];
        (a_frag, b_frag)
    };

    let mut sums = [[0.0f32; 8]; 8];
    let mut multiply = |(a_frag, b_frag): ([Float4; 2], [Float4; 2])| {
        for i in 0..8 {
            for turn in 0..8 {
                let place = if i % 2 == 0 { turn } else { 7 - turn };
                let j = place / 2 + place % 2 * 4; // of both halves in turn
                sums[i][j] += a_frag[i / 4].0[i % 4] * b_frag[j / 4].0[j % 4];
            }
        }
    };
    let depth = gemm.depth();
    if depth > 0 {
        let a = fetch(0, 0);
        store(0, a);
        thread::sync_threads(); // the first tiles are whole

        let mut buffer = 0;
        let mut now = read(0, 0);
        // Counted in 32 bits: one register less, and 2^32 steps are more than any memory holds.
        for step in 1..depth.div_ceil(sn) as u32 {
            let a = fetch(1 - buffer, step as usize * sn); // on its way while the FMAs below run
            for kk in 1..sn {
                let next = read(buffer, kk);
                multiply(now);
                now = next;
            }
            buffer = 1 - buffer;
            store(buffer, a);
            thread::sync_threads(); // the next tiles are whole, and every thread has finished reading these
            let next = read(buffer, 0);
            multiply(now);
            now = next;
        }
        for kk in 1..sn {
            let next = read(buffer, kk);
            multiply(now);
            now = next;
        }
        multiply(now);
    }

    for i in 0..8 {
        for j in 0..2 {
            let sum = Float4([
                sums[i][4 * j],
                sums[i][4 * j + 1],
                sums[i][4 * j + 2],
                sums[i][4 * j + 3],
            ]);
            gemm.update4::<GUARDED>(
                tile_row + row + i / 4 * NEXT_ROWS + i % 4,
                tile_col + col + j * NEXT_COLS,
                sum,
            );
        }
    }
}
