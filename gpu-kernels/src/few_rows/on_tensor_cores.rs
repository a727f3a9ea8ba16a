//! K-major on tensor cores, for which eight rows cost no more than one.

use cuda_std::mma;

use super::vector::{Double2, Half8, OfElements, Vector};
use super::{last_or, warp_and_lane, Way, LANES};
use crate::gemm::Gemm;
use crate::half::Half;
use crate::spec::{OperandLayout, Unit};

/// K-major on tensor cores: a warp has 16 columns of B and GROUPS groups of 8 rows of A, and SLICES
/// warps divide the k-iterations of a column. A thread has AHEAD vectors of two columns in flight.
///
/// A tensor core adds products in any order of k, if only A and B are in the same. So the elements
/// that a lane reads, neighbours along k, need not be those that the instruction's picture gives
/// it: one of f64, and four of 16 bits, are its part of one multiplication.
pub(super) struct OnTensorCores<const GROUPS: usize, const AHEAD: usize, const SLICES: usize>;

/// A vector along k that a tensor core multiplies.
pub(super) trait Run: OfElements {
    /// A lane's sums, of 8 rows of C and 16 columns.
    type Sums: Copy;
    const ZERO_SUMS: Self::Sums;

    /// The vector there, or one of zeros.
    ///
    /// # Safety
    ///
    /// As [`Vector::read`], if it is there.
    unsafe fn read_if(is_there: bool, source: *const Self::Element) -> Self;

    /// Adds the products of a lane's row of A with its column of the first eight of B, and of the
    /// other eight.
    ///
    /// # Safety
    ///
    /// All lanes of the warp are here.
    unsafe fn add_products(a: Self, b: [Self; 2], sums: &mut Self::Sums);

    /// Calls `write` with the row, the column and the value of each sum.
    fn each(sums: Self::Sums, lane: usize, write: impl FnMut(usize, usize, Self::Sum));
}

impl Run for Double2 {
    type Sums = [[f64; 2]; 2]; // of the first eight columns, and of the others
    const ZERO_SUMS: Self::Sums = [[0.0; 2]; 2];

    #[inline(always)]
    unsafe fn read_if(is_there: bool, source: *const f64) -> Double2 {
        Double2(match is_there {
            true => Double2::read(source).0,
            false => [0.0; 2],
        })
    }

    #[inline(always)]
    unsafe fn add_products(a: Self, b: [Self; 2], sums: &mut Self::Sums) {
        for i in 0..2 {
            for j in 0..2 {
                sums[j] = mma::m8n8k4_f64([a.get(i)], [b[j].get(i)], sums[j]);
            }
        }
    }

    #[inline(always)]
    fn each(sums: Self::Sums, lane: usize, mut write: impl FnMut(usize, usize, f64)) {
        for j in 0..2 {
            for index in 0..2 {
                write(lane / 4, 8 * j + 2 * (lane % 4) + index, sums[j][index]);
            }
        }
    }
}

impl<T: Half> Run for Half8<T> {
    type Sums = [f32; 4];
    const ZERO_SUMS: Self::Sums = [0.0; 4];

    #[inline(always)]
    unsafe fn read_if(is_there: bool, source: *const u16) -> Half8<T> {
        Half8::of_words(match is_there {
            true => Half8::<T>::read(source).0,
            false => [0; 4],
        })
    }

    #[inline(always)]
    unsafe fn add_products(a: Self, b: [Self; 2], sums: &mut Self::Sums) {
        // B comes first, as the instruction has 16 rows and 8 columns.
        for i in [0, 2] {
            let of_b = [b[0].0[i], b[1].0[i], b[0].0[i + 1], b[1].0[i + 1]];
            *sums = T::multiply_8(of_b, [a.0[i], a.0[i + 1]], *sums);
        }
    }

    #[inline(always)]
    fn each(sums: Self::Sums, lane: usize, mut write: impl FnMut(usize, usize, f32)) {
        for index in 0..4 {
            let (row, col) = (2 * (lane % 4) + index % 2, lane / 4 + 8 * (index / 2));
            write(row, col, sums[index]);
        }
    }
}

