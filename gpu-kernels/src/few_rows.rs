//! Few rows: B passes through registers once, on its way from memory, and nothing of it is kept.
//!
//! A C of a single row uses each element of B once. Nothing can be reused, so shared memory would
//! only be a detour: this kernel is memory-bound, and what counts is bytes in flight. A thread
//! reads B by 16 bytes, several such vectors before it multiplies the first. Vectors lie along the
//! rows of B as it is stored, so there are two ways:
//!
//! ```text
//!   B is k x n: MN-major                      B is n x k: K-major
//!
//!        n ->                                      k ->
//!     k  [lane 0][lane 1] .. [lane 31]          n  [lane 0][lane 1] .. [lane 31]  column 0
//!     |  [lane 0][lane 1] .. [lane 31]          |  [lane 0][lane 1] .. [lane 31]  column 1
//!     v  ..                                     v  ..
//!     a lane has the sums of its columns        a lane has a part of the sums of all columns
//! ```
//!
//! - MN-major: a thread computes TN neighbouring columns of all BM rows. An element of A is the
//!   same for all lanes of a warp that read the same row of B: one load, which a cache serves.
//!   Those lanes take a k-slice, and the sums of all slices of a block are added in shared memory,
//!   in the order of their numbers. So a block has much of B in flight, but leaves only one partial
//!   sum of each element.
//! - K-major: a warp computes WN columns of all BM rows, and its lanes divide k. A vector of A
//!   serves WN of B. At the end of a segment lanes exchange their sums.
//! - In 16 bits, K-major vectors are what a tensor core multiplies: eight rows of A cost no more
//!   than one.
//! - Blocks divide the k-iterations (`stream_k.rs`), and `fix_up` adds what they leave. That costs
//!   4 us, a seventh of a product of 117 MB: so there are tiles of 32, 64 and 128 columns, one of
//!   which mostly fills a GPU with whole tiles.
//! - It begins before the kernel in front of it has ended, and has divided its work by then.
//! - Few columns are few rows of the transposed product, `C^T = B^T * A^T`: then B is what the
//!   caller names A, and neighbours in a row of C are `column_stride` elements apart.
//!
//! Numbers of 16 bits are half the bytes, so half the time. They become f32 in registers, where
//! their products are exact.
//!
//! A comes from the L1, to which it comes from the L2 once a block tile: of each byte of B that is
//! BM / WN bytes from the L1 and BM / BN from the L2, two and a quarter at most. Memory gives an SM
//! 18 bytes a clock, the L1 128. So A is not staged in shared memory, which would take a barrier
//! for each part of it.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/TN), K-major M*N*K * (1/BM + 1/WN). B comes from memory,
//! A from caches: all that memory moves is K*N of B.
//! Shared-memory reads: one of each slice's sums, once a tile
//! Block: 256 or 512 threads, block tile BM x BN, BM 1 to 8, BN 32 to 128. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel few-rows --m 1 --n 2112 --k 7168
//! ```

use core::marker::PhantomData;

use cuda_std::prelude::*;
use cuda_std::warp::{self, WarpShuffleValue};

use crate::compat::grid_dependency;
use crate::element::Element;
use crate::fix_up::{update4, Sink, Sum};
use crate::fix_up_half::sink;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::half::{Bf16, Half, F16};
use crate::kernel::kernel;
use crate::spec::{OperandLayout, Unit};
use crate::stream_k::StreamK;

/// Lanes of a warp.
const LANES: usize = 32;

/// What a thread reads of B at a time: 16 bytes, which stay as they are until they are multiplied.
trait Vector: Copy {
    /// What holds an element.
    type Element: Copy;
    /// What adds up products of elements.
    type Sum: Sum + WarpShuffleValue;

    /// Elements.
    const LENGTH: usize;
    const ZERO: Self;

    /// Loads 16 bytes.
    ///
    /// # Safety
    ///
    /// `source` is a multiple of 16 bytes, and valid for reading all elements.
    unsafe fn read(source: *const Self::Element) -> Self;

    /// The number at an index.
    fn get(&self, index: usize) -> Self::Sum;

    /// The number that an element stands for.
    fn value(element: Self::Element) -> Self::Sum;
}

impl Vector for Float4 {
    type Element = f32;
    type Sum = f32;

    const LENGTH: usize = 4;
    const ZERO: Float4 = Float4::ZERO;

