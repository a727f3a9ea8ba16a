//! Double buffering: the next tiles are loaded from global memory while these are multiplied.
//!
//! Over `conflict-free` (most of the gain comes from the two buffers):
//! - two buffers in shared memory: the loads of the next k-iteration are issued before the FMAs of
//!   this one, and go to the buffer that no thread reads. A stays in registers while the FMAs run,
//!   since it must be transposed; B is copied straight to shared memory (`cp.async`, since compute
//!   capability 8.0; before, also through registers). One barrier a k-iteration instead of two;
//! - fragments are read from shared memory one column ahead, even across the barrier;
//! - the lanes of a warp are 4 x 8, so that they read fewer different float4s at once
//!   (`raster::lane_position`);
//! - the outer product is computed in serpentine order (`raster::serpentine`);
//! - blocks take the tiles of C in groups of eight rows (`raster::tile_position`): at 16384,
//!   concurrent blocks then share their operands in the L2 cache.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN), as before, behind 64*BK FMAs a thread that hide
//! their latency
//! Shared-memory reads: M*N*K * (1/TM + 1/TN), as float4s; 2 * 4 * BK * (132 + 128) bytes a block
//! Block: 16 x 16 threads, block tile 128 x 128 x BK, BK 8 or 16, thread tile 8 x 8. Any M, N, K.
//!
//! The variants `-block8` have 8 x 8 threads and a block tile of 64 x 64: four times the blocks,
//! for a C too small to occupy the GPU otherwise, and twice the global-memory reads.
//!
//! ```sh
//! cargo run -p host -- --kernel double-buffer --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;

use crate::compat::pipeline;
use crate::element::Word;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::kernel::kernel;
use crate::raster;

/// Thread tile, in 2 x 2 pieces of 4 x 4.
const TM: usize = 8;
const TN: usize = 8;
/// Added to the rows of the transposed A tile, so that the stores of a warp, which walk down a
/// column, go to all banks (BK = 8), or to half of them (BK = 16: two-way conflicts).
const PADDING: usize = 4;
/// From a thread's first four rows of C to its other four, and likewise for columns: the lanes of
/// the warp, 4 x 8, fill the gap.
const NEXT_ROWS: usize = 4 * 4;
const NEXT_COLS: usize = 4 * 8;
/// Warp tile.
const WM: usize = 2 * NEXT_ROWS;
const WN: usize = 2 * NEXT_COLS;

/// The body of every variant. A block is SIDE x SIDE threads, its tile BM x BM with BM = 8 * SIDE;
/// a thread loads LOADS float4s of each tile in a k-iteration. The tiles are in shared memory.
#[inline(always)]
unsafe fn multiply<T: Word, const SIDE: usize, const BK: usize, const LOADS: usize>(
    gemm: Gemm<'_, T>,
    a_tiles: *mut T, // (2, BK, BM + PADDING): A is stored transposed
    b_tiles: *mut T, // (2, BK, BN)
) {
    const {
        assert!(TM == TN, "the block tile is square");
        assert!(TM * BK == 4 * LOADS * SIDE, "tiles split evenly");
        assert!((TM * SIDE).is_multiple_of(WM), "full warp tiles along M");
        assert!((TN * SIDE).is_multiple_of(WN), "and along N");
    }
    let bm = TM * SIDE;
    let (blocks_x, blocks_y) = (thread::grid_dim_x() as usize, thread::grid_dim_y() as usize);
    let block = thread::block_idx_y() as usize * blocks_x + thread::block_idx_x() as usize;
    let (tile_row, tile_col) = raster::tile_position(block, blocks_y, blocks_x);
    let (tile_row, tile_col) = (tile_row * bm, tile_col * bm);
    let is_exact = gemm.tile_is_exact(tile_row, tile_col, bm, BK);
    if is_exact && gemm.rows_are_float4_aligned() {
        mainloop::<T, SIDE, BK, LOADS, false>(gemm, a_tiles, b_tiles, tile_row, tile_col)
    } else {
        mainloop::<T, SIDE, BK, LOADS, true>(gemm, a_tiles, b_tiles, tile_row, tile_col)
    }
}

/// All k-iterations, and the epilogue. `PREDICATED` unless the tile is exact and the rows are
/// aligned.
#[inline(always)]
unsafe fn mainloop<
    T: Word,
    const SIDE: usize,
    const BK: usize,
    const LOADS: usize,
    const PREDICATED: bool,
