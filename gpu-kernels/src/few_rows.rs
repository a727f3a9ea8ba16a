//! Few rows: B passes through registers once, on its way from memory, and nothing of it is kept.
//!
//! A C of a single row uses each element of B once. Nothing can be reused, so shared memory would
//! only be a detour: this kernel is memory-bound, and what counts is bytes in flight.
//! - A thread computes four neighbouring columns of all BM rows. A warp reads 512 bytes of a row
//!   of B at a time, and each thread issues AHEAD such loads before it multiplies the first.
//! - An element of A is the same for all lanes of a warp: one load, which a cache serves.
//! - The warps of a block each take a k-slice, and their sums are added in shared memory, in the
//!   order of their numbers. So a block has much of B in flight, but leaves only one partial sum
//!   of each element.
//! - Blocks divide the k-iterations (`stream_k.rs`), and `fix_up` adds what they leave.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/4). B comes from memory, A from caches: all that memory
//! moves is K*N of B.
//! Shared-memory reads: one of each warp's sums, once a tile
//! Block: 256 threads, block tile BM x 128 x 32, BM 1 or 4, thread tile BM x 4; each warp computes
//! all of the tile, for an eighth of the depth. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel few-rows --m 1 --n 2112 --k 7168
//! ```

use cuda_std::prelude::*;

use crate::compat::grid_dependency;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::kernel::kernel;
use crate::stream_k::StreamK;

/// Columns of a block tile: four for each lane of a warp.
const BN: usize = 4 * 32;

/// Depth of a k-iteration.
const BK: usize = 32;

/// Warps of a block. The first of each so many rows of B goes to the first warp.
const WARPS: usize = 8;

/// Rows of B that a thread has in flight at a time.
const AHEAD: usize = 8;

/// Writes the kernel: a line a variant, which differ in the rows of their tiles.
macro_rules! few_rows {
    ($(
        $name:literal = fn $entry:ident rows($bm:literal) launch_bounds($ctas:literal) $rate:expr;
    )*) => {
        kernel! {
            name: "few-rows",
            idea: "for a C of few rows: each element of B is read once, straight into registers",
            variants: [$(
                $name = fn $entry(gemm: f32, partials)
                    block(32 * WARPS, 1) tile($bm, BN, BK)
                    shared(warp_sums: [f32; WARPS * $bm * BN])
                    launch_bounds($ctas)
                    {
                        thread_tile: ($bm, 4),
                        least_capability: 80,
                        k_slices: WARPS as u32,
                        grid: Grid::StreamK,
                        staging: Staging::None,
                        b: OperandLayout::MN_MAJOR_FLOAT4,
                        gemv_like: true,
                        rate: Some($rate),
                    }
                    => multiply::<$bm>(gemm, partials, warp_sums);
            )*],
        }
    };
}

// Their own instructions never limit these: the rates are guessed from how much of B they have in
// flight.
few_rows! {
    "few-rows-1" = fn few_rows_1 rows(1) launch_bounds(2) Rate::h200(3.2, 0.3, 2);
    "few-rows-4" = fn few_rows_4 rows(4) launch_bounds(2) Rate::h200(12.0, 0.3, 2);
}

