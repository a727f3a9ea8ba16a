//! An asynchronous pipeline: tiles are copied to shared memory in the background, four
//! k-iterations ahead, and CTAs divide the k-iterations evenly.
//!
//! Over `warp-tiled`:
//! - A and B are both copied straight to shared memory (`cp.async`), into a ring buffer of STAGES
//!   tiles: elements pass through no register and need no store instruction;
//! - a 16-byte copy cannot transpose. So A must be MN-major (`k x m`), as B is: the host launches
//!   a transposition of A first (`transpose.rs`), which moves M*K elements; the product takes
//!   M*N*K FMAs. Where a tile is so flat that the transposition would cost too much, A is copied
//!   element by element (the variants `-nn`, `-nt` and `-odd`);
//! - `cp.async` zero-fills out-of-bounds elements, so that edge tiles need no branches;
//! - the loop is rotated: each iteration starts in the middle of a tile and ends in the middle of
//!   the next;
//! - the kernel starts before the operand copies are complete, and `fix_up` before the kernel has
//!   ended: each waits on the GPU for the launch before it (`grid_dependency`), which hides the
//!   gaps between launches;
//! - the CTAs of the last wave divide its k-iterations evenly, across tiles (`stream_k.rs`);
//! - where C has too few tiles to fill the GPU with warps, two groups of threads share a tile,
//!   each with its own k-slice and ring buffer, and their sums are added in shared memory
//!   (`-sliced`; CUTLASS calls it sliced-K).
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/TM + 1/TN), as float4s; 16 * BK * (BM + BN) bytes a CTA, or a
//! slice
//! Block: 64 or 128 threads, block tile BM x BN x BK, thread tile TM x TN, BK 8 or 16. Any M, N,
//! K; a variant that takes only exact tiles gets copies of A and B padded with zeros.
//!
//! ```sh
//! cargo run -p host -- --kernel async-pipeline --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;

use crate::compat::{grid_dependency, keep_in_register, pipeline};
use crate::epilogue::Epilogue;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::kernel::kernel;
use crate::raster;
use crate::stream_k::StreamK;
use crate::tile_loader::{KMajor, MnMajor, TileLoader, Unaligned};

/// Tiles of A, and of B, in the ring buffer.
const STAGES: usize = 4;

/// The order in which eight columns of a thread tile are multiplied. It was found by a random
/// search for fewer registers (docs/src/tuning.md).
const COLUMN_ORDER: [usize; 8] = [6, 5, 2, 1, 4, 0, 7, 3];

/// A thread's fragments of one k: TM elements of a column of A, TN of a row of B.
type Fragments<const TM4: usize, const TN4: usize> = ([Float4; TM4], [Float4; TN4]);

/// The body of every variant.
#[inline(always)]
unsafe fn multiply<
    A: TileLoader,
    B: TileLoader,
    const BM: usize,
    const BN: usize,
    const BK: usize,
    const TM: usize,
    const TN: usize,
    const TM4: usize, // TM / 4
    const TN4: usize, // TN / 4
    const LANES_M: usize,
    const SLICES: usize,