>(
    gemm: Gemm<'_, T>,
    a_tiles: *mut T, // (2, BK, BM + PADDING)
    b_tiles: *mut T, // (2, BK, BN)
    tile_row: usize,
    tile_col: usize,
) {
    let (bm, bn) = (TM * SIDE, TN * SIDE);
    let a_stride = bm + PADDING;
    let thread = thread::thread_idx_y() as usize * SIDE + thread::thread_idx_x() as usize;

    // The loads of this thread: `BK / 4` neighbours load a row of the A tile, `bn / 4` neighbours
    // a row of the B tile.
    let (a_row, a_col) = (thread / (BK / 4), thread % (BK / 4) * 4);
    let (b_row, b_col) = (thread / (bn / 4), thread % (bn / 4) * 4);
    let a_rows = SIDE * SIDE / (BK / 4);
    let b_rows = SIDE * SIDE / (bn / 4);

    // The first row and column of this thread in the block tile.
    let (warp, lane) = (thread / 32, thread % 32);
    let (lane_m, lane_n) = raster::lane_position(lane);
    let row = warp / (bn / WN) * WM + lane_m * 4;
    let col = warp % (bn / WN) * WN + lane_n * 4;

    // A goes through registers, which transposes it; B goes straight to shared memory. The
    // pointers advance with the loop, since a multiplication for each address would cost as many
    // instructions as the copies.
    let mut a_global = gemm
        .a
        .as_ptr()
        .wrapping_add((tile_row + a_row) * gemm.lda + a_col);
    let mut b_global = gemm
        .b
        .as_ptr()
        .wrapping_add(b_row * gemm.ldb + tile_col + b_col);
    let mut load = |buffer: usize, k0: usize| {
        let b_tile = b_tiles.add(buffer * BK * bn + b_row * bn + b_col);
        let mut a = [Float4::<T>::ZERO; LOADS];
        for i in 0..LOADS {
            let b_target = b_tile.add(i * b_rows * bn);
            if PREDICATED {
                a[i] = gemm.a4::<true>(tile_row + a_row + i * a_rows, k0 + a_col);
                gemm.copy_b4_predicated(k0 + b_row + i * b_rows, tile_col + b_col, b_target);
            } else {
                a[i] = Float4::read_only(a_global.wrapping_add(i * a_rows * gemm.lda));
                let b = b_global.wrapping_add(i * b_rows * gemm.ldb);
                pipeline::memcpy_async(b_target.cast::<Float4<T>>(), b.cast());
            }
        }
        pipeline::commit();
        a_global = a_global.wrapping_add(BK);
        b_global = b_global.wrapping_add(BK * gemm.ldb);
        a
    };
    let store = |buffer: usize, a: [Float4<T>; LOADS]| {
        let a_tile = a_tiles.add(buffer * BK * a_stride);
        for i in 0..LOADS {
            for j in 0..4 {
                *a_tile.add((a_col + j) * a_stride + a_row + i * a_rows) = a[i].0[j];
            }
        }
        pipeline::wait_prior::<0>(); // this thread's copies of B have arrived
    };
    let read = |buffer: usize, k: usize| {
        let a_column = a_tiles.add((buffer * BK + k) * a_stride + row);
        let b_row = b_tiles.add((buffer * BK + k) * bn + col);
        let b_frag = [Float4::read(b_row), Float4::read(b_row.add(NEXT_COLS))];
        let a_frag = [
            Float4::read(a_column),
            Float4::read(a_column.add(NEXT_ROWS)),
        ];
        (a_frag, b_frag)
    };

    let mut accumulators = [[T::ZERO; TN]; TM];
    let mut multiply = |(a_frag, b_frag): ([Float4<T>; 2], [Float4<T>; 2])| {
        for i in 0..TM {
            for index in 0..TN {
                let index = raster::serpentine(i, index, TN);
                let j = index / 2 + index % 2 * 4; // the two float4s of B alternate
                let (a, b) = (a_frag[i / 4].0[i % 4], b_frag[j / 4].0[j % 4]);
                accumulators[i][j] = a.times_plus(b, accumulators[i][j]);
            }
        }
    };
    let depth = gemm.depth();
    if depth > 0 {
        let a = load(0, 0);
        store(0, a);
        thread::sync_threads(); // the first tiles are complete

        let mut buffer = 0;
        let mut current = read(0, 0);
        // A 32-bit counter saves a register, and 2^32 k-iterations are more than any memory holds.
        for iteration in 1..depth.div_ceil(BK) as u32 {
            // In flight while the FMAs below run.
            let a = load(1 - buffer, iteration as usize * BK);
            for k in 1..BK {
                let next = read(buffer, k);
                multiply(current);
                current = next;
            }
            buffer = 1 - buffer;
            store(buffer, a);
            // The next tiles are complete, and every thread has finished reading these.
            thread::sync_threads();
            let next = read(buffer, 0);
            multiply(current);
            current = next;
        }
        for k in 1..BK {
            let next = read(buffer, k);
            multiply(current);
            current = next;
        }
        multiply(current);
    }

    for i in 0..TM {
        for j in 0..TN / 4 {
            let float4 = Float4([
                accumulators[i][4 * j],
                accumulators[i][4 * j + 1],
                accumulators[i][4 * j + 2],
                accumulators[i][4 * j + 3],
            ]);
            gemm.update4::<PREDICATED>(
                tile_row + row + i / 4 * NEXT_ROWS + i % 4,
                tile_col + col + j * NEXT_COLS,
                float4,
            );
        }
    }
}

