//! An asynchronous pipeline: tiles arrive in shared memory on their own, four steps ahead, and blocks share the sums.
//!
//! Over `warp-tiled`:
//! - A and B are both copied straight to shared memory (`cp.async`), into a ring of STAGES tiles: no register carries a tile, no
//!   instruction stores one. 93 % of the loop are FMAs (before: 90 %);
//! - a 16-byte copy cannot transpose. So A is wanted as `k x m`, its rows along the tile, as B's are: whoever launches this kernel
//!   transposes A before (`transpose.rs`), which costs 1.5 % of the time at 4096 and half of that at 8192. Where a tile
//!   is so flat that it would cost more, A is copied element by element (the variants `-nn`, `-nt` and `-odd`);
//! - what does not exist is asked for as zeros by the copy itself: edges take no branches;
//! - a turn of the loop goes from inside one tile to inside the next. With the barrier at its end, `ptxas` puts the reads behind it next to
//!   their uses (54.3 instead of 56.8 TFLOP/s at 8192 on an H200). Of some 4600 places for the barrier and the copies, orders of the reads and
//!   walks of the patch this is among the fastest, and none is more than 1 % faster: what differs is how well `ptxas` spreads the operands over
//!   the banks of registers;
//! - it begins before the copies that it reads are whole, and `fix_up` before it has ended: each waits for the one before it
//!   (`grid_dependency`), instead of being launched 2 us after that;
//! - the blocks of the last round share its steps evenly, whatever tile they belong to (`streams.rs`): 55.1 instead of 56.6.
//!
//! Global-memory reads: M*N*K * (1/TILE_M + 1/TILE_N)
//! Shared-memory reads: M*N*K * (1/PATCH_M + 1/PATCH_N), four at a time; 16 * SN * (TILE_M + TILE_N) bytes a block
//! Block: 64 or 128 threads, a TILE_M x TILE_N patch of C at a time, PATCH_M x PATCH_N a thread, SN = 8 or 16 deep. Any M, N, K; where
//! a variant wants whole tiles, A and B are stored with zeros up to there.
//!
//! ```sh
//! cargo run -p host -- --kernel async-pipeline --m 1000 --n 777 --k 123
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::{grid_dependency, kept, launch_bounds, pipeline};
use crate::feed::{AlongSums, AlongTile, AnyRows, Feed};
use crate::float4::Float4;
use crate::gemm::{gemm_kernel, Gemm};
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Grid, Kernel, Storage};
use crate::streams::Streams;