/// The body of every variant.
#[inline(always)]
unsafe fn multiply<const BM: usize>(
    gemm: Gemm<'_, f32>,
    partials: *mut f32,  // (2 * ctas, BM, BN)
    warp_sums: *mut f32, // (WARPS, BM, BN), in shared memory
) {
    const {
        assert!(BM <= WARPS, "a warp adds the sums of a row");
        assert!(BN == 4 * 32, "a lane has four columns");
    }
    grid_dependency::wait(); // for copies of A and B
    grid_dependency::launch_dependents(); // `fix_up` may start on SMs that become free

    let thread = thread::thread_idx_x() as usize;
    let (warp, lane) = (thread / 32, thread % 32);

    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (stream_k, mut work) = StreamK::of_launch((gemm.m, gemm.n, depth), (BM, BN, BK));
    let mut workspace_tile = 2 * block_x;
    while work.begin < work.end {
        let segment = stream_k.segment(work);
        let (tile_row, tile_col) = stream_k.tile_position(segment.tile);
        let (tile_row, tile_col) = (tile_row * BM, tile_col * BN);
        let col = tile_col + 4 * lane;
        // The first row of B of this segment, and the one after its last.
        let from = segment.from * BK;
        let to = if segment.to * BK < depth {
            segment.to * BK
        } else {
            depth
        };

        let mut sums = [[0.0f32; 4]; BM];
        if col < gemm.n {
            let mut pointers = Pointers::<BM>::new(&gemm, tile_row, col, from + warp);
            // A float4 that crosses the end of a row of B still ends before the next row, which is
            // aligned. Only after the last row there may be no memory: that one is read element by
            // element.
            let crosses_the_end = to == depth && col + 4 > gemm.n;
            let end = to.saturating_sub(crosses_the_end as usize);
            // The rows of them that this warp takes.
            let rows = end.saturating_sub(from + warp).div_ceil(WARPS);
            let mut iterations = (rows / AHEAD) as u32;
            while iterations > 0 {
                pointers.multiply_rows::<false>(AHEAD, &mut sums);
                iterations -= 1;
            }
            pointers.multiply_rows::<true>(rows % AHEAD, &mut sums);
            if crosses_the_end && from < to && (end - from) % WARPS == warp {
                let b = gemm.b4::<true>(end, col);
                for i in 0..BM {
                    let a = gemm.a_or_zero(tile_row + i, end);
                    for j in 0..4 {
                        sums[i][j] += a * b.0[j];
                    }
                }
            }
        }

        thread::sync_threads(); // every thread has finished reading the sums of the segment before
        for i in 0..BM {
            Float4(sums[i]).write(warp_sums.add(((warp * BM + i) * 32 + lane) * 4));
        }
        thread::sync_threads(); // the sums of all warps are there

        // A thread adds four columns of a row.
        if thread < 32 * BM {
            let mut sums = [0.0f32; 4];
            for warp in 0..WARPS {
                let float4 = Float4::read(warp_sums.add((warp * BM * 32 + thread) * 4));
                for j in 0..4 {
                    sums[j] += float4.0[j];
                }
            }
            let (sums, row) = (Float4(sums), tile_row + thread / 32);
            if !stream_k.covers_tile(segment) {
                if row < gemm.m {
                    sums.write(partials.add(workspace_tile * BM * BN + thread * 4));
                }
            } else if gemm.tile_is_in_bounds(tile_row, tile_col, BM, BN)
                && gemm.c_is_float4_aligned()
            {
                gemm.update4::<false>(row, col, sums);
            } else {
                gemm.update4::<true>(row, col, sums);
            }
        }
        work.begin += segment.to - segment.from;
        workspace_tile = 2 * block_x + 1;
    }
}

/// Where a thread reads next: the row of B that is next for its warp, and the column of A that
/// belongs to it.
struct Pointers<const BM: usize> {
    a: [*const f32; BM],
    /// Whether these rows of A are in bounds.
    a_in_bounds: [bool; BM],
    /// The float4 of B.
    b: *const f32,
    /// Elements from a row of B to the next that this warp takes.
    b_next: usize,
}

impl<const BM: usize> Pointers<BM> {
    /// Those for the rows of C from `tile_row` on, its columns from `col` on, and B's rows from
    /// `row` on.
    #[inline(always)]
    fn new(gemm: &Gemm<'_, f32>, tile_row: usize, col: usize, row: usize) -> Self {
        let mut a = [gemm.a.as_ptr(); BM];
        let mut a_in_bounds = [false; BM];
        for i in 0..BM {
            a[i] = a[i].wrapping_add((tile_row + i) * gemm.lda + row);
            // The first row of a tile always is.
            a_in_bounds[i] = i == 0 || tile_row + i < gemm.m;
        }
        Self {
            a,
            a_in_bounds,
            b: gemm.b.as_ptr().wrapping_add(row * gemm.ldb + col),
            b_next: WARPS * gemm.ldb,
        }
    }

    /// Loads the next `rows` rows, AHEAD or if `PREDICATED` fewer, then multiplies them, and
    /// advances by AHEAD.
    ///
    /// # Safety
    ///
    /// The float4s of these rows can be read.
    #[inline(always)]
    unsafe fn multiply_rows<const PREDICATED: bool>(
        &mut self,
        rows: usize,
        sums: &mut [[f32; 4]; BM],
    ) {
        let mut a = [[0.0f32; BM]; AHEAD];
        let mut b = [Float4::ZERO; AHEAD];
        let in_bounds = |row: usize| !PREDICATED || row < rows;
        for row in 0..AHEAD {
            if in_bounds(row) {
                b[row] = Float4::read(self.b);
            }
            self.b = self.b.wrapping_add(self.b_next);
        }
        for row in 0..AHEAD {
            for i in 0..BM {
                if in_bounds(row) && self.a_in_bounds[i] {
                    a[row][i] = *self.a[i].wrapping_add(row * WARPS);
                }
            }
        }
        for row in 0..AHEAD {
            for i in 0..BM {
                for j in 0..4 {
                    sums[i][j] += a[row][i] * b[row].0[j];
                }
            }
        }
        for i in 0..BM {
            self.a[i] = self.a[i].wrapping_add(AHEAD * WARPS);
        }
    }
}
