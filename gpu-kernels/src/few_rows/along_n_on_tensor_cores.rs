//! MN-major on tensor cores: lanes read along the rows of B, and what they have in registers then
//! is what an instruction multiplies.

use cuda_std::mma;

use super::vector::{joined, Double2, Half8, OfElements, Vector};
use super::{last_or, warp_and_lane, Way, LANES};
use crate::gemm::Gemm;
use crate::half::Half;
use crate::spec::{OperandLayout, Unit};

/// MN-major on tensor cores: a warp has eight neighbouring vectors of columns and GROUPS groups of
/// 8 rows of A, and SLICES warps divide the k-iterations of a column. A thread has AHEAD vectors in
/// flight.
///
/// ```text
///         n ->
///    k 0  [lane 0 ][lane 4 ] .. [lane 28]   a row of B: eight vectors, 128 bytes
///    | 2  [lane 1 ][lane 5 ] .. [lane 29]
///    v 4  [lane 2 ][lane 6 ] .. [lane 30]
///      6  [lane 3 ][lane 7 ] .. [lane 31]   and then rows 1, 3, 5 and 7, all of f64
/// ```
///
/// So an instruction wants its columns in f64: it multiplies the first element of each vector, and
/// another instruction the second. A lane has neighbouring rows, so that its elements of A are
/// 16 bytes: a read of A touches eight lines of the L1, where one of B touches four. In 16 bits an
/// instruction wants neighbours along k in one register: a lane reads four rows, and puts halves of
/// two words together.
pub(super) struct AlongNOnTensorCores<const GROUPS: usize, const AHEAD: usize, const SLICES: usize>;

/// Vectors of a row of B that a warp reads.
const VECTORS: usize = 8;

/// A vector whose columns a tensor core multiplies.
pub(super) trait Columns: OfElements {
    /// Neighbouring rows of B that a lane reads for a step, and elements of A.
    const ROWS: usize;

    /// A lane's elements of a row of A for a step.
    type OfA: Copy;
    /// A lane's sums, of 8 rows of C and the columns of [`VECTORS`] vectors.
    type Sums: Copy;
    const ZERO_SUMS: Self::Sums;

    /// Elements of a row of A.
    ///
    /// # Safety
    ///
    /// `source` is a multiple of their size, and valid for reading [`Self::ROWS`] elements.
    unsafe fn read_a(source: *const Self::Element) -> Self::OfA;

    /// The same, one by one.
    fn a_of(element: impl Fn(usize) -> Self::Element) -> Self::OfA;

    /// Adds the products of a step, with the first [`Self::ROWS`] of `b`.
    ///
    /// # Safety
    ///
    /// All lanes of the warp are here.
    unsafe fn add_products(a: Self::OfA, b: [Self; 4], sums: &mut Self::Sums);

    /// Calls `write` with the row, the column and the value of each sum.
    fn each(sums: Self::Sums, lane: usize, write: impl FnMut(usize, usize, Self::Sum));
}

impl Columns for Double2 {
    const ROWS: usize = 2;

    type OfA = [f64; 2];
    /// Of the first column of two vectors, and of the second.
    type Sums = [[f64; 2]; 2];
    const ZERO_SUMS: Self::Sums = [[0.0; 2]; 2];

    #[inline(always)]
    unsafe fn read_a(source: *const f64) -> [f64; 2] {
        Double2::read(source).0
    }

    #[inline(always)]
    fn a_of(element: impl Fn(usize) -> f64) -> [f64; 2] {
        [element(0), element(1)]
    }

    #[inline(always)]
    unsafe fn add_products(a: [f64; 2], b: [Self; 4], sums: &mut Self::Sums) {
        for i in 0..2 {
            for j in 0..2 {
                sums[j] = mma::m8n8k4_f64([a[i]], [b[i].get(j)], sums[j]);
            }
        }
    }

    #[inline(always)]
    fn each(sums: Self::Sums, lane: usize, mut write: impl FnMut(usize, usize, f64)) {
        for j in 0..2 {
            for index in 0..2 {
                let vector = 2 * (lane % 4) + index;
                write(lane / 4, 2 * vector + j, sums[j][index]);
            }
        }
    }
}

impl<T: Half> Columns for Half8<T> {
    const ROWS: usize = 4;

    type OfA = [u32; 2];
    /// Of each word of a vector: two rows of its first column, and of its second.
    type Sums = [[f32; 4]; 4];
    const ZERO_SUMS: Self::Sums = [[0.0; 4]; 4];

    #[inline(always)]
    unsafe fn read_a(source: *const u16) -> [u32; 2] {
        let four = *source.cast::<u64>();
        [four as u32, (four >> 32) as u32]
    }

    #[inline(always)]
    fn a_of(element: impl Fn(usize) -> u16) -> [u32; 2] {
        let pair = |i: usize| joined(element(i).into(), element(i + 1).into());
        [pair(0), pair(2)]
    }

    #[inline(always)]
    unsafe fn add_products(a: [u32; 2], b: [Self; 4], sums: &mut Self::Sums) {
        for word in 0..4 {
            let first = |i: usize| joined(b[i].0[word], b[i + 1].0[word]);
            let second = |i: usize| joined(b[i].0[word] >> 16, b[i + 1].0[word] >> 16);
            // B comes first, as the instruction has 16 rows and 8 columns: eight first columns,
            // and eight second ones.
            let of_b = [first(0), second(0), first(2), second(2)];
            sums[word] = T::multiply_8(of_b, a, sums[word]);
        }
    }