    #[inline(always)]
    unsafe fn read(source: *const f32) -> Float4 {
        Float4::read(source)
    }

    #[inline(always)]
    fn get(&self, index: usize) -> f32 {
        self.0[index]
    }

    #[inline(always)]
    fn value(element: f32) -> f32 {
        element
    }
}

/// Two f64.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Double2([f64; 2]);

impl Vector for Double2 {
    type Element = f64;
    type Sum = f64;

    const LENGTH: usize = 2;
    const ZERO: Double2 = Double2([0.0; 2]);

    #[inline(always)]
    unsafe fn read(source: *const f64) -> Double2 {
        // One by one, as a `Float4`.
        let source = source.cast::<Self>();
        Double2([(*source).0[0], (*source).0[1]])
    }

    #[inline(always)]
    fn get(&self, index: usize) -> f64 {
        self.0[index]
    }

    #[inline(always)]
    fn value(element: f64) -> f64 {
        element
    }
}

/// Eight numbers of 16 bits, two in a word, the first in its lower half.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Half8<T>([u32; 4], PhantomData<T>);

impl<T: Half> Vector for Half8<T> {
    type Element = u16;
    type Sum = f32;

    const LENGTH: usize = 8;
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
    fn get(&self, index: usize) -> f32 {
        let word = self.0[index / 2];
        T::value(if index.is_multiple_of(2) {
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

/// A way of reading B, and what it makes of a segment: the sums of each k-slice.
trait Way<V: Vector, const BM: usize, const BN: usize> {
    /// Depth of a k-iteration.
    const BK: usize;
    /// K-slices whose sums are added in shared memory.
    const SLICES: usize;
    const A: OperandLayout;
    const B: OperandLayout;
    const UNIT: Unit;

    /// The sums of a thread.
    type Sums;

    /// Those over the part `k = (from, to)` of K, for the tile at `(row, col)`.
    unsafe fn multiply<C>(
        gemm: &Gemm<'_, V::Element, C, V::Sum>,
        tile: (usize, usize),
        k: (usize, usize),
    ) -> Self::Sums;

    /// Puts them where those of other threads are added.
    unsafe fn write(sums: Self::Sums, slice_sums: *mut V::Sum);
}

/// The body of every variant.
#[inline(always)]
unsafe fn multiply<
    W: Way<V, BM, BN>,
    V: Vector,
    C,
    S: Sink<Sum = V::Sum>,
    const BM: usize,
    const BN: usize,
>(
    gemm: Gemm<'_, V::Element, C, V::Sum>,
    c: S,
    slice_sums: *mut V::Sum, // (SLICES, BM, BN), in shared memory
) {
    let thread = thread::thread_idx_x() as usize;
    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (stream_k, mut work) = StreamK::of_launch((gemm.m, gemm.n, depth), (BM, BN, W::BK));
    let mut workspace_tile = 2 * block_x;
    grid_dependency::wait(); // for whatever writes A, B and C, and for who reads the partial sums
    grid_dependency::launch_dependents(); // `fix_up` may start on SMs that become free
    while work.begin < work.end {
        let segment = stream_k.segment(work);
        let (tile_row, tile_col) = stream_k.tile_position(segment.tile);
        let (tile_row, tile_col) = (tile_row * BM, tile_col * BN);
        let from = segment.from * W::BK;
        let to = if segment.to * W::BK < depth {
            segment.to * W::BK
        } else {
            depth
        };
        let sums = W::multiply(&gemm, (tile_row, tile_col), (from, to));

        thread::sync_threads(); // every thread has finished reading the sums of the segment before
        W::write(sums, slice_sums);
        thread::sync_threads(); // the sums of all slices are there

        // A thread adds four columns of a row.
        if thread < BM * BN / 4 {
            let mut sums = [V::Sum::ZERO; 4];
            for slice in 0..W::SLICES {
                let float4 = Float4::read(slice_sums.add(slice * BM * BN + 4 * thread));
                for j in 0..4 {
                    sums[j] = sums[j].plus(float4.0[j]);
                }
            }
            let (row, col) = (tile_row + 4 * thread / BN, tile_col + 4 * thread % BN);
            if row < gemm.m && !stream_k.covers_tile(segment) {
                Float4(sums).write(gemm.partials.add(workspace_tile * BM * BN + 4 * thread));
            } else if row < gemm.m && col < gemm.n {
                update4(&gemm, &c, (row, col), Float4(sums));
            }
        }
        work.begin += segment.to - segment.from;
        workspace_tile = 2 * block_x + 1;
    }
}

/// MN-major, by vectors of TN columns, of which a thread has AHEAD in flight.
struct AlongN<const TN: usize, const AHEAD: usize, const SLICES: usize>;

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
    unsafe fn multiply<C>(
        gemm: &Gemm<'_, V::Element, C, V::Sum>,
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

/// K-major: a warp has [`WN`] columns, and a thread AHEAD vectors of each in flight.
struct AlongK<const AHEAD: usize>;

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
    unsafe fn multiply<C>(
        gemm: &Gemm<'_, V::Element, C, V::Sum>,
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

/// K-major in 16 bits: a warp has 16 columns of B and 8 rows of A, and SLICES warps divide the
/// k-iterations of a column. A thread has AHEAD vectors of two columns in flight.
///
/// A tensor core adds products in any order of k, if only A and B are in the same. So the eight
/// elements that a lane reads need not be those that the instruction's picture gives it: each two
/// words of them are its part of one multiplication. B comes first, as the instruction has 16 rows
/// and 8 columns.
struct OnTensorCores<const AHEAD: usize, const SLICES: usize>;

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
    unsafe fn multiply<C>(
        gemm: &Gemm<'_, u16, C, f32>,
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

/// The warp and the lane of a thread.
#[inline(always)]
fn warp_and_lane() -> (usize, usize) {
    let thread = thread::thread_idx_x() as usize;
    (thread / LANES, thread % LANES)
}

/// `index`, or the last one: what is read there in place of what does not exist is not used.
#[inline(always)]
fn last_or(index: usize, count: usize) -> usize {
    if index < count {
        index
    } else {
        count - 1
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
    fn new<C>(
        gemm: &Gemm<'_, V::Element, C, V::Sum>,
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

/// Writes the kernel: of each variant how it reads B and its launch, and a line for each type of A,
/// B and C.
macro_rules! few_rows {
    ($(
        $name:literal $way:ty, threads($threads:literal) tile($bm:literal, $bn:literal)
            thread_tile($tm:literal, $tn:literal) launch_bounds($ctas:literal) $rate:expr;
            $($entry:ident ($($types:tt)+) $vector:ty, $output:ident;)+
    )*) => {
        kernel! {
            name: "few-rows",
            idea: "for a C of few rows: each element of B is read once, straight into registers",
            variants: [$($(
                $name = fn $entry(gemm: $($types)+)
                    block($threads, 1)
                    tile($bm, $bn, <$way as Way<$vector, $bm, $bn>>::BK)
                    shared(slice_sums: [
                        <$vector as Vector>::Sum;
                        <$way as Way<$vector, $bm, $bn>>::SLICES * $bm * $bn
                    ])
                    launch_bounds($ctas)
                    {
                        unit: <$way as Way<$vector, $bm, $bn>>::UNIT,
                        thread_tile: ($tm, $tn),
                        least_capability: 80,
                        k_slices: $tm * $tn * $threads / ($bm * $bn),
                        grid: Grid::StreamK,
                        staging: Staging::None,
                        a: <$way as Way<$vector, $bm, $bn>>::A,
                        b: <$way as Way<$vector, $bm, $bn>>::B,
                        gemv_like: true,
                        rate: Some($rate),
                    }
                    => multiply::<$way, $vector, _, _, $bm, $bn>(
                        gemm, sink!($output)(&gemm), slice_sums,
                    );
            )+)*],
        }
    };
}

// Memory limits a single row of tiles. So the rates are fitted to two rows of tiles (4096 x 1 to
// 16 x 4096, H200), or guessed from the bytes of B in flight. In 16 bits, tiles of 32 columns would
// have 128 k-slices: 38 us for 1 x 24576 x 1536, where tiles of 64 columns take 21 (H200).
few_rows! {
    "few-rows-1" AlongN<4, 8, 8>, threads(256) tile(1, 128)
        thread_tile(1, 4) launch_bounds(2) Rate::h200(3.2, 0.3, 2);
        few_rows_1 (f32) Float4, f32;
    "few-rows-1x64" AlongN<4, 8, 16>, threads(256) tile(1, 64)
        thread_tile(1, 4) launch_bounds(3) Rate::h200(3.2, 0.3, 3);
        few_rows_1x64 (f32) Float4, f32;
    "few-rows-1x32" AlongN<4, 8, 64>, threads(512) tile(1, 32)
        thread_tile(1, 4) launch_bounds(1) Rate::h200(3.2, 0.3, 1);
        few_rows_1x32 (f32) Float4, f32;
    "few-rows-4" AlongN<4, 8, 8>, threads(256) tile(4, 128)
        thread_tile(4, 4) launch_bounds(2) Rate::h200(12.0, 0.3, 2);
        few_rows_4 (f32) Float4, f32;
    "few-rows-4x64" AlongN<4, 4, 16>, threads(256) tile(4, 64)
        thread_tile(4, 4) launch_bounds(3) Rate::h200(12.0, 0.3, 3);
        few_rows_4x64 (f32) Float4, f32;
    "few-rows-4x32" AlongN<4, 8, 64>, threads(512) tile(4, 32)
        thread_tile(4, 4) launch_bounds(1) Rate::h200(9.0, 0.3, 1);
        few_rows_4x32 (f32) Float4, f32;
    "few-rows-1" AlongN<8, 8, 16>, threads(256) tile(1, 128)
        thread_tile(1, 8) launch_bounds(2) Rate::h200(6.4, 0.3, 2);
        few_rows_1_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_1_f16 (f16) Half8<F16>, F16;
        few_rows_1_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_1_f16_f32 (f16 -> f32) Half8<F16>, f32;
    "few-rows-1x64" AlongN<8, 8, 32>, threads(256) tile(1, 64)
        thread_tile(1, 8) launch_bounds(3) Rate::h200(6.4, 0.3, 3);
        few_rows_1x64_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_1x64_f16 (f16) Half8<F16>, F16;
        few_rows_1x64_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_1x64_f16_f32 (f16 -> f32) Half8<F16>, f32;
    "few-rows-4" AlongN<8, 4, 16>, threads(256) tile(4, 128)
        thread_tile(4, 8) launch_bounds(2) Rate::h200(24.0, 0.3, 2);
        few_rows_4_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_4_f16 (f16) Half8<F16>, F16;
        few_rows_4_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_4_f16_f32 (f16 -> f32) Half8<F16>, f32;
    "few-rows-1x32" AlongN<2, 8, 32>, threads(512) tile(1, 32)
        thread_tile(1, 2) launch_bounds(1) Rate::h200(1.6, 0.3, 1);
        few_rows_1x32_f64 (f64) Double2, f64;
    "few-rows-4x32" AlongN<2, 4, 32>, threads(512) tile(4, 32)
        thread_tile(4, 2) launch_bounds(1) Rate::h200(4.5, 0.3, 1);
        few_rows_4x32_f64 (f64) Double2, f64;
    "few-rows-1-nt" AlongK<4>, threads(256) tile(1, 32)
        thread_tile(1, 4) launch_bounds(2) Rate::h200(4.4, 0.1, 2);
        few_rows_1_nt (f32) Float4, f32;
    "few-rows-8-nt" AlongK<4>, threads(256) tile(8, 32)
        thread_tile(8, 4) launch_bounds(1) Rate::h200(15.0, 0.3, 1);
        few_rows_8_nt (f32) Float4, f32;
    "few-rows-1-nt" AlongK<4>, threads(256) tile(1, 32)
        thread_tile(1, 4) launch_bounds(2) Rate::h200(2.2, 0.1, 2);
        few_rows_1_nt_f64 (f64) Double2, f64;
    "few-rows-8-nt" AlongK<2>, threads(256) tile(8, 32)
        thread_tile(8, 4) launch_bounds(1) Rate::h200(7.5, 0.3, 1);
        few_rows_8_nt_f64 (f64) Double2, f64;
    "few-rows-8-nt" OnTensorCores<4, 4>, threads(256) tile(8, 32)
        thread_tile(2, 2) launch_bounds(2) Rate::h200(48.0, 0.3, 2);
        few_rows_8_nt_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_8_nt_f16 (f16) Half8<F16>, F16;
        few_rows_8_nt_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_8_nt_f16_f32 (f16 -> f32) Half8<F16>, f32;
}
