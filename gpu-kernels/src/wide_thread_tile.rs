//! A wide thread tile: 16 x 12 accumulators a thread, fewer reads for each, and every register in
//! use.
//!
//! Over `async-pipeline`:
//! - a thread tile of 16 x 8 reads 24 floats for 128 FMAs; one of 16 x 12 reads 28 for 192, about
//!   three quarters as many for each. Barriers, copies and addresses also serve 192 FMAs;
//! - its accumulators take 192 of 255 registers. The remaining registers do not hold two columns
//!   of A: four rows of A are read just before they are multiplied, into the registers of the
//!   previous four;
//! - values that the loop does not need stay in shared memory until the tile is done;
//! - few sizes are multiples of the block tile, 128 x 192. `async-pipeline` computes the N
//!   remainder (`n_remainder` below), since a tile that is partly empty takes as long as an exact
//!   one.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/TM + 1/TN), as float4s; 16 * 8 * (128 + 192) bytes a CTA
//! Block: 128 threads, block tile 128 x 192 x 8, thread tile 16 x 12. Any M, N, K, with A and B
//! padded with zeros up to exact tiles.
//!
//! ```sh
//! cargo run -p host -- --kernel wide-thread-tile --m 256 --n 500 --k 123
//! ```

use cuda_std::prelude::*;

use crate::compat::{grid_dependency, pipeline};
use crate::epilogue::Epilogue;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::kernel::kernel;
use crate::raster;
use crate::stream_k::{CtaWork, StreamK};
use crate::tile_loader::{MnMajor, TileLoader};

/// Block tile.
const BM: usize = 128;
const BN: usize = 192;
const BK: usize = 8;
/// Thread tile.
const TM: usize = 16;
const TN: usize = 12;
const THREADS: usize = BM / TM * (BN / TN);
/// Tiles of A, and of B, in the ring buffer.
const STAGES: usize = 4;

type A = MnMajor<BM, BK, THREADS, true>;
type B = MnMajor<BN, BK, THREADS, true>;

/// Elements of a tile of A and one of B.
const STAGE: usize = A::STAGE + B::STAGE;
/// The offset from the last stage in shared memory back to the first, in bytes, modulo 2^32.
const BACK: u32 = 0u32.wrapping_sub(((STAGES - 1) * STAGE * 4) as u32);

/// The order in which the columns of a thread tile are multiplied: one from each of the three
/// float4s of B in turn.
const COLUMN_ORDER: [usize; TN] = [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11];

/// The loop is rotated: an iteration starts at this k of a tile and this row of the thread tile,
/// and ends there in the next tile. `ptxas` moves no read across the ends, so each comes at least
/// 16 FMAs before its use (docs/src/tuning.md).
const START_K: usize = 1;
const START_ROW: usize = 5;
/// The k before which it waits for the next tile.
const BARRIER_K: usize = 7;

/// The work of a CTA. The loop does not need it, and has no registers for it.
#[derive(Clone, Copy)]
struct Schedule {
    stream_k: StreamK,
    work: CtaWork,
    /// The workspace tile of its next partial sums.
    workspace_tile: usize,
}

/// Its room after the stages, in elements. A separate shared array was placed before the stages,
/// which then began in the middle of 128 bytes: 53 instead of 57 TFLOP/s (8192 x 6336 x 8192,
/// H200).
const SCHEDULE: usize = size_of::<Schedule>() / size_of::<f32>();

/// A thread's read offsets in a tile of A and one of B, in bytes from the first stage.
#[derive(Clone, Copy)]
struct Offsets {
    a: u32,
    b: u32,
}

impl Offsets {
    /// The offsets in tiles `bytes` further on, modulo 2^32.
    #[inline(always)]
    fn after(self, bytes: u32) -> Offsets {
        Offsets {
            a: self.a.wrapping_add(bytes),
            b: self.b.wrapping_add(bytes),
        }
    }
}

