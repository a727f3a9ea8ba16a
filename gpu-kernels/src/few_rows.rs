//! Few rows: B passes through registers once, on its way from memory, and nothing of it is kept.
//!
//! A C of a single row takes each element of B once. There is nothing to use again, so shared memory would only be a detour:
//! - a thread takes four neighbouring columns of all TILE_M rows. A warp reads 512 bytes of a row of B at a time, and each thread has AHEAD such
//!   reads on their way before it multiplies the first: what counts is bytes on their way;
//! - an element of A is the same for all lanes of a warp: one read, which a cache answers;
//! - the warps of a block split the rows of B among them, and add their sums in shared memory, in the order of their numbers. So a block has much of B
//!   on its way, but leaves only one partial sum of each element;
//! - blocks share the sums (`streams.rs`), and `fix_up` adds what they leave.
//!
//! Global-memory reads: M*N*K * (1/TILE_M + 1/4). B comes from memory, A from caches: all that memory moves is K*N of B.
//! Shared-memory reads: one of each warp's sums, once a tile
//! Block: 256 threads, a TILE_M x 128 patch of C at a time, each warp all of it for an eighth of the products. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel few-rows --m 1 --n 2112 --k 7168
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::{grid_dependency, launch_bounds};
use crate::float4::Float4;
use crate::gemm::{gemm_kernel, Gemm};
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Grid, Kernel, Stages, Storage};
use crate::streams::Streams;

/// Columns of a tile: four for each lane of a warp.
const TILE_N: usize = 4 * 32;

/// Rows of B that a step has: blocks begin and end at multiples of it.
const DEPTH: usize = 32;

/// Warps of a block. The first of each so many rows of B goes to the first warp.
const WARPS: usize = 8;

/// Rows of B that a thread has on their way at a time.
const AHEAD: usize = 8;

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "few-rows",
    idea: "few rows: B passes through registers once, on its way from memory",
    source: file!(),
    variants: &[
        variant!("few-rows-1", Streamed(few_rows_1), block(32 * WARPS, 1), tile(1, TILE_N, DEPTH), own_patch: Some((1, 4)),
            split_k: WARPS as u32, grid: Grid::Streams, stages: Stages::Nothing, a: Storage::AlongSums, b: Storage::AlongTile),
        variant!("few-rows-4", Streamed(few_rows_4), block(32 * WARPS, 1), tile(4, TILE_N, DEPTH), own_patch: Some((4, 4)),
            split_k: WARPS as u32, grid: Grid::Streams, stages: Stages::Nothing, a: Storage::AlongSums, b: Storage::AlongTile),
    ],
};

/// Writes an entry point: rows of a tile, and the blocks that a multiprocessor holds.
macro_rules! entry {
    ($entry:ident, rows $tile_m:literal, blocks $blocks:literal) => {
        gemm_kernel! {
            fn $entry(gemm: f32, partials) {
                launch_bounds::<{ 32 * WARPS as u32 }, $blocks>();
                multiply::<$tile_m>(gemm, partials, shared_array![f32; WARPS * $tile_m * TILE_N])
            }
        }
    };
}

entry!(few_rows_1, rows 1, blocks 2);
entry!(few_rows_4, rows 4, blocks 2);