impl<
        V: Run,
        const GROUPS: usize,
        const AHEAD: usize,
        const SLICES: usize,
        const BM: usize,
        const BN: usize,
    > Way<V, BM, BN> for OnTensorCores<GROUPS, AHEAD, SLICES>
{
    const BK: usize = SLICES * AHEAD * 4 * V::LENGTH;
    const SLICES: usize = SLICES;
    const A: OperandLayout = OperandLayout::K_MAJOR_ALIGNED;
    const B: OperandLayout = OperandLayout::K_MAJOR_ALIGNED;
    const UNIT: Unit = Unit::TensorCores {
        warp_tile: (BM as u32, 16),
    };

    type Sums = [V::Sums; GROUPS];

    #[inline(always)]
    unsafe fn multiply<C, E: Copy>(
        gemm: &Gemm<'_, V::Element, C, V::Sum, E>,
        (tile_row, tile_col): (usize, usize),
        (from, to): (usize, usize),
    ) -> Self::Sums {
        const {
            assert!(BM == 8 * GROUPS, "a tile is as high as a warp's");
            assert!(
                BM * 16 / 4 <= LANES * SLICES,
                "a thread for each four columns to add"
            );
        }
        let (warp, lane) = warp_and_lane();
        let (slice, warp_col) = (warp % SLICES, tile_col + 16 * (warp / SLICES));
        let (group, of_group) = (lane / 4, lane % 4);
        let mut sums = [V::ZERO_SUMS; GROUPS];
        if warp_col >= gemm.n {
            return sums;
        }
        let group_k = 4 * V::LENGTH; // of a column, by the four lanes of a group
        let first = from + slice * AHEAD * group_k + V::LENGTH * of_group;
        let mut a = [gemm.a.as_ptr(); GROUPS];
        for i in 0..GROUPS {
            let row = last_or(tile_row + 8 * i + group, gemm.m);
            a[i] = a[i].wrapping_add(row * gemm.lda + first);
        }
        let mut b = [gemm.b.as_ptr(); 2];
        for j in 0..2 {
            let column = last_or(warp_col + 8 * j + group, gemm.n);
            b[j] = b[j].wrapping_add(column * gemm.ldb + first);
        }
        // Full vectors: AHEAD at a time, and then one by one.
        let all = SLICES * AHEAD * group_k;
        let elements = (to - from) % V::LENGTH;
        let end = to - elements;
        let mut k = from;
        while k + all <= end {
            Self::add_products::<V, AHEAD>(&mut a, &mut b, all, true, &mut sums);
            k += all;
        }
        let back = slice * (AHEAD - 1) * group_k;
        for i in 0..GROUPS {
            a[i] = a[i].wrapping_sub(back);
        }
        b = b.map(|b| b.wrapping_sub(back));
        while k < end {
            let is_there = k + slice * group_k + V::LENGTH * of_group < end;
            Self::add_products::<V, 1>(&mut a, &mut b, SLICES * group_k, is_there, &mut sums);
            k += SLICES * group_k;
        }
        // Elements that fill no vector: the first lane of a group has them.
        if elements > 0 && slice == 0 {
            let count = if of_group == 0 { elements } else { 0 };
            let offset = end.wrapping_sub(k);
            let read = |source: *const V::Element| {
                V::of(|i| match i < count {
                    true => *source.wrapping_add(offset).wrapping_add(i),
                    false => V::NOTHING,
                })
            };
            let b = [read(b[0]), read(b[1])];
            for i in 0..GROUPS {
                V::add_products(read(a[i]), b, &mut sums[i]);
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn write(sums: Self::Sums, slice_sums: *mut V::Sum) {
        let (warp, lane) = warp_and_lane();
        for i in 0..GROUPS {
            let first = warp % SLICES * BM + 8 * i;
            V::each(sums[i], lane, |row, col, sum| {
                *slice_sums.add((first + row) * BN + 16 * (warp / SLICES) + col) = sum;
            });
        }
    }
}

impl<const GROUPS: usize, const AHEAD: usize, const SLICES: usize>
    OnTensorCores<GROUPS, AHEAD, SLICES>
{
    /// Adds the products of COUNT vectors, if they are there, and goes `distance` elements on.
    ///
    /// # Safety
    ///
    /// If they are there, the vectors can be read, and all lanes of the warp are here.
    #[inline(always)]
    unsafe fn add_products<V: Run, const COUNT: usize>(
        a: &mut [*const V::Element; GROUPS],
        b: &mut [*const V::Element; 2],
        distance: usize,
        are_there: bool,
        sums: &mut [V::Sums; GROUPS],
    ) {
        let read = |source: *const V::Element, index: usize| {
            V::read_if(are_there, source.wrapping_add(index * 4 * V::LENGTH))
        };
        let mut loaded = [[V::ZERO; 2]; COUNT];
        for index in 0..COUNT {
            for j in 0..2 {
                loaded[index][j] = read(b[j], index);
            }
        }
        for index in 0..COUNT {
            for i in 0..GROUPS {
                V::add_products(read(a[i], index), loaded[index], &mut sums[i]);
            }
        }
        for i in 0..GROUPS {
            a[i] = a[i].wrapping_add(distance);
        }
        for j in 0..2 {
            b[j] = b[j].wrapping_add(distance);
        }
    }
}