/// Tiles of A, and of B, in shared memory.
const STAGES: usize = 4;

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "async-pipeline",
    idea: "tiles arrive on their own, four steps ahead; blocks share the sums",
    source: file!(),
    variants: &[
        variant!("async-pipeline", Streamed(async_pipeline), block(128, 1), tile(128, 128, 8), own_patch: Some((16, 8)),
            grid: Grid::Streams, a: Storage::AlongTile, b: Storage::AlongTile, whole: true),
        variant!("async-pipeline-edges", Streamed(async_pipeline_edges), block(128, 1), tile(128, 128, 8), own_patch: Some((16, 8)),
            grid: Grid::Streams, a: Storage::AlongTile, b: Storage::AlongTile),
        variant!("async-pipeline-64x64", Streamed(async_pipeline_64x64), block(64, 1), tile(64, 64, 8), own_patch: Some((8, 8)),
            grid: Grid::Streams, a: Storage::AlongTile, b: Storage::AlongTile, whole: true),
        variant!("async-pipeline-64x64-edges", Streamed(async_pipeline_64x64_edges), block(64, 1), tile(64, 64, 8), own_patch: Some((8, 8)),
            grid: Grid::Streams, a: Storage::AlongTile, b: Storage::AlongTile),
        variant!("async-pipeline-64x64-nn", Streamed(async_pipeline_64x64_nn), block(64, 1), tile(64, 64, 8), own_patch: Some((8, 8)),
            grid: Grid::Streams, a: Storage::AlongSums, b: Storage::AlongTile),
        variant!("async-pipeline-64x64-odd", Streamed(async_pipeline_64x64_odd), block(64, 1), tile(64, 64, 8), own_patch: Some((8, 8)),
            grid: Grid::Streams, a: Storage::AlongSums, b: Storage::RowMajor),
        variant!("async-pipeline-32x32-odd", Streamed(async_pipeline_32x32_odd), block(64, 1), tile(32, 32, 16), own_patch: Some((4, 4)),
            grid: Grid::Streams, a: Storage::AlongSums, b: Storage::RowMajor),
        variant!("async-pipeline-64x128-nn", Streamed(async_pipeline_64x128_nn), block(128, 1), tile(64, 128, 8), own_patch: Some((8, 8)),
            grid: Grid::Streams, a: Storage::AlongSums, b: Storage::AlongTile),
        variant!("async-pipeline-32x128-nn", Streamed(async_pipeline_32x128_nn), block(128, 1), tile(32, 128, 16), own_patch: Some((4, 8)),
            grid: Grid::Streams, a: Storage::AlongSums, b: Storage::AlongTile),
        variant!("async-pipeline-32x128-nt", Streamed(async_pipeline_32x128_nt), block(128, 1), tile(32, 128, 16), own_patch: Some((4, 8)),
            grid: Grid::Streams, a: Storage::AlongSums, b: Storage::AlongSums),
        variant!("async-pipeline-16x128-nn", Streamed(async_pipeline_16x128_nn), block(128, 1), tile(16, 128, 16), own_patch: Some((4, 4)),
            grid: Grid::Streams, a: Storage::AlongSums, b: Storage::AlongTile),
        variant!("async-pipeline-16x128-nt", Streamed(async_pipeline_16x128_nt), block(128, 1), tile(16, 128, 16), own_patch: Some((4, 4)),
            grid: Grid::Streams, a: Storage::AlongSums, b: Storage::AlongSums),
        variant!("async-pipeline-8x128-nn", Streamed(async_pipeline_8x128_nn), block(64, 1), tile(8, 128, 16), own_patch: Some((4, 4)),
            grid: Grid::Streams, a: Storage::AlongSums, b: Storage::AlongTile),
    ],
};

/// Writes an entry point: tile and patch, lanes of a warp along M, how A and B are stored, and the blocks that a multiprocessor holds.
macro_rules! entry {
    (
        $entry:ident, tile($tile_m:literal, $tile_n:literal, $depth:literal), patch($patch_m:literal, $patch_n:literal),
        lanes_m $lanes_m:literal, $a:ident, $b:ident, whole $whole:literal, blocks $blocks:literal
    ) => {
        gemm_kernel! {
            fn $entry(gemm: f32, partials) {
                const THREADS: usize = $tile_m / $patch_m * ($tile_n / $patch_n);
                launch_bounds::<{ THREADS as u32 }, $blocks>();
                multiply::<
                    $a<$tile_m, $depth, THREADS, $whole>,
                    $b<$tile_n, $depth, THREADS, $whole>,
                    $tile_m, $tile_n, $depth, $patch_m, $patch_n, { $patch_m / 4 }, { $patch_n / 4 }, $lanes_m,
                >(
                    gemm,
                    partials,
                    shared_array![f32; STAGES * ($a::<$tile_m, $depth, THREADS, $whole>::STAGE
                        + $b::<$tile_n, $depth, THREADS, $whole>::STAGE)],
                )
            }
        }
    };
}

