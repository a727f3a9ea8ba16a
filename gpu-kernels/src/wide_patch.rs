//! A wide patch: 16 x 12 sums a thread, fewer reads for each of them, and every register taken.
//!
//! Over `async-pipeline`:
//! - a thread of 16 x 8 reads 24 floats for 128 FMAs; one of 16 x 12 reads 28 for 192, three quarters as many for each. Barriers, copies and addresses
//!   come once in 192 FMAs, too. 94 % of the loop are FMAs (before: 93 %), and fewer of them find their operands in one bank of registers;
//! - that is 192 sums of 255 registers. What is left is not enough for two columns of A on their way: four rows of A are read just before their turn, into
//!   the registers of those before them;
//! - what the loop does not need waits in shared memory until the tile is done;
//! - a tile is 128 x 192, of which few sizes are multiples. The last columns of C go to `async-pipeline` (`rest` in the table): a tile that is not full
//!   takes as long as one that is.
//!
//! Global-memory reads: M*N*K * (1/128 + 1/192)
//! Shared-memory reads: M*N*K * (1/16 + 1/12), four at a time; 16 * 8 * (128 + 192) bytes a block
//! Block: 128 threads, a 128 x 192 patch of C at a time, 16 x 12 a thread, 8 deep. Any M, N, K, where A and B are stored with zeros
//! up to whole tiles.
//!
//! ```sh
//! cargo run -p host -- --kernel wide-patch --m 256 --n 500 --k 123
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::{grid_dependency, launch_bounds, pipeline};
use crate::feed::{AlongTile, Feed};
use crate::float4::Float4;
use crate::gemm::{gemm_kernel, Gemm};
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Grid, Kernel, Storage};
use crate::streams::{Share, Streams};

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "wide-patch",
    idea: "more sums a thread: fewer reads for each, and every register taken",
    source: file!(),
    variants: &[
        variant!("wide-patch", Streamed(wide_patch), block(THREADS, 1), tile(TILE_M, TILE_N, DEPTH), own_patch: Some((16, 12)),
            grid: Grid::Streams, a: Storage::AlongTile, b: Storage::AlongTile, whole: true, rest: Some("async-pipeline")),
    ],
};

/// What a block computes at a time, and how deep.
const TILE_M: usize = 128;
const TILE_N: usize = 192;
const DEPTH: usize = 8;
/// What a thread computes of it.
const PATCH_M: usize = 16;
const PATCH_N: usize = 12;
const THREADS: usize = TILE_M / PATCH_M * (TILE_N / PATCH_N);
/// Tiles of A, and of B, in shared memory.
const STAGES: usize = 4;

type A = AlongTile<TILE_M, DEPTH, THREADS, true>;
type B = AlongTile<TILE_N, DEPTH, THREADS, true>;

/// Elements of a tile of A and one of B.
const STAGE: usize = A::STAGE + B::STAGE;
/// From the last tiles in shared memory back to the first, in bytes, modulo 2^32.
const BACK: u32 = 0u32.wrapping_sub(((STAGES - 1) * STAGE * 4) as u32);

/// The order in which the columns of a patch are multiplied: of its three fours in turn.
const COLUMNS: [usize; PATCH_N] = [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11];

/// A turn of the loop goes from this row of the patch in this column of a tile to the same of the next tile...
const TURN: usize = 1;
const TURN_ROW: usize = 5;
/// ... and waits before this column for the next tile.
const BARRIER: usize = 7;

gemm_kernel! {
    fn wide_patch(gemm: f32, partials) {
        launch_bounds::<{ THREADS as u32 }, 2>();
        multiply(gemm, partials, shared_array![f32; STAGES * STAGE + WAITING])
    }
}

/// What a block has to do. The loop does not need it, and has no registers to keep it in.
#[derive(Clone, Copy)]
struct Work {
    streams: Streams,
    share: Share,
    /// Where its next partial sums go.
    slot: usize,
}

/// Room for it behind the tiles, in elements. (In an array of its own it came before them, which then began in the middle of 128 bytes, and the kernel
/// had 53 instead of 57 TFLOP/s.)
const WAITING: usize = core::mem::size_of::<Work>() / core::mem::size_of::<f32>();

