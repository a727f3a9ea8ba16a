//! K-major in 16 bits: the same on tensor cores, for which eight rows cost no more than one.

use super::vector::{Half8, Vector};
use super::{last_or, warp_and_lane, Way};
use crate::gemm::Gemm;
use crate::half::Half;
use crate::spec::{OperandLayout, Unit};

/// K-major in 16 bits: a warp has 16 columns of B and 8 rows of A, and SLICES warps divide the
/// k-iterations of a column. A thread has AHEAD vectors of two columns in flight.
///
/// A tensor core adds products in any order of k, if only A and B are in the same. So the eight
/// elements that a lane reads need not be those that the instruction's picture gives it: each two
/// words of them are its part of one multiplication. B comes first, as the instruction has 16 rows
/// and 8 columns.
pub(super) struct OnTensorCores<const AHEAD: usize, const SLICES: usize>;

/// Elements along k of a column that the four lanes of a group read at a time.
const GROUP_K: usize = 32;

impl<T: Half, const AHEAD: usize, const SLICES: usize, const BN: usize> Way<Half8<T>, 8, BN>
    for OnTensorCores<AHEAD, SLICES>
{
    const BK: usize = SLICES * AHEAD * GROUP_K;
    const SLICES: usize = SLICES;
    const A: OperandLayout = OperandLayout::K_MAJOR_ALIGNED;
    const B: OperandLayout = OperandLayout::K_MAJOR_ALIGNED;
    const UNIT: Unit = Unit::TensorCores { warp_tile: (8, 16) };

    type Sums = [f32; 4];

    #[inline(always)]
    unsafe fn multiply<C, E: Copy>(
        gemm: &Gemm<'_, u16, C, f32, E>,
        (tile_row, tile_col): (usize, usize),
        (from, to): (usize, usize),
    ) -> Self::Sums {
        let (warp, lane) = warp_and_lane();
        let (slice, warp_col) = (warp % SLICES, tile_col + 16 * (warp / SLICES));
        let (group, of_group) = (lane / 4, lane % 4);
        let mut sums = [0.0; 4];
        if warp_col >= gemm.n {
            return sums;
        }
        let first = from + slice * AHEAD * GROUP_K + 8 * of_group;
        let row = last_or(tile_row + group, gemm.m);
        let mut a = gemm.a.as_ptr().wrapping_add(row * gemm.lda + first);
        let mut b = [gemm.b.as_ptr(); 2];
        for j in 0..2 {
            let column = last_or(warp_col + 8 * j + group, gemm.n);
            b[j] = b[j].wrapping_add(column * gemm.ldb + first);
        }
        // Full vectors: AHEAD at a time, and then one by one.
        let all = SLICES * AHEAD * GROUP_K;
        let elements = (to - from) % 8;
        let end = to - elements;
        let mut k = from;
        while k + all <= end {
            Self::add_products::<T, AHEAD>(&mut a, &mut b, all, true, &mut sums);
            k += all;
        }
        let back = slice * (AHEAD - 1) * GROUP_K;
        a = a.wrapping_sub(back);
        b = b.map(|b| b.wrapping_sub(back));
        while k < end {
            let is_there = k + slice * GROUP_K + 8 * of_group < end;
            Self::add_products::<T, 1>(&mut a, &mut b, SLICES * GROUP_K, is_there, &mut sums);
            k += SLICES * GROUP_K;
        }
        // Elements that fill no vector, two for a lane; the others are zeros.
        if elements > 0 && slice == 0 {
            let offset = (end + 2 * of_group).wrapping_sub(k + 8 * of_group);
            let pair = |of: *const u16| {
                let element = |i: usize| match 2 * of_group + i < elements {
                    true => u32::from(*of.wrapping_add(offset + i)),
                    false => 0,
                };
                [element(0) | element(1) << 16, 0]
            };
            sums = products::<T>(b.map(pair), pair(a), sums);
        }
        sums
    }

    #[inline(always)]
    unsafe fn write(sums: Self::Sums, slice_sums: *mut f32) {
        let (warp, lane) = warp_and_lane();
        let slice = warp % SLICES;
        for index in 0..4 {
            let row = 2 * (lane % 4) + index % 2;
            let col = 16 * (warp / SLICES) + lane / 4 + 8 * (index / 2);
            *slice_sums.add((slice * 8 + row) * BN + col) = sums[index];
        }
    }
}

impl<const AHEAD: usize, const SLICES: usize> OnTensorCores<AHEAD, SLICES> {
    /// Adds the products of COUNT vectors, if they are there, and goes `distance` elements on.
    ///
    /// # Safety
    ///
    /// If they are there, the vectors can be read, and all lanes of the warp are here.
    #[inline(always)]
    unsafe fn add_products<T: Half, const COUNT: usize>(
        a: &mut *const u16,
        b: &mut [*const u16; 2],
        distance: usize,
        are_there: bool,
        sums: &mut [f32; 4],
    ) {
        let read = |source: *const u16, index: usize| match are_there {
            true => Half8::<T>::read(source.wrapping_add(index * GROUP_K)).0,
            false => [0; 4],
        };
        let mut loaded = [[[0; 4]; 2]; COUNT];
        for index in 0..COUNT {
            for j in 0..2 {
                loaded[index][j] = read(b[j], index);
            }
        }
        for index in 0..COUNT {
            let a = read(*a, index);
            for half in 0..2 {
                let words = |of: [u32; 4]| [of[2 * half], of[2 * half + 1]];
                *sums = products::<T>(loaded[index].map(words), words(a), *sums);
            }
        }
        *a = a.wrapping_add(distance);
        for j in 0..2 {
            b[j] = b[j].wrapping_add(distance);
        }
    }
}

/// Products of 16 columns of B with 8 rows of A, 16 along k: two words of each column and row that
/// a lane has a part of.
#[inline(always)]
unsafe fn products<T: Half>(b: [[u32; 2]; 2], a: [u32; 2], sums: [f32; 4]) -> [f32; 4] {
    T::multiply_8([b[0][0], b[1][0], b[0][1], b[1][1]], a, sums)
}