/// The body of both. `of_warps` has room for the sums of each warp.
#[inline(always)]
unsafe fn multiply<const TILE_M: usize>(
    gemm: Gemm<'_, f32>,
    partials: *mut f32,
    of_warps: *mut f32,
) {
    grid_dependency::wait(); // for copies of A and B
    grid_dependency::launch_dependents(); // `fix_up` may take its places

    let thread = thread::thread_idx_x() as usize;
    let (warp, lane) = (thread / 32, thread % 32);

    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (streams, mut share) = Streams::of_launch((gemm.m, gemm.n, depth), (TILE_M, TILE_N, DEPTH));
    let mut slot = 2 * block_x;
    while share.begin < share.end {
        let part = streams.part(share);
        let (tile_row, tile_col) = streams.place(part.tile);
        let (tile_row, tile_col) = (tile_row * TILE_M, tile_col * TILE_N);
        let col = tile_col + 4 * lane;
        // The first row of B of this part, and the one after its last.
        let from = part.from * DEPTH;
        let to = if part.to * DEPTH < depth {
            part.to * DEPTH
        } else {
            depth
        };

        let mut sums = [[0.0f32; 4]; TILE_M];
        if col < gemm.n {
            let mut walk = Walk::<TILE_M>::new(&gemm, tile_row, col, from + warp);
            // B's rows begin at multiples of 16 bytes, so a four that begins in one ends before the next. Only the last has no next.
            let ends_inside_a_four = to == depth && col + 4 > gemm.n;
            let end = to.saturating_sub(ends_inside_a_four as usize);
            // Rows that this warp takes of them.
            let rows = end.saturating_sub(from + warp).div_ceil(WARPS);
            let mut turns = (rows / AHEAD) as u32;
            while turns > 0 {
                walk.take::<false>(AHEAD, &mut sums);
                turns -= 1;
            }
            walk.take::<true>(rows % AHEAD, &mut sums);
            if ends_inside_a_four && from < to && (end - from) % WARPS == warp {
                let four = gemm.b4::<true>(end, col);
                for i in 0..TILE_M {
                    let a = gemm.a_or_zero(tile_row + i, end);
                    for j in 0..4 {
                        sums[i][j] += a * four.0[j];
                    }
                }
            }
        }

        thread::sync_threads(); // every thread has finished reading the sums of the part before
        for i in 0..TILE_M {
            Float4(sums[i]).write(of_warps.add(((warp * TILE_M + i) * 32 + lane) * 4));
        }
        thread::sync_threads(); // the sums of all warps are there

        // A thread adds four columns of a row.
        if thread < 32 * TILE_M {
            let mut sums = [0.0f32; 4];
            for warp in 0..WARPS {
                let four = Float4::read(of_warps.add((warp * TILE_M * 32 + thread) * 4));
                for j in 0..4 {
                    sums[j] += four.0[j];
                }
            }
            let (sums, row) = (Float4(sums), tile_row + thread / 32);
            if !streams.is_whole(part) {
                if row < gemm.m {
                    sums.write(partials.add(slot * TILE_M * TILE_N + thread * 4));
                }
            } else if gemm.tile_is_inside(tile_row, tile_col, TILE_M, TILE_N)
                && gemm.c_is_float4_aligned()
            {
                gemm.update4::<false>(row, col, sums);
            } else {
                gemm.update4::<true>(row, col, sums);
            }
        }
        share.begin += part.to - part.from;
        slot = 2 * block_x + 1;
    }
}

/// What a thread reads, from one row of B to the next of its warp.
struct Walk<const TILE_M: usize> {
    /// The elements of A that belong to the next row of B.
    a: [*const f32; TILE_M],
    a_exists: [bool; TILE_M],
    /// The four of B.
    b: *const f32,
    /// From a row to the next.
    b_next: usize,
}

impl<const TILE_M: usize> Walk<TILE_M> {
    #[inline(always)]
    fn new(gemm: &Gemm<'_, f32>, tile_row: usize, col: usize, row: usize) -> Self {
        let mut a = [gemm.a.as_ptr(); TILE_M];
        let mut a_exists = [false; TILE_M];
        for i in 0..TILE_M {
            a[i] = a[i].wrapping_add((tile_row + i) * gemm.lda + row);
            // The first row of a tile always does.
            a_exists[i] = i == 0 || tile_row + i < gemm.m;
        }
        Self {
            a,
            a_exists,
            b: gemm.b.as_ptr().wrapping_add(row * gemm.ldb + col),
            b_next: WARPS * gemm.ldb,
        }
    }

    /// Reads so many rows, AHEAD or if `GUARDED` fewer, then multiplies them.
    ///
    /// # Safety
    ///
    /// The fours of these rows can be read.
    #[inline(always)]
    unsafe fn take<const GUARDED: bool>(&mut self, rows: usize, sums: &mut [[f32; 4]; TILE_M]) {
        let mut a = [[0.0f32; TILE_M]; AHEAD];
        let mut b = [Float4::ZERO; AHEAD];
        let exists = |step: usize| !GUARDED || step < rows;
        for step in 0..AHEAD {
            if exists(step) {
                b[step] = Float4::read(self.b);
            }
            self.b = self.b.wrapping_add(self.b_next);
        }
        for step in 0..AHEAD {
            for i in 0..TILE_M {
                if exists(step) && self.a_exists[i] {
                    a[step][i] = *self.a[i].wrapping_add(step * WARPS);
                }
            }
        }
        for step in 0..AHEAD {
            for i in 0..TILE_M {
                for j in 0..4 {
                    sums[i][j] += a[step][i] * b[step].0[j];
                }
            }
        }
        for i in 0..TILE_M {
            self.a[i] = self.a[i].wrapping_add(AHEAD * WARPS);
        }
    }
}