>(
    gemm: Gemm<'_, f32, f32, f32, impl Epilogue>,
    stages: *mut f32, // (SLICES, STAGES, BK * A::STRIDE + BK * B::STRIDE), in shared memory
) {
    const {
        assert!(TM == 4 * TM4 && TN == 4 * TN4, "fragments are float4s");
        assert!(matches!(LANES_M, 2 | 4 | 8), "lanes that a warp can have");
        assert!(BM.is_multiple_of(TM * LANES_M), "full warp tiles along M");
        assert!((BN * LANES_M).is_multiple_of(TN * 32), "and along N");
        assert!(A::STAGE == BK * A::STRIDE, "a loader of this depth");
        assert!(B::STAGE == BK * B::STRIDE, "a loader of this depth");
        assert!(BK >= 8 && STAGES >= 3, "the rotated loop needs both");
        assert!(TM.is_multiple_of(SLICES), "each slice adds as many rows");
        assert!(
            SLICES == 1 || STAGES * (A::STAGE + B::STAGE) >= BM * BN,
            "room for the sums"
        );
    }
    grid_dependency::wait(); // for copies of A and B
    grid_dependency::launch_dependents(); // `fix_up` may start on SMs that become free

    let thread = thread::thread_idx_x() as usize;
    // The k-slice of this thread, and its place among the threads of the slice.
    let threads = BM * BN / (TM * TN);
    let (slice, thread) = match SLICES {
        1 => (0, thread),
        _ => (thread / threads, thread % threads),
    };
    // A stage is a tile of A and one of B.
    let stage_size = A::STAGE + B::STAGE;
    let a_tiles = stages.add(slice * STAGES * stage_size);
    let b_tiles = a_tiles.add(A::STAGE);
    let lanes_n = 32 / LANES_M;
    // The distance between the 4 x 4 pieces of a thread tile.
    let (next_rows, next_cols) = (4 * LANES_M, 4 * lanes_n);
    // Warp tile.
    let (wm, wn) = (TM * LANES_M, TN * lanes_n);

    // The first row and column of this thread in the block tile.
    let (warp, lane) = (thread / 32, thread % 32);
    let (short, long) = raster::lane_position(lane);
    let (lane_m, lane_n) = match LANES_M {
        8 => (long, short),
        4 => (short, long),
        _ => (lane % LANES_M, lane / LANES_M),
    };
    let warps_n = BN / wn;
    let row = keep_in_register((warp / warps_n * wm + lane_m * 4) as u32) as usize;
    let col = keep_in_register((warp % warps_n * wn + lane_n * 4) as u32) as usize;

    // The offset of its copies in a tile.
    let a_target = keep_in_register(A::target(thread) as u32) as usize;
    let b_target = keep_in_register(B::target(thread) as u32) as usize;

    let read = |stage: u32, k: usize| -> Fragments<TM4, TN4> {
        let a_column = a_tiles.add(stage as usize * stage_size + k * A::STRIDE + row);
        let b_row = b_tiles.add(stage as usize * stage_size + k * B::STRIDE + col);
        let mut a_frag = [Float4::ZERO; TM4];
        let mut b_frag = [Float4::ZERO; TN4];
        for j in 0..TN4 {
            b_frag[j] = Float4::read(b_row.add(j * next_cols));
        }
        for i in (0..TM4).rev() {
            a_frag[i] = Float4::read(a_column.add(i * next_rows));
        }
        (a_frag, b_frag)
    };

    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (stream_k, mut work) = StreamK::of_launch((gemm.m, gemm.n, depth), (BM, BN, SLICES * BK));
    let mut workspace_tile = 2 * block_x;
    while work.begin < work.end {
        let segment = stream_k.segment(work);
        let (tile_row, tile_col) = stream_k.tile_position(segment.tile);
        let (tile_row, tile_col) = (tile_row * BM, tile_col * BN);
        // The slices of a segment follow each other along K.
        let k_iterations = segment.to - segment.from;
        let k0 = (SLICES * segment.from + slice * k_iterations) * BK;
        let mut a = A::new(
            gemm.a,
            gemm.lda,
            (gemm.m, depth),
            (tile_row, k0),
            thread,
            a_target,
        );
        let mut b = B::new(
            gemm.b,
            gemm.ldb,
            (gemm.n, depth),
            (tile_col, k0),
            thread,
            b_target,
        );
        let mut accumulators = [[0.0f32; TN]; TM];
        let mut multiply = |(a_frag, b_frag): Fragments<TM4, TN4>| {
            for i in 0..TM {
                for index in 0..TN {
                    let index = raster::serpentine(i, index, TN);
                    let j = if TN == 8 { COLUMN_ORDER[index] } else { index };
                    accumulators[i][j] += a_frag[i / 4].0[i % 4] * b_frag[j / 4].0[j % 4];
                }
            }
        };

        // The k-iterations remaining, this one included.
        let mut remaining = k_iterations as u32;
        if depth == 0 {
            remaining = 0;
        }
        if remaining > 0 {
            thread::sync_threads(); // every thread has finished reading the previous segment
            for stage in 0..STAGES {
                if (stage as u32) < remaining {
                    a.copy(a_tiles.add(stage * stage_size));
                    b.copy(b_tiles.add(stage * stage_size));
                }
                pipeline::commit();
            }
            pipeline::wait_prior::<{ STAGES as u32 - 1 }>();
            thread::sync_threads(); // the first stage is complete

            // The loop is rotated: an iteration starts at this k of a tile, so that the barrier
            // and the reads after it are inside its body. With the barrier at the end of the body,
            // `ptxas` puts those reads next to their uses: 54.3 TFLOP/s; here: 56.8 (8192, H200).
            // The best of 4400 orders of the loop was 0.8 % faster.
            let start = BK * 5 / 8;
            let mut stage = 0;
            let mut current = read(stage, 0);
            for k in 1..start + 1 {
                let next = read(stage, k);
                multiply(current);
                current = next;
            }
            while remaining > 1 {
                for k in start + 1..BK {
                    let next = read(stage, k);
                    multiply(current);
                    current = next;
                }
                pipeline::wait_prior::<{ STAGES as u32 - 2 }>();
                // The next stage is complete, and every thread has finished reading this one.
                thread::sync_threads();
                let free = stage as usize;
                stage = (stage + 1) % STAGES as u32;
                let next = read(stage, 0);
                multiply(current);
                if remaining > STAGES as u32 {
                    a.copy(a_tiles.add(free * stage_size));
                    b.copy(b_tiles.add(free * stage_size));
                }
                pipeline::commit();
                current = next;
                for k in 1..start + 1 {
                    let next = read(stage, k);
                    multiply(current);
                    current = next;
                }
                remaining -= 1;
            }
            for k in start + 1..BK {
                let next = read(stage, k);
                multiply(current);
                current = next;
            }
            multiply(current);
        }

        // The rows of the thread tile that this thread stores.
        let rows = TM / SLICES;
        let first = slice * rows;
        if SLICES > 1 {
            thread::sync_threads(); // every thread has finished reading tiles
            let place = (slice, thread, threads);
            add_slices::<TM, TN, SLICES>(&mut accumulators, stages.cast(), place);
        }

        let covers_tile = stream_k.covers_tile(segment);
        let in_bounds = gemm.tile_is_in_bounds(tile_row, tile_col, BM, BN);
        let exact = in_bounds && gemm.c_is_float4_aligned();
        let partial = gemm.partials.wrapping_add(workspace_tile * BM * BN); // (BM, BN)
        for i in 0..rows {
            for j in 0..TN4 {
                let [p, q, r, s] = [0, 1, 2, 3].map(|lane| accumulators[i][4 * j + lane]);
                let float4 = Float4([p, q, r, s]);
                let row = row + (first + i) / 4 * next_rows + (first + i) % 4;
                let col = col + j * next_cols;
                if !covers_tile {
                    if tile_row + row < gemm.m {
                        float4.write(partial.add(row * BN + col));
                    }
                } else if exact || gemm.has_epilogue() {
                    gemm.update4::<false>(tile_row + row, tile_col + col, float4);
                } else {
                    gemm.update4::<true>(tile_row + row, tile_col + col, float4);
                }
            }
        }
        work.begin += k_iterations;
        workspace_tile = 2 * block_x + 1;
    }
}

