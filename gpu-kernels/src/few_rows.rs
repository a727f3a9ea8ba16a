//! Few rows: B passes through registers once, on its way from memory, and nothing of it is kept.
//!
//! A C of a single row uses each element of B once. Nothing can be reused, so shared memory would
//! only be a detour: this kernel is memory-bound, and what counts is bytes in flight.
//! - A thread computes four neighbouring columns of all BM rows. A warp reads 512 bytes of B at a
//!   time, of one row or of several, and each thread issues AHEAD such loads before it multiplies
//!   the first.
//! - An element of A is the same for all lanes of a warp that read the same row of B: one load,
//!   which a cache serves.
//! - Those lanes take a k-slice, and the sums of all slices of a block are added in shared memory,
//!   in the order of their numbers. So a block has much of B in flight, but leaves only one partial
//!   sum of each element.
//! - Blocks divide the k-iterations (`stream_k.rs`), and `fix_up` adds what they leave. That costs
//!   4 us, a seventh of a product of 117 MB: so there are tiles of 32, 64 and 128 columns, one of
//!   which mostly fills a GPU with whole tiles.
//! - It begins before the kernel in front of it has ended, and has divided its work by then.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/4). B comes from memory, A from caches: all that memory
//! moves is K*N of B.
//! Shared-memory reads: one of each slice's sums, once a tile
//! Block: 256 or 512 threads, block tile BM x BN x 32, BM 1 or 4, BN 32 to 128, thread tile BM x 4;
//! BN / 4 threads compute all of the tile, for a k-slice. Any M, N, K.
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

/// Depth of a k-iteration.
const BK: usize = 32;

/// Writes the kernel: two lines a variant.
macro_rules! few_rows {
    ($(
        $name:literal = fn $entry:ident
            threads($threads:literal) tile($bm:literal, $bn:literal) ahead($ahead:literal)
            launch_bounds($ctas:literal) $rate:expr;
    )*) => {
        kernel! {
            name: "few-rows",
            idea: "for a C of few rows: each element of B is read once, straight into registers",
            variants: [$(
                $name = fn $entry(gemm: f32, partials)
                    block($threads, 1) tile($bm, $bn, BK)
                    shared(slice_sums: [f32; 4 * $threads * $bm])
                    launch_bounds($ctas)
                    {
                        thread_tile: ($bm, 4),
                        least_capability: 80,
                        k_slices: 4 * $threads / $bn,
                        grid: Grid::StreamK,
                        staging: Staging::None,
                        b: OperandLayout::MN_MAJOR_ALIGNED,
                        gemv_like: true,
                        rate: Some($rate),
                    }
                    => multiply::<$bm, $bn, $ahead, { 4 * $threads / $bn }>(
                        gemm, partials, slice_sums,
                    );
            )*],
        }
    };
}

// Their own instructions never limit these: the rates are guessed from how much of B they have in
// flight.
few_rows! {
    "few-rows-1" = fn few_rows_1
        threads(256) tile(1, 128) ahead(8) launch_bounds(2) Rate::h200(3.2, 0.3, 2);
    "few-rows-1x64" = fn few_rows_1x64
        threads(256) tile(1, 64) ahead(8) launch_bounds(3) Rate::h200(3.2, 0.3, 3);
    "few-rows-1x32" = fn few_rows_1x32
        threads(512) tile(1, 32) ahead(8) launch_bounds(1) Rate::h200(3.2, 0.3, 1);
    "few-rows-4" = fn few_rows_4
        threads(256) tile(4, 128) ahead(8) launch_bounds(2) Rate::h200(12.0, 0.3, 2);
    "few-rows-4x64" = fn few_rows_4x64
        threads(256) tile(4, 64) ahead(4) launch_bounds(3) Rate::h200(12.0, 0.3, 3);
    "few-rows-4x32" = fn few_rows_4x32
        threads(512) tile(4, 32) ahead(8) launch_bounds(1) Rate::h200(12.0, 0.3, 1);
}