#[inline(always)]
unsafe fn multiply(
    gemm: Gemm<'_, f32, f32, f32, impl Epilogue>,
    stages: *mut f32, // (STAGES, BK * BM + BK * BN), then a Schedule; in shared memory
) {
    const {
        assert!(THREADS == 4 * 32, "2 x 2 warps");
        assert!(BM == 2 * 4 * TM && BN == 2 * 8 * TN, "of 4 x 8 lanes");
        assert!(TM.is_multiple_of(4), "fragments are float4s");
        assert!(TN.is_multiple_of(4), "fragments are float4s");
        assert!(START_K < BARRIER_K && BARRIER_K < BK && START_ROW < TM && STAGES >= 3);
        assert!(size_of::<Schedule>().is_multiple_of(size_of::<f32>()));
        assert!((STAGES * STAGE * 4).is_multiple_of(align_of::<Schedule>()));
    }
    let gemm = gemm.with_c_of_cta();
    let parked = stages.add(STAGES * STAGE).cast::<Schedule>();
    grid_dependency::wait(); // for copies of A and B
    grid_dependency::launch_dependents(); // `fix_up` may start on SMs that become free

    // The first row and column of this thread in the block tile.
    let thread = thread::thread_idx_x() as usize;
    let (warp, lane) = (thread / 32, thread % 32);
    let (lane_m, lane_n) = raster::lane_position(lane);
    let row = warp / 2 * (4 * TM) + lane_m * 4;
    let col = warp % 2 * (8 * TN) + lane_n * 4;
    // The distance between the 4 x 4 pieces of a thread tile.
    let (next_rows, next_cols) = (4 * 4, 4 * 8);

    let read =
        |offset: u32, element: usize| Float4::read(stages.byte_add(offset as usize).add(element));
    let read_a = |at: Offsets, k: usize, i: usize| read(at.a, k * A::STRIDE + i * next_rows);
    let read_b = |at: Offsets, k: usize, j: usize| read(at.b, k * B::STRIDE + j * next_cols);

    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (stream_k, work) = StreamK::of_launch((gemm.m, gemm.n, depth), (BM, BN, BK));
    let mut schedule = Schedule {
        stream_k,
        work,
        workspace_tile: 2 * block_x,
    };
    while schedule.work.begin < schedule.work.end {
        let Schedule { stream_k, work, .. } = schedule;
        let segment = stream_k.segment(work);
        let (tile_row, tile_col) = stream_k.tile_position(segment.tile);
        let (tile_row, tile_col) = (tile_row * BM, tile_col * BN);
        let k0 = segment.from * BK;
        let target = A::target(thread);
        let mut a = A::new(
            gemm.a,
            gemm.lda,
            (gemm.m, depth),
            (tile_row, k0),
            thread,
            target,
        );
        let target = B::target(thread);
        let mut b = B::new(
            gemm.b,
            gemm.ldb,
            (gemm.n, depth),
            (tile_col, k0),
            thread,
            target,
        );
        let mut accumulators = [[0.0f32; TN]; TM];
        let mut a_frag = [Float4::ZERO; TM / 4];
        let mut b_frag = [Float4::ZERO; TN / 4];

        // The FMAs of the k-th column of A and row of B, interleaved with reads of the next
        // fragments.
        macro_rules! multiply_column {
            ($k:expr, rows $rows:expr, in $here:expr, then $next:expr) => {{
                let k = $k;
                let following: Option<(Offsets, usize)> = match k + 1 < BK {
                    true => Some(($here, k + 1)),
                    false => $next.map(|next| (next, 0)),
                };
                let mut b_next = b_frag;
                for i in $rows {
                    if i % 4 == 0 {
                        let next = i / 4 + 1;
                        if next < TM / 4 {
                            a_frag[next] = read_a($here, k, next);
                        } else if let Some((at, k)) = following {
                            for j in 0..TN / 4 {
                                b_next[j] = read_b(at, k, j);
                            }
                            a_frag[0] = read_a(at, k, 0);
                        }
                    }
                    for index in 0..TN {
                        let j = COLUMN_ORDER[raster::serpentine(i, index, TN)];
                        accumulators[i][j] += a_frag[i / 4].0[i % 4] * b_frag[j / 4].0[j % 4];
                    }
                }
                b_frag = b_next;
            }};
        }

        // The k-iterations remaining, this one included.
        let mut remaining = (segment.to - segment.from) as u32;
        if depth == 0 {
            remaining = 0;
        }
        if remaining > 0 {
            thread::sync_threads(); // every thread has finished reading the previous segment
            if thread == 0 {
                *parked = schedule;
            }
            for stage in 0..STAGES - 1 {
                if (stage as u32) < remaining {
                    a.copy_exact(stages.add(stage * STAGE + A::target(thread)));
                    b.copy_exact(stages.add(stage * STAGE + A::STAGE + B::target(thread)));
                }
                a.advance();
                b.advance();
                pipeline::commit();
            }
            pipeline::wait_prior::<{ STAGES as u32 - 2 }>();
            thread::sync_threads(); // the first stage is complete

            // The target of this thread's copies, in the stage that was read last.
            let mut free = Offsets {
                a: (((STAGES - 1) * STAGE + A::target(thread)) * 4) as u32,
                b: (((STAGES - 1) * STAGE + A::STAGE + B::target(thread)) * 4) as u32,
            };
            let mut here = Offsets {
                a: (row * 4) as u32,
                b: ((A::STAGE + col) * 4) as u32,
            };
            let (mut stage, mut to_free) = (0u32, BACK);
            for j in 0..TN / 4 {
                b_frag[j] = read_b(here, 0, j);
            }
            a_frag[0] = read_a(here, 0, 0);
            for k in 0..START_K {
                multiply_column!(k, rows 0..TM, in here, then Some(here));
            }
            multiply_column!(START_K, rows 0..START_ROW, in here, then Some(here));
            while remaining > 1 {
                let to_next = if stage == STAGES as u32 - 1 {
                    BACK
                } else {
                    (STAGE * 4) as u32
                };
                stage = (stage + 1) % STAGES as u32;
                let next = here.after(to_next);
                multiply_column!(START_K, rows START_ROW..TM, in here, then Some(next));
                for k in START_K + 1..BK {
                    if k == BARRIER_K {
                        pipeline::wait_prior::<{ STAGES as u32 - 3 }>();
                        // The next stage is complete, and every thread has finished reading the
                        // previous one.
                        thread::sync_threads();
                        if remaining > STAGES as u32 - 1 {
                            a.copy_exact(stages.byte_add(free.a as usize));
                            b.copy_exact(stages.byte_add(free.b as usize));
                        }
                        free = free.after(to_free);
                        a.advance();
                        b.advance();
                        pipeline::commit();
                    }
                    multiply_column!(k, rows 0..TM, in here, then Some(next));
                }
                (to_free, here) = (to_next, next);
                for k in 0..START_K {
                    multiply_column!(k, rows 0..TM, in here, then Some(here));
                }
                multiply_column!(START_K, rows 0..START_ROW, in here, then Some(here));
                remaining -= 1;
            }
            multiply_column!(START_K, rows START_ROW..TM, in here, then None::<Offsets>);
            for k in START_K + 1..BK {
                multiply_column!(k, rows 0..TM, in here, then None::<Offsets>);
            }
            schedule = *parked;
        }

        let Schedule {
            stream_k,
            work,
            workspace_tile,
        } = schedule;
        let segment = stream_k.segment(work);
        let (tile_row, tile_col) = stream_k.tile_position(segment.tile);
        let (tile_row, tile_col) = (tile_row * BM, tile_col * BN);
        // The epilogue is a copy of that of `async_pipeline`. With a shared function, `ptxas` put
        // reads of this loop next to their uses, and gave the other loop more FMAs with register
        // bank conflicts (137 instead of 120 a k-iteration).
        let covers_tile = stream_k.covers_tile(segment);
        let in_bounds = gemm.tile_is_in_bounds(tile_row, tile_col, BM, BN);
        let exact = in_bounds && gemm.c_is_float4_aligned();
        let partial = gemm.partials.wrapping_add(workspace_tile * BM * BN); // (BM, BN)
        for i in 0..TM {
            for j in 0..TN / 4 {
                let [p, q, r, s] = [0, 1, 2, 3].map(|lane| accumulators[i][4 * j + lane]);
                let float4 = Float4([p, q, r, s]);
                let (row, col) = (row + i / 4 * next_rows + i % 4, col + j * next_cols);
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
        schedule.work.begin += segment.to - segment.from;
        schedule.workspace_tile = 2 * block_x + 1;
    }
}

kernel! {
    name: "wide-thread-tile",
    idea: "thread tiles of 16 x 12: fewer shared-memory reads for each FMA",
    epilogue: any,
    variants: [
        "wide-thread-tile" = fn wide_thread_tile(gemm: f32)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(stages: [f32; STAGES * STAGE + SCHEDULE])
            launch_bounds(2)
            {
                thread_tile: (TM as u32, TN as u32),
                least_capability: 80,
                grid: Grid::StreamK,
                a: A::LAYOUT,
                b: B::LAYOUT,
                exact_tiles: true,
                n_remainder: Some("async-pipeline"),
                vector_stores: true,
                rate: Some(Rate::h200(57.3, 0.68, 2)),
            }
            => multiply(gemm, stages);
    ],
}