    #[inline(always)]
    fn each(sums: Self::Sums, lane: usize, mut write: impl FnMut(usize, usize, f32)) {
        for word in 0..4 {
            for index in 0..4 {
                let row = 2 * (lane % 4) + index % 2;
                let col = 8 * (lane / 4) + 2 * word + index / 2;
                write(row, col, sums[word][index]);
            }
        }
    }
}

impl<
        V: Columns,
        const GROUPS: usize,
        const AHEAD: usize,
        const SLICES: usize,
        const BM: usize,
        const BN: usize,
    > Way<V, BM, BN> for AlongNOnTensorCores<GROUPS, AHEAD, SLICES>
{
    const BK: usize = SLICES * 4 * AHEAD;
    const SLICES: usize = SLICES;
    const A: OperandLayout = OperandLayout::K_MAJOR_ALIGNED;
    const B: OperandLayout = OperandLayout::MN_MAJOR_ALIGNED;
    const UNIT: Unit = Unit::TensorCores {
        warp_tile: (BM as u32, (VECTORS * V::LENGTH) as u32),
    };

    type Sums = [V::Sums; GROUPS];

    #[inline(always)]
    unsafe fn multiply<C, E: Copy>(
        gemm: &Gemm<'_, V::Element, C, V::Sum, E>,
        (tile_row, tile_col): (usize, usize),
        (from, to): (usize, usize),
    ) -> Self::Sums {
        let columns = VECTORS * V::LENGTH;
        const {
            assert!(BM == 8 * GROUPS, "a tile is as high as a warp's");
            assert!(AHEAD.is_multiple_of(V::ROWS), "whole steps");
            assert!(
                BM * VECTORS * V::LENGTH / 4 <= LANES * SLICES,
                "a thread for each four columns to add"
            );
        }
        let (warp, lane) = warp_and_lane();
        let (slice, warp_col) = (warp % SLICES, tile_col + columns * (warp / SLICES));
        let mut sums = [V::ZERO_SUMS; GROUPS];
        if warp_col >= gemm.n {
            return sums;
        }
        // A vector that crosses the end of a row of B still ends before the next row, which is
        // aligned. Only after the last row there may be no memory: that one is read element by
        // element.
        let crosses_the_end = to == gemm.depth() && warp_col + columns > gemm.n;
        let end = to.saturating_sub(crosses_the_end as usize);

        // The slice's part of an iteration, and a lane's place in it.
        let (all, of_step) = (4 * AHEAD, 4 * V::ROWS);
        let mut part = from + slice * all;
        let first_row = V::ROWS * (lane % 4);
        let mut a = [gemm.a.as_ptr(); GROUPS];
        for group in 0..GROUPS {
            let row = last_or(tile_row + 8 * group + lane / 4, gemm.m);
            a[group] = a[group].wrapping_add(row * gemm.lda + part + first_row);
        }
        let col = warp_col + V::LENGTH * (lane / 4);
        let mut b = gemm
            .b
            .as_ptr()
            .wrapping_add((part + first_row) * gemm.ldb + col);

        // Whole parts.
        while part + all <= end {
            let mut loaded = [[V::ZERO; 4]; AHEAD];
            for step in 0..AHEAD / V::ROWS {
                for i in 0..V::ROWS {
                    if col < gemm.n {
                        loaded[step][i] = V::read(b.wrapping_add((step * of_step + i) * gemm.ldb));
                    }
                }
            }
            for step in 0..AHEAD / V::ROWS {
                for group in 0..GROUPS {
                    let a = V::read_a(a[group].wrapping_add(step * of_step));
                    V::add_products(a, loaded[step], &mut sums[group]);
                }
            }
            for group in 0..GROUPS {
                a[group] = a[group].wrapping_add(SLICES * all);
            }
            b = b.wrapping_add(SLICES * all * gemm.ldb);
            part += SLICES * all;
        }
        // One that is not, step by step.
        let rest = if part + all < to { part + all } else { to };
        while part < rest {
            let k = part + first_row;
            let mut loaded = [V::ZERO; 4];
            for i in 0..V::ROWS {
                let row = b.wrapping_add(i * gemm.ldb);
                if k + i < end && col < gemm.n {
                    loaded[i] = V::read(row);
                } else if k + i < to {
                    loaded[i] = V::of(|j| match col + j < gemm.n {
                        true => *row.wrapping_add(j),
                        false => V::NOTHING,
                    });
                }
            }
            for group in 0..GROUPS {
                let a = V::a_of(|i| match k + i < to {
                    true => *a[group].wrapping_add(i),
                    false => V::NOTHING,
                });
                V::add_products(a, loaded, &mut sums[group]);
            }
            for group in 0..GROUPS {
                a[group] = a[group].wrapping_add(of_step);
            }
            b = b.wrapping_add(of_step * gemm.ldb);
            part += of_step;
        }
        sums
    }

    #[inline(always)]
    unsafe fn write(sums: Self::Sums, slice_sums: *mut V::Sum) {
        let (warp, lane) = warp_and_lane();
        let warp_col = VECTORS * V::LENGTH * (warp / SLICES);
        for group in 0..GROUPS {
            let first = warp % SLICES * BM + 8 * group;
            V::each(sums[group], lane, |row, col, sum| {
                *slice_sums.add((first + row) * BN + warp_col + col) = sum;
            });
        }
    }
}