/// Where a thread reads fours of a tile of A and of one of B: bytes from the start of shared memory's tiles.
#[derive(Clone, Copy)]
struct Place {
    a: u32,
    b: u32,
}

impl Place {
    /// The same, in tiles `distance` bytes further on, modulo 2^32.
    #[inline(always)]
    fn after(self, distance: u32) -> Place {
        Place {
            a: self.a.wrapping_add(distance),
            b: self.b.wrapping_add(distance),
        }
    }
}

/// The body. `tiles` has room for STAGES tiles of A and of B, and behind them for what the loop does not need.
#[inline(always)]
unsafe fn multiply(gemm: Gemm<'_, f32>, partials: *mut f32, tiles: *mut f32) {
    let waiting = tiles.add(STAGES * STAGE).cast::<Work>();
    grid_dependency::wait(); // for copies of A and B
    grid_dependency::launch_dependents(); // `fix_up` may take its places

    // What this thread computes: the first of its rows and columns in the block's tile. A warp is 4 x 8 threads, in pairs along M.
    let thread = thread::thread_idx_x() as usize;
    let (warp, lane) = (thread / 32, thread % 32);
    let (lane_m, lane_n) = (lane / 16 * 2 + lane % 2, lane / 2 % 8);
    let row = warp / 2 * (4 * PATCH_M) + lane_m * 4;
    let col = warp % 2 * (8 * PATCH_N) + lane_n * 4;
    let (next_rows, next_cols) = (16, 32);

    let read =
        |first: u32, element: usize| Float4::read(tiles.byte_add(first as usize).add(element));
    let read_a = |place: Place, k: usize, i: usize| read(place.a, k * A::STRIDE + i * next_rows);
    let read_b = |place: Place, k: usize, j: usize| read(place.b, k * B::STRIDE + j * next_cols);

    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (streams, share) = Streams::of_launch((gemm.m, gemm.n, depth), (TILE_M, TILE_N, DEPTH));
    let mut work = Work {
        streams,
        share,
        slot: 2 * block_x,
    };
    while work.share.begin < work.share.end {
        let Work { streams, share, .. } = work;
        let part = streams.part(share);
        let (tile_row, tile_col) = streams.place(part.tile);
        let (tile_row, tile_col) = (tile_row * TILE_M, tile_col * TILE_N);
        let k0 = part.from * DEPTH;
        let mut a = A::new(gemm.a, gemm.lda, gemm.m, depth, tile_row, k0, A::target());
        let mut b = B::new(gemm.b, gemm.ldb, gemm.n, depth, tile_col, k0, B::target());
        let mut sums = [[0.0f32; PATCH_N]; PATCH_M];
        let mut a_frag = [Float4::ZERO; PATCH_M / 4];
        let mut b_frag = [Float4::ZERO; PATCH_N / 4];

        // The FMAs of the k-th column of A and row of B, and on the way the reads of what comes next.
        macro_rules! multiply_column {
            ($k:expr, rows $rows:expr, in $here:expr, then $next:expr) => {{
                let k = $k;
                let following: Option<(Place, usize)> = match k + 1 < DEPTH {
                    true => Some(($here, k + 1)),
                    false => $next.map(|next| (next, 0)),
                };
                let mut b_next = b_frag;
                for i in $rows {
                    if i % 4 == 0 {
                        let four = i / 4 + 1;
                        if four < PATCH_M / 4 {
                            a_frag[four] = read_a($here, k, four);
                        } else if let Some((place, k)) = following {
                            for four in 0..PATCH_N / 4 {
                                b_next[four] = read_b(place, k, four);
                            }
                            a_frag[0] = read_a(place, k, 0);
                        }
                    }
                    // To and fro, so that each FMA shares an operand with the one before it.
                    for turn in 0..PATCH_N {
                        let j = COLUMNS[if i % 2 == 0 { turn } else { PATCH_N - 1 - turn }];
                        sums[i][j] += a_frag[i / 4].0[i % 4] * b_frag[j / 4].0[j % 4];
                    }
                }
                b_frag = b_next;
            }};
        }

        // Steps that are left to multiply, this one included.
        let mut left = (part.to - part.from) as u32;
        if depth == 0 {
            left = 0;
        }
        if left > 0 {
            thread::sync_threads(); // every thread has finished reading the tiles of the part before
            if thread == 0 {
                *waiting = work;
            }
            for stage in 0..STAGES - 1 {
                if (stage as u32) < left {
                    a.copy_whole(tiles.add(stage * STAGE + A::target()));
                    b.copy_whole(tiles.add(stage * STAGE + A::STAGE + B::target()));
                }
                a.advance();
                b.advance();
                pipeline::commit();
            }
            pipeline::wait_prior::<{ STAGES as u32 - 2 }>();
            thread::sync_threads(); // the first tiles are whole

            // The tiles after those that are being copied: read last.
            let mut free = Place {
                a: (((STAGES - 1) * STAGE + A::target()) * 4) as u32,
                b: (((STAGES - 1) * STAGE + A::STAGE + B::target()) * 4) as u32,
            };
            let mut here = Place {
                a: (row * 4) as u32,
                b: ((A::STAGE + col) * 4) as u32,
            };
            let (mut stage, mut to_free) = (0u32, BACK);
            for four in 0..PATCH_N / 4 {
                b_frag[four] = read_b(here, 0, four);
            }
            a_frag[0] = read_a(here, 0, 0);
            for k in 0..TURN {
                multiply_column!(k, rows 0..PATCH_M, in here, then Some(here));
            }
            multiply_column!(TURN, rows 0..TURN_ROW, in here, then Some(here));
            while left > 1 {
                let to_next = if stage == STAGES as u32 - 1 {
                    BACK
                } else {
                    (STAGE * 4) as u32
                };
                stage = (stage + 1) % STAGES as u32;
                let next = here.after(to_next);
                multiply_column!(TURN, rows TURN_ROW..PATCH_M, in here, then Some(next));
                for k in TURN + 1..DEPTH {
                    if k == BARRIER {
                        pipeline::wait_prior::<{ STAGES as u32 - 3 }>();
                        thread::sync_threads(); // the next tiles are whole, and every thread has finished reading those before these
                        if left > STAGES as u32 - 1 {
                            a.copy_whole(tiles.byte_add(free.a as usize));
                            b.copy_whole(tiles.byte_add(free.b as usize));
                        }
                        free = free.after(to_free);
                        a.advance();
                        b.advance();
                        pipeline::commit();
                    }
                    multiply_column!(k, rows 0..PATCH_M, in here, then Some(next));
                }
                (to_free, here) = (to_next, next);
                for k in 0..TURN {
                    multiply_column!(k, rows 0..PATCH_M, in here, then Some(here));
                }
                multiply_column!(TURN, rows 0..TURN_ROW, in here, then Some(here));
                left -= 1;
            }
            multiply_column!(TURN, rows TURN_ROW..PATCH_M, in here, then None::<Place>);
            for k in TURN + 1..DEPTH {
                multiply_column!(k, rows 0..PATCH_M, in here, then None::<Place>);
            }
            work = *waiting;
        }

        let Work {
            streams,
            share,
            slot,
        } = work;
        let part = streams.part(share);
        let (tile_row, tile_col) = streams.place(part.tile);
        let (tile_row, tile_col) = (tile_row * TILE_M, tile_col * TILE_N);
        // Word for word as in `async_pipeline`: called as a function of both, `ptxas` put reads of this loop next to their uses, and more FMAs of that one
        // on one bank of registers (137 instead of 120 a step).
        let whole = streams.is_whole(part);
        let inside =
            gemm.tile_is_inside(tile_row, tile_col, TILE_M, TILE_N) && gemm.c_is_float4_aligned();
        let partial = partials.wrapping_add(slot * TILE_M * TILE_N);
        for i in 0..PATCH_M {
            for j in 0..PATCH_N / 4 {
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
        work.share.begin += part.to - part.from;
        work.slot = 2 * block_x + 1;
    }
}
