//! Few rows: B passes through registers once, on its way from memory, and nothing of it is kept.
//!
//! A C of a single row uses each element of B once. Nothing can be reused, so shared memory would
//! only be a detour: this kernel is memory-bound, and what counts is bytes in flight.
//! - A thread reads B by 16 bytes: it computes TN neighbouring columns of all BM rows, four of f32
//!   and eight of 16 bits. A warp reads 512 bytes of B at a time, of one row or of several, and
//!   each thread issues AHEAD such loads before it multiplies the first.
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
//! Numbers of 16 bits are half the bytes, so half the time. They become f32 in registers, where
//! their products are exact.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/TN). B comes from memory, A from caches: all that memory
//! moves is K*N of B.
//! Shared-memory reads: one of each slice's sums, once a tile
//! Block: 256 or 512 threads, block tile BM x BN x 32, BM 1 or 4, BN 32 to 128, thread tile
//! BM x TN; BN / TN threads compute all of the tile, for a k-slice. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel few-rows --m 1 --n 2112 --k 7168
//! ```

use core::marker::PhantomData;

use cuda_std::prelude::*;

use crate::compat::grid_dependency;
use crate::fix_up::Sink;
use crate::fix_up_half::sink;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::half::{Bf16, Half, F16};
use crate::kernel::kernel;
use crate::stream_k::StreamK;

/// Depth of a k-iteration.
const BK: usize = 32;

/// Columns of a thread tile: what 16 bytes of B hold.
const OF_F32: usize = 4;
const OF_16_BITS: usize = 8;

/// What a thread reads of a row of B at a time: 16 bytes, which stay as they are until they are
/// multiplied.
trait Vector: Copy {
    /// What holds an element.
    type Element: Copy;

    /// Columns.
    const COLUMNS: usize;
    const ZERO: Self;

    /// Loads 16 bytes.
    ///
    /// # Safety
    ///
    /// `source` is a multiple of 16 bytes, and valid for reading all columns.
    unsafe fn read(source: *const Self::Element) -> Self;

    /// The number in a column.
    fn get(&self, column: usize) -> f32;

    /// The number that an element stands for.
    fn value(element: Self::Element) -> f32;
}

impl Vector for Float4 {
    type Element = f32;

    const COLUMNS: usize = OF_F32;
    const ZERO: Float4 = Float4::ZERO;

    #[inline(always)]
    unsafe fn read(source: *const f32) -> Float4 {
        Float4::read(source)
    }

    #[inline(always)]
    fn get(&self, column: usize) -> f32 {
        self.0[column]
    }

    #[inline(always)]
    fn value(element: f32) -> f32 {
        element
    }
}

/// Eight numbers of 16 bits, two in a word, the first in its lower half.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Half8<T>([u32; 4], PhantomData<T>);

impl<T: Half> Vector for Half8<T> {
    type Element = u16;

    const COLUMNS: usize = OF_16_BITS;
    const ZERO: Half8<T> = Half8([0; 4], PhantomData);

    #[inline(always)]
    unsafe fn read(source: *const u16) -> Half8<T> {
        // One by one, as a `Float4`.
        let source = source.cast::<Self>();
        let words = [
            (*source).0[0],
            (*source).0[1],
            (*source).0[2],
            (*source).0[3],
        ];
        Half8(words, PhantomData)
    }

    #[inline(always)]
    fn get(&self, column: usize) -> f32 {
        let word = self.0[column / 2];
        T::value(if column.is_multiple_of(2) {
            word as u16
        } else {
            (word >> 16) as u16
        })
    }

    #[inline(always)]
    fn value(element: u16) -> f32 {
        T::value(element)
    }
}

/// The body of every variant.
#[inline(always)]
unsafe fn multiply<
    V: Vector,
    C,
    S: Sink,
    const TN: usize,
    const BM: usize,
    const BN: usize,
    const AHEAD: usize,
    const SLICES: usize,