entry!(async_pipeline, tile(128, 128, 8), patch(16, 8), lanes_m 4, AlongTile, AlongTile, whole true, blocks 2);
entry!(async_pipeline_edges, tile(128, 128, 8), patch(16, 8), lanes_m 4, AlongTile, AlongTile, whole false, blocks 2);
entry!(async_pipeline_64x64, tile(64, 64, 8), patch(8, 8), lanes_m 4, AlongTile, AlongTile, whole true, blocks 5);
entry!(async_pipeline_64x64_edges, tile(64, 64, 8), patch(8, 8), lanes_m 4, AlongTile, AlongTile, whole false, blocks 6);
entry!(async_pipeline_64x64_nn, tile(64, 64, 8), patch(8, 8), lanes_m 4, AlongSums, AlongTile, whole false, blocks 6);
entry!(async_pipeline_64x64_odd, tile(64, 64, 8), patch(8, 8), lanes_m 4, AlongSums, AnyRows, whole false, blocks 6);
entry!(async_pipeline_32x32_odd, tile(32, 32, 16), patch(4, 4), lanes_m 4, AlongSums, AnyRows, whole false, blocks 8);
entry!(async_pipeline_64x128_nn, tile(64, 128, 8), patch(8, 8), lanes_m 4, AlongSums, AlongTile, whole false, blocks 3);
entry!(async_pipeline_32x128_nn, tile(32, 128, 16), patch(4, 8), lanes_m 8, AlongSums, AlongTile, whole false, blocks 4);
entry!(async_pipeline_32x128_nt, tile(32, 128, 16), patch(4, 8), lanes_m 8, AlongSums, AlongSums, whole false, blocks 4);
entry!(async_pipeline_16x128_nn, tile(16, 128, 16), patch(4, 4), lanes_m 4, AlongSums, AlongTile, whole false, blocks 5);
entry!(async_pipeline_16x128_nt, tile(16, 128, 16), patch(4, 4), lanes_m 4, AlongSums, AlongSums, whole false, blocks 4);
entry!(async_pipeline_8x128_nn, tile(8, 128, 16), patch(4, 4), lanes_m 2, AlongSums, AlongTile, whole false, blocks 6);

/// The order in which eight columns of a patch are multiplied.
const COLUMNS: [usize; 8] = [6, 5, 2, 1, 4, 0, 7, 3];

/// What a thread multiplies at a time: PATCH_M elements of a column of A, PATCH_N of a row of B.
type Fragments<const M4: usize, const N4: usize> = ([Float4; M4], [Float4; N4]);

/// The body of every variant. `tiles` has room for STAGES tiles of A and of B.
#[inline(always)]
unsafe fn multiply<
    A: Feed,
    B: Feed,
    const TILE_M: usize,
    const TILE_N: usize,
    const DEPTH: usize,
    const PATCH_M: usize,
    const PATCH_N: usize,
    const M4: usize, // PATCH_M / 4
    const N4: usize, // PATCH_N / 4
    const LANES_M: usize,