/// Adds the sums of a CTA's k-slices, in the order of k. A thread gets TM / SLICES rows of its
/// thread tile, chosen by its slice, as the first of `accumulators`.
///
/// # Safety
///
/// `sums` has room in shared memory for the accumulators of all threads, and no thread reads it.
/// All threads call this, each with its slice, its index in the slice, and the threads of a slice.
#[inline(always)]
unsafe fn add_slices<const TM: usize, const TN: usize, const SLICES: usize>(
    accumulators: &mut [[f32; TN]; TM],
    sums: *mut Float4, // (SLICES, TM, TN / 4, threads)
    (slice, thread, threads): (usize, usize, usize),
) {
    let place = |slice: usize, i: usize, j: usize| {
        sums.add(((slice * TM + i) * TN / 4 + j) * threads + thread)
    };
    for i in 0..TM {
        for j in 0..TN / 4 {
            let float4 = Float4([0, 1, 2, 3].map(|lane| accumulators[i][4 * j + lane]));
            float4.write(place(slice, i, j).cast());
        }
    }
    thread::sync_threads(); // the sums of all slices are stored
    for i in 0..TM / SLICES {
        for j in 0..TN / 4 {
            let mut sum = [0.0f32; 4];
            for from in 0..SLICES {
                let float4 = Float4::<f32>::read(place(from, slice * (TM / SLICES) + i, j).cast());
                for lane in 0..4 {
                    sum[lane] += float4.0[lane];
                }
            }
            for lane in 0..4 {
                accumulators[i][4 * j + lane] = sum[lane];
            }
        }
    }
}