>(
    gemm: Gemm<'_, V::Element, C, f32>,
    c: S,
    slice_sums: *mut f32, // (SLICES, BM, BN), in shared memory
) {
    const {
        assert!(TN == V::COLUMNS, "a thread tile is as wide as a vector");
        assert!(32 % (BN / TN) == 0, "a warp reads full rows of the tile");
        assert!(
            BM * BN / 4 <= SLICES * (BN / TN),
            "a thread for each four columns to add"
        );
    }
    let thread = thread::thread_idx_x() as usize;
    // Lanes that read a row of B together.
    let lanes = BN / TN;
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
        let col = tile_col + TN * lane;
        // The first row of B of this segment, and the one after its last.
        let from = segment.from * BK;
        let to = if segment.to * BK < depth {
            segment.to * BK
        } else {
            depth
        };

        let mut sums = [[0.0f32; TN]; BM];
        if col < gemm.n {
            // A vector that crosses the end of a row of B still ends before the next row, which is
            // aligned. Only after the last row there may be no memory: that one is read element by
            // element.
            let crosses_the_end = to == depth && col + TN > gemm.n;
            let end = to.saturating_sub(crosses_the_end as usize);
            // The first row that this slice takes, and how many.
            let first = from + slice;
            let rows = end.saturating_sub(first).div_ceil(SLICES);
            let mut rows_of_b = RowsOfB::<V, BM, AHEAD, SLICES>::new(&gemm, tile_row, col, first);
            let mut batches = (rows / AHEAD) as u32;
            while batches > 0 {
                rows_of_b.load::<false>(AHEAD).add_products(&mut sums);
                batches -= 1;
            }
            rows_of_b.load::<true>(rows % AHEAD).add_products(&mut sums);
            if crosses_the_end && from < to && (end - from) % SLICES == slice {
                for j in 0..TN {
                    if col + j < gemm.n {
                        let b = V::value(*gemm.b.get_unchecked(end * gemm.ldb + col + j));
                        for i in 0..BM {
                            if tile_row + i < gemm.m {
                                let row = (tile_row + i) * gemm.lda;
                                sums[i][j] += V::value(*gemm.a.get_unchecked(row + end)) * b;
                            }
                        }
                    }
                }
            }
        }

        thread::sync_threads(); // every thread has finished reading the sums of the segment before
        for i in 0..BM {
            let target = slice_sums.add((slice * BM + i) * BN + TN * lane);
            for j in 0..TN / 4 {
                let j = 4 * j;
                let four = [sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]];
                Float4(four).write(target.add(j));
            }
        }
        thread::sync_threads(); // the sums of all slices are there

        // A thread adds four columns of a row.
        if thread < BM * BN / 4 {
            let mut sums = [0.0f32; 4];
            for slice in 0..SLICES {
                let float4 = Float4::read(slice_sums.add(slice * BM * BN + 4 * thread));
                for j in 0..4 {
                    sums[j] += float4.0[j];
                }
            }
            let (row, col) = (tile_row + 4 * thread / BN, tile_col + 4 * thread % BN);
            if row < gemm.m && !stream_k.covers_tile(segment) {
                Float4(sums).write(gemm.partials.add(workspace_tile * BM * BN + 4 * thread));
            } else if row < gemm.m && col < gemm.n {
                c.update4(row, col, Float4(sums));
            }
        }
        work.begin += segment.to - segment.from;
        workspace_tile = 2 * block_x + 1;
    }
}

/// What a thread loads at a time: a vector of each of AHEAD rows of B, and the columns of A that
/// belong to them.
struct Batch<V: Vector, const BM: usize, const AHEAD: usize> {
    a: [[f32; BM]; AHEAD],
    b: [V; AHEAD],
}

impl<V: Vector, const BM: usize, const AHEAD: usize> Batch<V, BM, AHEAD> {
    /// Adds the products of each row of B with its column of A.
    #[inline(always)]
    fn add_products<const TN: usize>(&self, sums: &mut [[f32; TN]; BM]) {
        for row in 0..AHEAD {
            for i in 0..BM {
                for j in 0..TN {
                    sums[i][j] += self.a[row][i] * self.b[row].get(j);
                }
            }
        }
    }
}

/// The rows of B that a slice takes, one of each SLICES, and where a thread reads next in them.
struct RowsOfB<V: Vector, const BM: usize, const AHEAD: usize, const SLICES: usize> {
    /// The column of A that belongs to the next row of B.
    a: [*const V::Element; BM],
    /// Whether these rows of A are in bounds.
    a_in_bounds: [bool; BM],
    /// The vector of B.
    b: *const V::Element,
    /// Elements from a row of B to the next that this slice takes.
    b_next: usize,
}