/// The body of every variant.
#[inline(always)]
unsafe fn multiply<const BM: usize, const BN: usize, const AHEAD: usize, const SLICES: usize>(
    gemm: Gemm<'_, f32>,
    partials: *mut f32,   // (2 * ctas, BM, BN)
    slice_sums: *mut f32, // (SLICES, BM, BN), in shared memory
) {
    const {
        assert!(32 % (BN / 4) == 0, "a warp reads full rows of the tile");
        assert!(BM <= SLICES, "a slice for each row to add");
    }
    let thread = thread::thread_idx_x() as usize;
    // Lanes that read a row of B together.
    let lanes = BN / 4;
    let (slice, lane) = (thread / lanes, thread % lanes);

    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (stream_k, mut work) = StreamK::of_launch((gemm.m, gemm.n, depth), (BM, BN, BK));
    let mut workspace_tile = 2 * block_x;
    grid_dependency::wait(); // for whatever writes A, B and C, and for who reads the partial sums
    grid_dependency::launch_dependents(); // `fix_up` may start on SMs that become free
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
            // A float4 that crosses the end of a row of B still ends before the next row, which is
            // aligned. Only after the last row there may be no memory: that one is read element by
            // element.
            let crosses_the_end = to == depth && col + 4 > gemm.n;
            let end = to.saturating_sub(crosses_the_end as usize);
            // The first row that this slice takes, and how many.
            let first = from + slice;
            let rows = end.saturating_sub(first).div_ceil(SLICES);
            let mut rows_of_b = RowsOfB::<BM, AHEAD, SLICES>::new(&gemm, tile_row, col, first);
            let mut batches = (rows / AHEAD) as u32;
            while batches > 0 {
                rows_of_b.load::<false>(AHEAD).add_products(&mut sums);
                batches -= 1;
            }
            rows_of_b.load::<true>(rows % AHEAD).add_products(&mut sums);
            if crosses_the_end && from < to && (end - from) % SLICES == slice {
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
            Float4(sums[i]).write(slice_sums.add(((slice * BM + i) * lanes + lane) * 4));
        }
        thread::sync_threads(); // the sums of all slices are there

        // A thread adds four columns of a row.
        if thread < lanes * BM {
            let mut sums = [0.0f32; 4];
            for slice in 0..SLICES {
                let float4 = Float4::read(slice_sums.add((slice * BM * lanes + thread) * 4));
                for j in 0..4 {
                    sums[j] += float4.0[j];
                }
            }
            let (sums, row) = (Float4(sums), tile_row + thread / lanes);
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

/// What a thread loads at a time: four columns of AHEAD rows of B, and the columns of A that belong
/// to them.
struct Batch<const BM: usize, const AHEAD: usize> {
    a: [[f32; BM]; AHEAD],
    b: [Float4; AHEAD],
}

impl<const BM: usize, const AHEAD: usize> Batch<BM, AHEAD> {
    /// Adds the products of each row of B with its column of A.
    #[inline(always)]
    fn add_products(&self, sums: &mut [[f32; 4]; BM]) {
        for row in 0..AHEAD {
            for i in 0..BM {
                for j in 0..4 {
                    sums[i][j] += self.a[row][i] * self.b[row].0[j];
                }
            }
        }
    }
}

/// The rows of B that a slice takes, one of each SLICES, and where a thread reads next in them.
struct RowsOfB<const BM: usize, const AHEAD: usize, const SLICES: usize> {
    /// The column of A that belongs to the next row of B.
    a: [*const f32; BM],
    /// Whether these rows of A are in bounds.
    a_in_bounds: [bool; BM],
    /// The float4 of B.
    b: *const f32,
    /// Elements from a row of B to the next that this slice takes.
    b_next: usize,
}

impl<const BM: usize, const AHEAD: usize, const SLICES: usize> RowsOfB<BM, AHEAD, SLICES> {
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
            b_next: SLICES * gemm.ldb,
        }
    }

    /// Loads the next `rows` rows, AHEAD or if `PREDICATED` fewer, and advances by AHEAD.
    ///
    /// # Safety
    ///
    /// The float4s of these rows can be read.
    #[inline(always)]
    unsafe fn load<const PREDICATED: bool>(&mut self, rows: usize) -> Batch<BM, AHEAD> {
        let mut batch = Batch {
            a: [[0.0; BM]; AHEAD],
            b: [Float4::ZERO; AHEAD],
        };
        let in_bounds = |row: usize| !PREDICATED || row < rows;
        for row in 0..AHEAD {
            if in_bounds(row) {
                batch.b[row] = Float4::read(self.b);
            }
            self.b = self.b.wrapping_add(self.b_next);
        }
        for row in 0..AHEAD {
            for i in 0..BM {
                if in_bounds(row) && self.a_in_bounds[i] {
                    batch.a[row][i] = *self.a[i].wrapping_add(row * SLICES);
                }
            }
        }
        for i in 0..BM {
            self.a[i] = self.a[i].wrapping_add(AHEAD * SLICES);
        }
        batch
    }
}