/// Writes the kernel: three lines a variant. `lanes_m` is the number of a warp's lanes along M.
macro_rules! async_pipeline {
    ($(
        $name:literal = fn $entry:ident
            threads($threads:literal) tile($bm:literal, $bn:literal, $bk:literal)
            thread_tile($tm:literal, $tn:literal) lanes_m($lanes_m:literal) a($a:ident) b($b:ident)
            exact_tiles($exact:literal) k_slices($slices:literal) launch_bounds($ctas:literal)
            rate($($rate:literal),*);
    )*) => {
        kernel! {
            name: "async-pipeline",
            idea: "asynchronous copies through a ring of four stages, and a stream-K decomposition",
            epilogue: any,
            variants: [$(
                $name = fn $entry(gemm: f32)
                    block($slices * $threads, 1) tile($bm, $bn, $slices * $bk)
                    shared(stages: [f32; $slices * STAGES * (
                        $a::<$bm, $bk, $threads, $exact>::STAGE
                            + $b::<$bn, $bk, $threads, $exact>::STAGE
                    )])
                    launch_bounds($ctas)
                    {
                        thread_tile: ($tm, $tn),
                        k_slices: $slices,
                        least_capability: 80,
                        grid: Grid::StreamK,
                        a: $a::<$bm, $bk, $threads, $exact>::LAYOUT,
                        b: $b::<$bn, $bk, $threads, $exact>::LAYOUT,
                        exact_tiles: $exact,
                        vector_stores: true,
                        rate: Some(Rate::h200($($rate),*)),
                    }
                    => multiply::<
                        $a<$bm, $bk, $threads, $exact>,
                        $b<$bn, $bk, $threads, $exact>,
                        $bm, $bn, $bk, $tm, $tn, { $tm / 4 }, { $tn / 4 }, $lanes_m, $slices,
                    >(gemm, stages);
            )*],
        }
    };
}

