//! Warp tiling: each warp owns a 64 x 64 tile of C, and each of its threads 16 x 8 of it.
//!
//! Over `double-buffer`: a thread tile of 16 x 8 instead of 8 x 8. Six float4s serve 128 FMAs,
//! where four served 64, so that more of the instructions are FMAs. It takes twice the registers a
//! thread, which leaves room for 8 warps on a streaming multiprocessor (SM) instead of 16. Eight
//! warps do not hide each other's latency: that takes ILP, with fragments read one column ahead
//! (without it, 40 instead of 51 TFLOP/s; 4096, H200). The gain in instructions is lost in stalls:
//! it is as fast as `double-buffer`.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN), as before
//! Shared-memory reads: M*N*K * (1/TM + 1/TN), as float4s; 2 * 4 * 8 * (132 + 128) bytes a block
//! Block: 16 x 8 threads in 2 x 2 warps, block tile 128 x 128 x 8, warp tile 64 x 64, thread tile
//! 16 x 8. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-tiled --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;

use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::kernel::kernel;
use crate::raster;

/// Block tile.
const BM: usize = 128;
const BN: usize = 128;
const BK: usize = 8;
/// Thread tile, in pieces of 4 x 4.
const TM: usize = 16;
const TN: usize = 8;
/// Lanes of a warp along M and along N, and the distance between the pieces of a thread tile.
const LANES_M: usize = 4;
const LANES_N: usize = 8;
const NEXT_ROWS: usize = 4 * LANES_M;
const NEXT_COLS: usize = 4 * LANES_N;
/// Warp tile.
const WM: usize = TM * LANES_M;
const WN: usize = TN * LANES_N;
/// Threads of a block along x and y.
const THREADS_X: usize = BN / TN;
const THREADS_Y: usize = BM / TM;
const THREADS: usize = THREADS_X * THREADS_Y;
/// Elements from one row of the transposed A tile to the next: 4 more than a row has, so that the
/// stores of a warp, down a column, spread over the banks.
const A_STRIDE: usize = BM + 4;
/// Float4s of A, and of B, that a thread loads in a k-iteration.
const LOADS: usize = BM * BK / 4 / THREADS;

/// The tiles are in shared memory.
#[inline(always)]
unsafe fn multiply(
    gemm: Gemm<'_, f32>,
    a_tiles: *mut f32, // (2, BK, A_STRIDE): A is stored transposed
    b_tiles: *mut f32, // (2, BK, BN)
) {
    const {
        assert!(BM == BN, "a thread loads as many float4s of either tile");
        assert!(LOADS * 4 * THREADS == BM * BK, "tiles split evenly");
        assert!(BM.is_multiple_of(WM), "full warp tiles along M");
        assert!(BN.is_multiple_of(WN), "and along N");
        assert!(LANES_M == 4 && LANES_N == 8, "as raster::lane_position");
    }
    let tile_row = thread::block_idx_y() as usize * BM;
    let tile_col = thread::block_idx_x() as usize * BN;
    let is_exact = gemm.tile_is_exact(tile_row, tile_col, BM, BK);
    if is_exact && gemm.rows_are_float4_aligned() {
        mainloop::<false>(gemm, a_tiles, b_tiles, tile_row, tile_col)
    } else {
        mainloop::<true>(gemm, a_tiles, b_tiles, tile_row, tile_col)
    }
}

/// A thread's fragments of one k: TM elements of a column of A and TN of a row of B.
type Fragments = ([Float4; TM / 4], [Float4; TN / 4]);

