//! MN-major: a thread computes neighbouring columns of all rows of the tile, over a k-slice.

use cuda_std::prelude::*;

use super::vector::Vector;
use super::{Way, LANES};
use crate::element::Element;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::spec::{OperandLayout, Unit};

/// MN-major, by vectors of TN columns, of which a thread has AHEAD in flight.
pub(super) struct AlongN<const TN: usize, const AHEAD: usize, const SLICES: usize>;

impl<
        V: Vector,
        const TN: usize,
        const AHEAD: usize,
        const SLICES: usize,
        const BM: usize,
        const BN: usize,
    > Way<V, BM, BN> for AlongN<TN, AHEAD, SLICES>
{
    const BK: usize = 32;
    const SLICES: usize = SLICES;
    const A: OperandLayout = OperandLayout::K_MAJOR;
    const B: OperandLayout = OperandLayout::MN_MAJOR_ALIGNED;
    const UNIT: Unit = Unit::CudaCores;

    type Sums = [[V::Sum; TN]; BM];

    #[inline(always)]
    unsafe fn multiply<C, E: Copy>(
        gemm: &Gemm<'_, V::Element, C, V::Sum, E>,
        (tile_row, tile_col): (usize, usize),
        (from, to): (usize, usize),
    ) -> Self::Sums {
        const {
            assert!(TN == V::LENGTH, "a thread tile is as wide as a vector");
            assert!(
                LANES.is_multiple_of(BN / TN),
                "a warp reads full rows of the tile"
            );
            assert!(
                BM * BN / 4 <= SLICES * (BN / TN),
                "a thread for each four columns to add"
            );
        }
        let (slice, lane) = Self::of_thread::<BN>();
        let col = tile_col + TN * lane;
        let mut sums = [[V::Sum::ZERO; TN]; BM];
        if col < gemm.n {
            // A vector that crosses the end of a row of B still ends before the next row, which is
            // aligned. Only after the last row there may be no memory: that one is read element by
            // element.
            let crosses_the_end = to == gemm.depth() && col + TN > gemm.n;
            let end = to.saturating_sub(crosses_the_end as usize);
            // The first row that this slice takes, and how many.
            let first = from + slice;
            let rows = end.saturating_sub(first).div_ceil(SLICES);
            let mut rows_of_b = RowsOfB::<V, BM, AHEAD, SLICES>::new(gemm, tile_row, col, first);
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
                                let a = V::value(*gemm.a.get_unchecked(row + end));
                                sums[i][j] = a.times_plus(b, sums[i][j]);
                            }
                        }
                    }
                }
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn write(sums: Self::Sums, slice_sums: *mut V::Sum) {
        let (slice, lane) = Self::of_thread::<BN>();
        for i in 0..BM {
            let target = slice_sums.add((slice * BM + i) * BN + TN * lane);
            for j in 0..TN / 4 {
                let j = 4 * j;
                let four = [sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]];
                Float4(four).write(target.add(j));
            }
            for j in TN / 4 * 4..TN {
                *target.add(j) = sums[i][j];
            }
        }
    }
}

impl<const TN: usize, const AHEAD: usize, const SLICES: usize> AlongN<TN, AHEAD, SLICES> {
    /// The k-slice of a thread, and its place among the lanes that read a row of B together.
    #[inline(always)]
    fn of_thread<const BN: usize>() -> (usize, usize) {
        let (thread, lanes) = (thread::thread_idx_x() as usize, BN / TN);
        (thread / lanes, thread % lanes)
    }
}

/// What a thread loads at a time: a vector of each of AHEAD rows of B, and the columns of A that
/// belong to them.
struct Batch<V: Vector, const BM: usize, const AHEAD: usize> {
    a: [[V::Sum; BM]; AHEAD],
    b: [V; AHEAD],
}

impl<V: Vector, const BM: usize, const AHEAD: usize> Batch<V, BM, AHEAD> {
    /// Adds the products of each row of B with its column of A.
    #[inline(always)]
    fn add_products<const TN: usize>(&self, sums: &mut [[V::Sum; TN]; BM]) {
        for row in 0..AHEAD {
            for i in 0..BM {
                for j in 0..TN {
                    sums[i][j] = self.a[row][i].times_plus(self.b[row].get(j), sums[i][j]);
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
    fn new<C, E>(
        gemm: &Gemm<'_, V::Element, C, V::Sum, E>,
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
            a: [[V::Sum::ZERO; BM]; AHEAD],
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