async_pipeline! {
    "async-pipeline" = fn async_pipeline
        threads(128) tile(128, 128, 8) thread_tile(16, 8) lanes_m(4) a(MnMajor) b(MnMajor)
        exact_tiles(true) k_slices(1) launch_bounds(2) rate(56.5, 0.68, 2);
    "async-pipeline-edges" = fn async_pipeline_edges
        threads(128) tile(128, 128, 8) thread_tile(16, 8) lanes_m(4) a(MnMajor) b(MnMajor)
        exact_tiles(false) k_slices(1) launch_bounds(2) rate(54.0, 0.68, 2);
    "async-pipeline-64x64" = fn async_pipeline_64x64
        threads(64) tile(64, 64, 8) thread_tile(8, 8) lanes_m(4) a(MnMajor) b(MnMajor)
        exact_tiles(true) k_slices(1) launch_bounds(5) rate(51.0, 0.66, 6);
    "async-pipeline-64x64-sliced" = fn async_pipeline_64x64_sliced
        threads(64) tile(64, 64, 8) thread_tile(8, 8) lanes_m(4) a(MnMajor) b(MnMajor)
        exact_tiles(true) k_slices(2) launch_bounds(3) rate(51.0, 0.80, 3);
    "async-pipeline-64x64-edges" = fn async_pipeline_64x64_edges
        threads(64) tile(64, 64, 8) thread_tile(8, 8) lanes_m(4) a(MnMajor) b(MnMajor)
        exact_tiles(false) k_slices(1) launch_bounds(6) rate(48.0, 0.66, 6);
    "async-pipeline-64x64-nn" = fn async_pipeline_64x64_nn
        threads(64) tile(64, 64, 8) thread_tile(8, 8) lanes_m(4) a(KMajor) b(MnMajor)
        exact_tiles(false) k_slices(1) launch_bounds(6) rate(42.0, 0.66, 6);
    "async-pipeline-64x64-odd" = fn async_pipeline_64x64_odd
        threads(64) tile(64, 64, 8) thread_tile(8, 8) lanes_m(4) a(KMajor) b(Unaligned)
        exact_tiles(false) k_slices(1) launch_bounds(6) rate(39.0, 0.66, 6);
    "async-pipeline-32x32-odd" = fn async_pipeline_32x32_odd
        threads(64) tile(32, 32, 16) thread_tile(4, 4) lanes_m(4) a(KMajor) b(Unaligned)
        exact_tiles(false) k_slices(1) launch_bounds(8) rate(26.0, 0.50, 8);
    "async-pipeline-64x128-nn" = fn async_pipeline_64x128_nn
        threads(128) tile(64, 128, 8) thread_tile(8, 8) lanes_m(4) a(KMajor) b(MnMajor)
        exact_tiles(false) k_slices(1) launch_bounds(3) rate(46.0, 0.66, 3);
    "async-pipeline-32x128-nn" = fn async_pipeline_32x128_nn
        threads(128) tile(32, 128, 16) thread_tile(4, 8) lanes_m(8) a(KMajor) b(MnMajor)
        exact_tiles(false) k_slices(1) launch_bounds(4) rate(42.0, 0.62, 4);
    "async-pipeline-32x128-nt" = fn async_pipeline_32x128_nt
        threads(128) tile(32, 128, 16) thread_tile(4, 8) lanes_m(8) a(KMajor) b(KMajor)
        exact_tiles(false) k_slices(1) launch_bounds(4) rate(36.0, 0.62, 4);
    "async-pipeline-16x128-nn" = fn async_pipeline_16x128_nn
        threads(128) tile(16, 128, 16) thread_tile(4, 4) lanes_m(4) a(KMajor) b(MnMajor)
        exact_tiles(false) k_slices(1) launch_bounds(5) rate(34.0, 0.65, 5);
    "async-pipeline-16x128-nt" = fn async_pipeline_16x128_nt
        threads(128) tile(16, 128, 16) thread_tile(4, 4) lanes_m(4) a(KMajor) b(KMajor)
        exact_tiles(false) k_slices(1) launch_bounds(4) rate(28.0, 0.65, 4);
    "async-pipeline-8x128-nn" = fn async_pipeline_8x128_nn
        threads(64) tile(8, 128, 16) thread_tile(4, 4) lanes_m(2) a(KMajor) b(MnMajor)
        exact_tiles(false) k_slices(1) launch_bounds(6) rate(14.0, 0.25, 6);
}