/// All k-iterations, and the epilogue. `PREDICATED` unless the tile is exact and the rows are
/// aligned.
#[inline(always)]
unsafe fn mainloop<const PREDICATED: bool>(
    gemm: Gemm<'_, f32>,
    a_tiles: *mut f32, // (2, BK, A_STRIDE)
    b_tiles: *mut f32, // (2, BK, BN)
    tile_row: usize,
    tile_col: usize,
) {
    let depth = gemm.depth();
    let thread = thread::thread_idx_y() as usize * THREADS_X + thread::thread_idx_x() as usize;

    // The loads of this thread: `BK / 4` neighbours load a row of the A tile, `BN / 4` neighbours
    // a row of the B tile.
    let (a_row, a_col) = (thread / (BK / 4), thread % (BK / 4) * 4);
    let (b_row, b_col) = (thread / (BN / 4), thread % (BN / 4) * 4);
    let a_rows = THREADS / (BK / 4);
    let b_rows = THREADS / (BN / 4);

    // The first row and column of this thread in the block tile.
    let (warp, lane) = (thread / 32, thread % 32);
    let (lane_m, lane_n) = raster::lane_position(lane);
    let row = warp / (BN / WN) * WM + lane_m * 4;
    let col = warp % (BN / WN) * WN + lane_n * 4;

    // Pointers that advance with the loop, since a multiplication for each address would cost as
    // many instructions as the loads.
    let mut a_global = gemm
        .a
        .as_ptr()
        .wrapping_add((tile_row + a_row) * gemm.lda + a_col);
    let mut b_global = gemm
        .b
        .as_ptr()
        .wrapping_add(b_row * gemm.ldb + tile_col + b_col);
    let mut load = |k0: usize| {
        let mut a = [Float4::ZERO; LOADS];
        let mut b = [Float4::ZERO; LOADS];
        for i in 0..LOADS {
            if PREDICATED {
                a[i] = gemm.a4::<true>(tile_row + a_row + i * a_rows, k0 + a_col);
                b[i] = gemm.b4::<true>(k0 + b_row + i * b_rows, tile_col + b_col);
            } else {
                a[i] = Float4::read_only(a_global.wrapping_add(i * a_rows * gemm.lda));
                b[i] = Float4::read_only(b_global.wrapping_add(i * b_rows * gemm.ldb));
            }
        }
        a_global = a_global.wrapping_add(BK);
        b_global = b_global.wrapping_add(BK * gemm.ldb);
        (a, b)
    };
    let store = |buffer: usize, a: [Float4; LOADS], b: [Float4; LOADS]| {
        let a_tile = a_tiles.add(buffer * BK * A_STRIDE);
        let b_tile = b_tiles.add(buffer * BK * BN);
        for i in 0..LOADS {
            for j in 0..4 {
                *a_tile.add((a_col + j) * A_STRIDE + a_row + i * a_rows) = a[i].0[j];
            }
            b[i].write(b_tile.add((b_row + i * b_rows) * BN + b_col));
        }
    };
    let read = |buffer: usize, k: usize| -> Fragments {
        let a_column = a_tiles.add((buffer * BK + k) * A_STRIDE + row);
        let b_row = b_tiles.add((buffer * BK + k) * BN + col);
        let mut a_frag = [Float4::ZERO; TM / 4];
        let mut b_frag = [Float4::ZERO; TN / 4];
        for i in 0..TM / 4 {
            a_frag[i] = Float4::read(a_column.add(i * NEXT_ROWS));
        }
        for j in 0..TN / 4 {
            b_frag[j] = Float4::read(b_row.add(j * NEXT_COLS));
        }
        (a_frag, b_frag)
    };
    let mut accumulators = [[0.0f32; TN]; TM];
    let mut multiply = |(a_frag, b_frag): Fragments| {
        for i in 0..TM {
            for index in 0..TN {
                let j = raster::serpentine(i, index, TN);
                accumulators[i][j] += a_frag[i / 4].0[i % 4] * b_frag[j / 4].0[j % 4];
            }
        }
    };

    if depth > 0 {
        let (a, b) = load(0);
        store(0, a, b);
        thread::sync_threads(); // the first tiles are complete

        let mut buffer = 0;
        let mut current = read(0, 0);
        let mut k0 = BK;
        while k0 < depth {
            // In flight while the FMAs below run.
            let (a, b) = load(k0);
            for k in 1..BK {
                let next = read(buffer, k);
                multiply(current);
                current = next;
            }
            buffer = 1 - buffer;
            store(buffer, a, b);
            // The next tiles are complete, and every thread has finished reading these.
            thread::sync_threads();
            let next = read(buffer, 0);
            multiply(current);
            current = next;
            k0 += BK;
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
            let [a, b, c, d] = [0, 1, 2, 3].map(|lane| accumulators[i][4 * j + lane]);
            gemm.update4::<PREDICATED>(
                tile_row + row + i / 4 * NEXT_ROWS + i % 4,
                tile_col + col + j * NEXT_COLS,
                Float4([a, b, c, d]),
            );
        }
    }
}

kernel! {
    name: "warp-tiled",
    idea: "warp tiles of 64 x 64, thread tiles of 16 x 8: six float4 reads for 128 FMAs",
    variants: [
        "warp-tiled" = fn warp_tiled(gemm: f32)
            block(THREADS_X, THREADS_Y) tile(BM, BN, BK)
            shared(a_tiles: [f32; 2 * BK * A_STRIDE], b_tiles: [f32; 2 * BK * BN])
            launch_bounds(2)
            {
                vector_stores: true,
                rate: Some(Rate::h200(51.0, 0.65, 2)),
            }
            => multiply(gemm, a_tiles, b_tiles);
    ],
}