kernel! {
    name: "double-buffer",
    idea: "two buffers, so that the next tiles load while these are multiplied, and four more ideas",
    variants: [
        "double-buffer-k8" = fn double_buffer_k8(gemm: f32)
            block(16, 16) tile(128, 128, 8)
            shared(a_tiles: [f32; 2 * 8 * 132], b_tiles: [f32; 2 * 8 * 128])
            launch_bounds(2)
            {
                vector_stores: true,
                rate: Some(Rate::h200(51.0, 0.65, 2)),
            }
            => multiply::<f32, 16, 8, 1>(gemm, a_tiles, b_tiles);
        "double-buffer-k16" = fn double_buffer_k16(gemm: f32)
            block(16, 16) tile(128, 128, 16)
            shared(a_tiles: [f32; 2 * 16 * 132], b_tiles: [f32; 2 * 16 * 128])
            launch_bounds(2)
            {
                vector_stores: true,
                rate: Some(Rate::h200(51.5, 0.65, 2)),
            }
            => multiply::<f32, 16, 16, 2>(gemm, a_tiles, b_tiles);
        "double-buffer-k8-block8" = fn double_buffer_k8_block8(gemm: f32)
            block(8, 8) tile(64, 64, 8)
            shared(a_tiles: [f32; 2 * 8 * 68], b_tiles: [f32; 2 * 8 * 64])
            launch_bounds(6)
            {
                vector_stores: true,
                rate: Some(Rate::h200(48.0, 0.30, 6)),
            }
            => multiply::<f32, 8, 8, 2>(gemm, a_tiles, b_tiles);
        "double-buffer-k16-block8" = fn double_buffer_k16_block8(gemm: f32)
            block(8, 8) tile(64, 64, 16)
            shared(a_tiles: [f32; 2 * 16 * 68], b_tiles: [f32; 2 * 16 * 64])
            launch_bounds(6)
            { vector_stores: true }
            => multiply::<f32, 8, 16, 4>(gemm, a_tiles, b_tiles);
        "double-buffer-k8" = fn double_buffer_k8_i32(gemm: i32)
            block(16, 16) tile(128, 128, 8)
            shared(a_tiles: [i32; 2 * 8 * 132], b_tiles: [i32; 2 * 8 * 128])
            launch_bounds(2)
            {
                vector_stores: true,
                rate: Some(Rate::h200(30.9, 0.65, 2)),
            }
            => multiply::<i32, 16, 8, 1>(gemm, a_tiles, b_tiles);
        "double-buffer-k8-block8" = fn double_buffer_k8_block8_i32(gemm: i32)
            block(8, 8) tile(64, 64, 8)
            shared(a_tiles: [i32; 2 * 8 * 68], b_tiles: [i32; 2 * 8 * 64])
            launch_bounds(6)
            {
                vector_stores: true,
                rate: Some(Rate::h200(27.0, 0.30, 6)),
            }
            => multiply::<i32, 8, 8, 2>(gemm, a_tiles, b_tiles);
    ],
}