>(
    gemm: Gemm<'_, f32>,
    partials: *mut f32,
    tiles: *mut f32,
) {
    grid_dependency::wait(); // for copies of A and B
    grid_dependency::launch_dependents(); // `fix_up` may take its places

    // A stage is a tile of A and one of B.
    let (a_tiles, b_tiles, stage_size) = (tiles, tiles.add(A::STAGE), A::STAGE + B::STAGE);
    let lanes_n = 32 / LANES_M;
    let (next_rows, next_cols) = (4 * LANES_M, 4 * lanes_n);
    let (warp_m, warp_n) = (PATCH_M * LANES_M, PATCH_N * lanes_n);

    // What this thread computes: the first of its rows and columns in the block's tile. Lanes in pairs along the shorter side.
    let thread = thread::thread_idx_x() as usize;
    let (warp, lane) = (thread / 32, thread % 32);
    let (short, long) = (lane / 16 * 2 + lane % 2, lane / 2 % 8);
    let (lane_m, lane_n) = match LANES_M {
        8 => (long, short),
        4 => (short, long),
        _ => (lane % LANES_M, lane / LANES_M),
    };
    let warps_n = TILE_N / warp_n;
    let row = kept((warp / warps_n * warp_m + lane_m * 4) as u32) as usize;
    let col = kept((warp % warps_n * warp_n + lane_n * 4) as u32) as usize;

    // What it copies.
    let a_target = kept(A::target() as u32) as usize;
    let b_target = kept(B::target() as u32) as usize;

    let read = |stage: u32, k: usize| -> Fragments<M4, N4> {
        let a_column = a_tiles.add(stage as usize * stage_size + k * A::STRIDE + row);
        let b_row = b_tiles.add(stage as usize * stage_size + k * B::STRIDE + col);
        let mut a_frag = [Float4::ZERO; M4];
        let mut b_frag = [Float4::ZERO; N4];
        for j in 0..N4 {
            b_frag[j] = Float4::read(b_row.add(j * next_cols));
        }
        for i in (0..M4).rev() {
            a_frag[i] = Float4::read(a_column.add(i * next_rows));
        }
        (a_frag, b_frag)
    };

    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (streams, mut share) = Streams::of_launch((gemm.m, gemm.n, depth), (TILE_M, TILE_N, DEPTH));
    let mut slot = 2 * block_x;
    while share.begin < share.end {
        let part = streams.part(share);
        let (tile_row, tile_col) = streams.place(part.tile);
        let (tile_row, tile_col) = (tile_row * TILE_M, tile_col * TILE_N);
        let k0 = part.from * DEPTH;
        let mut a = A::new(gemm.a, gemm.lda, gemm.m, depth, tile_row, k0, a_target);
        let mut b = B::new(gemm.b, gemm.ldb, gemm.n, depth, tile_col, k0, b_target);
        let mut sums = [[0.0f32; PATCH_N]; PATCH_M];
        // To and fro, so that each FMA shares an operand with the one before it.
        let mut multiply = |(a_frag, b_frag): Fragments<M4, N4>| {
            for i in 0..PATCH_M {
                for turn in 0..PATCH_N {
                    let place = if i % 2 == 0 { turn } else { PATCH_N - 1 - turn };
                    let j = if PATCH_N == 8 { COLUMNS[place] } else { place };
                    sums[i][j] += a_frag[i / 4].0[i % 4] * b_frag[j / 4].0[j % 4];
                }
            }
        };

        // Steps that are left to multiply, this one included.
        let mut left = (part.to - part.from) as u32;
        if depth == 0 {
            left = 0;
        }
        if left > 0 {
            thread::sync_threads(); // every thread has finished reading the tiles of the part before
            for stage in 0..STAGES {
                if (stage as u32) < left {
                    a.copy(a_tiles.add(stage * stage_size));
                    b.copy(b_tiles.add(stage * stage_size));
                }
                pipeline::commit();
            }
            pipeline::wait_prior::<{ STAGES as u32 - 1 }>();
            thread::sync_threads(); // the first tiles are whole

            // A turn of the loop goes from inside one tile to inside the next, so that the barrier and the reads behind it do not lie at its
            // end, where `ptxas` puts them next to their uses.
            let turn = DEPTH * 5 / 8;
            let mut stage = 0;
            let mut now = read(stage, 0);
            for k in 1..turn + 1 {
                let next = read(stage, k);
                multiply(now);
                now = next;
            }
            while left > 1 {
                for k in turn + 1..DEPTH {
                    let next = read(stage, k);
                    multiply(now);
                    now = next;
                }
                pipeline::wait_prior::<{ STAGES as u32 - 2 }>();
                thread::sync_threads(); // the next tiles are whole, and every thread has finished reading these
                let free = stage as usize;
                stage = (stage + 1) % STAGES as u32;
                let next = read(stage, 0);
                multiply(now);
                if left > STAGES as u32 {
                    a.copy(a_tiles.add(free * stage_size));
                    b.copy(b_tiles.add(free * stage_size));
                }
                pipeline::commit();
                now = next;
                for k in 1..turn + 1 {
                    let next = read(stage, k);
                    multiply(now);
                    now = next;
                }
                left -= 1;
            }
            for k in turn + 1..DEPTH {
                let next = read(stage, k);
                multiply(now);
                now = next;
            }
            multiply(now);
        }

        let whole = streams.is_whole(part);
        let inside =
            gemm.tile_is_inside(tile_row, tile_col, TILE_M, TILE_N) && gemm.c_is_float4_aligned();
        let partial = partials.wrapping_add(slot * TILE_M * TILE_N);
        for i in 0..PATCH_M {
            for j in 0..N4 {
                let [p, q, r, s] = [0, 1, 2, 3].map(|lane| sums[i][4 * j + lane]);
                let four = Float4([p, q, r, s]);
                let (row, col) = (row + i / 4 * next_rows + i % 4, col + j * next_cols);
                if !whole {
                    if tile_row + row < gemm.m {
                        four.write(partial.add(row * TILE_N + col));
                    }
                } else if inside {
                    gemm.update4::<false>(tile_row + row, tile_col + col, four);
                } else {
                    gemm.update4::<true>(tile_row + row, tile_col + col, four);
                }
            }
        }
        share.begin += part.to - part.from;
        slot = 2 * block_x + 1;
    }
}
