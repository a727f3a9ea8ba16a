//! K-major: a warp computes a few columns of all rows of the tile, and its lanes divide k.

use cuda_std::warp::{self, WarpShuffleValue};

use super::vector::Vector;
use super::{last_or, warp_and_lane, Way, LANES};
use crate::element::Element;
use crate::fix_up::Sum;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::spec::{OperandLayout, Unit};

/// K-major: a warp has [`WN`] columns, and a thread AHEAD vectors of each in flight.
pub(super) struct AlongK<const AHEAD: usize>;

/// Columns of a warp.
const WN: usize = 4;

impl<V: Vector, const AHEAD: usize, const BM: usize, const BN: usize> Way<V, BM, BN>
    for AlongK<AHEAD>
{
    const BK: usize = AHEAD * LANES * V::LENGTH;
    const SLICES: usize = 1;
    const A: OperandLayout = OperandLayout::K_MAJOR_ALIGNED;
    const B: OperandLayout = OperandLayout::K_MAJOR_ALIGNED;
    const UNIT: Unit = Unit::CudaCores;

    type Sums = [[V::Sum; WN]; BM];

    #[inline(always)]
    unsafe fn multiply<C, E: Copy>(
        gemm: &Gemm<'_, V::Element, C, V::Sum, E>,
        (tile_row, tile_col): (usize, usize),
        (from, to): (usize, usize),
    ) -> Self::Sums {
        let (warp, lane) = warp_and_lane();
        let mut sums = [[V::Sum::ZERO; WN]; BM];
        let col = tile_col + WN * warp;
        if col >= gemm.n {
            return sums;
        }
        let first = from + V::LENGTH * lane;
        let mut a = [gemm.a.as_ptr(); BM];
        for i in 0..BM {
            a[i] = a[i].wrapping_add(last_or(tile_row + i, gemm.m) * gemm.lda + first);
        }
        let mut b = [gemm.b.as_ptr(); WN];
        for j in 0..WN {
            b[j] = b[j].wrapping_add(last_or(col + j, gemm.n) * gemm.ldb + first);
        }
        // Of the full vectors a lane takes one of each LANES, AHEAD at a time and then one by one.
        let vectors = (to - from) / V::LENGTH;
        let mut batches = (vectors / (AHEAD * LANES)) as u32;
        while batches > 0 {
            Self::add_products::<V, BM, AHEAD>(&mut a, &mut b, &mut sums);
            batches -= 1;
        }
        let mut next = vectors / (AHEAD * LANES) * (AHEAD * LANES) + lane;
        while next < vectors {
            Self::add_products::<V, BM, 1>(&mut a, &mut b, &mut sums);
            next += LANES;
        }
        // Elements that fill no vector, one for a lane.
        let elements = (to - from) % V::LENGTH;
        if lane < elements {
            let offset = (to - elements + lane).wrapping_sub(from + V::LENGTH * next);
            for j in 0..WN {
                let b = V::value(*b[j].wrapping_add(offset));
                for i in 0..BM {
                    let a = V::value(*a[i].wrapping_add(offset));
                    sums[i][j] = a.times_plus(b, sums[i][j]);
                }
            }
        }
        for i in 0..BM {
            for j in 0..WN {
                sums[i][j] = sum_of_lanes(sums[i][j]);
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn write(sums: Self::Sums, slice_sums: *mut V::Sum) {
        let (warp, lane) = warp_and_lane();
        if lane == 0 {
            for i in 0..BM {
                Float4(sums[i]).write(slice_sums.add(i * BN + WN * warp));
            }
        }
    }
}

impl<const AHEAD: usize> AlongK<AHEAD> {
    /// Adds the products of COUNT vectors of each row of A and column of B, and goes beyond them.
    ///
    /// # Safety
    ///
    /// These vectors can be read.
    #[inline(always)]
    unsafe fn add_products<V: Vector, const BM: usize, const COUNT: usize>(
        a: &mut [*const V::Element; BM],
        b: &mut [*const V::Element; WN],
        sums: &mut [[V::Sum; WN]; BM],
    ) {
        let at = |index: usize| index * LANES * V::LENGTH;
        let mut loaded = [[V::ZERO; WN]; COUNT];
        for index in 0..COUNT {
            for j in 0..WN {
                loaded[index][j] = V::read(b[j].wrapping_add(at(index)));
            }
        }
        for index in 0..COUNT {
            for i in 0..BM {
                let a = V::read(a[i].wrapping_add(at(index)));
                for k in 0..V::LENGTH {
                    for j in 0..WN {
                        sums[i][j] = a.get(k).times_plus(loaded[index][j].get(k), sums[i][j]);
                    }
                }
            }
        }
        for i in 0..BM {
            a[i] = a[i].wrapping_add(at(COUNT));
        }
        for j in 0..WN {
            b[j] = b[j].wrapping_add(at(COUNT));
        }
    }
}

/// The sum of the values of all lanes, the same in each.
#[inline(always)]
unsafe fn sum_of_lanes<T: Sum + WarpShuffleValue>(mut sum: T) -> T {
    for distance in [16, 8, 4, 2, 1] {
        sum = sum.plus(warp::warp_shuffle_xor(u32::MAX, sum, distance, 32).0);
    }
    sum
}