impl<V: Vector, const BM: usize, const AHEAD: usize, const SLICES: usize>
    RowsOfB<V, BM, AHEAD, SLICES>
{
    /// Those for the rows of C from `tile_row` on, its columns from `col` on, and B's rows from
    /// `row` on.
    #[inline(always)]
    fn new<C>(
        gemm: &Gemm<'_, V::Element, C, f32>,
        tile_row: usize,
        col: usize,
        row: usize,
    ) -> Self {
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
    /// The vectors of these rows can be read.
    #[inline(always)]
    unsafe fn load<const PREDICATED: bool>(&mut self, rows: usize) -> Batch<V, BM, AHEAD> {
        let mut batch = Batch {
            a: [[0.0; BM]; AHEAD],
            b: [V::ZERO; AHEAD],
        };
        let in_bounds = |row: usize| !PREDICATED || row < rows;
        for row in 0..AHEAD {
            if in_bounds(row) {
                batch.b[row] = V::read(self.b);
            }
            self.b = self.b.wrapping_add(self.b_next);
        }
        for row in 0..AHEAD {
            for i in 0..BM {
                if in_bounds(row) && self.a_in_bounds[i] {
                    batch.a[row][i] = V::value(*self.a[i].wrapping_add(row * SLICES));
                }
            }
        }
        for i in 0..BM {
            self.a[i] = self.a[i].wrapping_add(AHEAD * SLICES);
        }
        batch
    }
}

/// Writes the kernel: of each variant the columns of a thread tile and its launch, and a line for
/// each type of A, B and C.
macro_rules! few_rows {
    ($(
        $name:literal columns($columns:ident) threads($threads:literal) tile($bm:literal, $bn:literal)
            ahead($ahead:literal) launch_bounds($ctas:literal) $rate:expr;
            $($entry:ident ($($types:tt)+) $vector:ty, $output:ident;)+
    )*) => {
        kernel! {
            name: "few-rows",
            idea: "for a C of few rows: each element of B is read once, straight into registers",
            variants: [$($(
                $name = fn $entry(gemm: $($types)+)
                    block($threads, 1) tile($bm, $bn, BK)
                    shared(slice_sums: [f32; $columns * $threads * $bm])
                    launch_bounds($ctas)
                    {
                        thread_tile: ($bm, $columns as u32),
                        least_capability: 80,
                        k_slices: $columns as u32 * $threads / $bn,
                        grid: Grid::StreamK,
                        staging: Staging::None,
                        b: OperandLayout::MN_MAJOR_ALIGNED,
                        gemv_like: true,
                        rate: Some($rate),
                    }
                    => multiply::<
                        $vector, _, _, $columns, $bm, $bn, $ahead, { $columns * $threads / $bn },
                    >(gemm, sink!($output)(&gemm), slice_sums);
            )+)*],
        }
    };
}

// Their own instructions never limit these: the rates are guessed from how much of B they have in
// flight. Of 16 bits, tiles of 32 columns would have 128 k-slices: 38 us for 1 x 24576 x 1536,
// where those of 64 columns take 21 (H200).
few_rows! {
    "few-rows-1" columns(OF_F32) threads(256) tile(1, 128)
        ahead(8) launch_bounds(2) Rate::h200(3.2, 0.3, 2);
        few_rows_1 (f32) Float4, f32;
    "few-rows-1x64" columns(OF_F32) threads(256) tile(1, 64)
        ahead(8) launch_bounds(3) Rate::h200(3.2, 0.3, 3);
        few_rows_1x64 (f32) Float4, f32;
    "few-rows-1x32" columns(OF_F32) threads(512) tile(1, 32)
        ahead(8) launch_bounds(1) Rate::h200(3.2, 0.3, 1);
        few_rows_1x32 (f32) Float4, f32;
    "few-rows-4" columns(OF_F32) threads(256) tile(4, 128)
        ahead(8) launch_bounds(2) Rate::h200(12.0, 0.3, 2);
        few_rows_4 (f32) Float4, f32;
    "few-rows-4x64" columns(OF_F32) threads(256) tile(4, 64)
        ahead(4) launch_bounds(3) Rate::h200(12.0, 0.3, 3);
        few_rows_4x64 (f32) Float4, f32;
    "few-rows-4x32" columns(OF_F32) threads(512) tile(4, 32)
        ahead(8) launch_bounds(1) Rate::h200(12.0, 0.3, 1);
        few_rows_4x32 (f32) Float4, f32;
    "few-rows-1" columns(OF_16_BITS) threads(256) tile(1, 128)
        ahead(8) launch_bounds(2) Rate::h200(6.4, 0.3, 2);
        few_rows_1_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_1_f16 (f16) Half8<F16>, F16;
        few_rows_1_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_1_f16_f32 (f16 -> f32) Half8<F16>, f32;
    "few-rows-1x64" columns(OF_16_BITS) threads(256) tile(1, 64)
        ahead(8) launch_bounds(3) Rate::h200(6.4, 0.3, 3);
        few_rows_1x64_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_1x64_f16 (f16) Half8<F16>, F16;
        few_rows_1x64_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_1x64_f16_f32 (f16 -> f32) Half8<F16>, f32;
}
