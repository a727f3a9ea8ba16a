//! Stream-K fix-up: `C = alpha * (segment + segment + ..) + beta * C` for each split tile, in the
//! order of k.
//!
//! It runs after a stream-K kernel ([`crate::spec::Grid::StreamK`]). It is not a rung: it
//! multiplies nothing. A tile that one CTA computed alone is in C already.
//!
//! Its time is latency, waiting for segments to arrive. So where a tile has many, `groups` of
//! threads divide them: each adds a run of them, one after the other, and then the sums of the
//! groups are added, in the order of k too:
//!
//! ```text
//!   20 segments, 4 groups:   (0 + 1 + .. + 4) + (5 + .. + 9) + (10 + .. + 14) + (15 + .. + 19)
//! ```
//!
//! Where a tile has few segments, a thread instead sums several float4s of C, and loads all of
//! them at the same time.

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::compat::{global, grid_dependency, launch_bounds, unless_published};
use crate::element::Element;
use crate::epilogue::{At, Epilogue, Identity};
use crate::float4::Float4;
use crate::gemm::{product_of_cta, Gemm};
use crate::spec::{entry, EntryPoint};
use crate::stream_k::StreamK;

unless_published! {
    /// The entry point.
    pub const FIX_UP: EntryPoint = entry!(fix_up(FixUp<f32>));

    /// The same for f64.
    pub const FIX_UP_F64: EntryPoint = entry!(fix_up_f64(FixUp<f64, f64>));
}

/// Threads of a block.
pub const THREADS: usize = 128;

/// Float4s that a thread loads before it adds them, of several segments or of several places in C.
pub const AT_ONCE: usize = 8;

/// Float4s of C that a thread sums where one group is enough. One: 30 us, four: 14, eight: 14 (232
/// tiles of 128 x 128, H200).
const FLOAT4S: usize = 4;

/// The most segments for which one group is enough: at 11 it is faster than two (4.7 against 5.2
/// us, H200), at 16 slower (4.9 against 3.2).
const MAX_SEGMENTS_OF_ONE_GROUP: usize = 12;

/// The most groups: each still reads 128 bytes in a row.
const MAX_GROUPS: usize = 16;

/// The groups of threads for tiles of this number of elements, split into `max_segments` at most:
/// as many as would be idle otherwise, and enough that each has few segments.
pub fn groups(elements: usize, max_segments: usize) -> usize {
    let idle = 4 * THREADS / elements;
    let needed = match max_segments <= MAX_SEGMENTS_OF_ONE_GROUP {
        true => 1,
        false => max_segments.div_ceil(AT_ONCE),
    };
    idle.max(needed).next_power_of_two().min(MAX_GROUPS)
}

/// Elements of a tile that a block sums.
pub const fn elements_of_block(groups: usize) -> usize {
    match groups {
        1 => 4 * THREADS * FLOAT4S,
        _ => 4 * THREADS / groups,
    }
}

/// The argument block: the product without A and B; the tile, `ctas` and `data_parallel_waves` of
/// the launch before, in which each CTA had a k-iteration of the stream-K tiles at least; and
/// [`groups`]. `T` holds an element of C, `S` a partial sum.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FixUp<T, S = f32, E = Identity> {
    pub gemm: Gemm<'static, (), T, S, E>,
    pub tile_m: usize,
    pub tile_n: usize,
    pub tile_k: usize,
    pub ctas: usize,
    pub data_parallel_waves: usize,
    pub groups: usize,
}

impl<T, S: Sum, E: Epilogue<S>> FixUp<T, S, E> {
    /// The work of a block, which adds to C.
    ///
    /// # Safety
    ///
    /// As for [`fix_up`].
    #[inline(always)]
    pub(crate) unsafe fn run(self, c: &impl Sink<Sum = S>) {
        let tile = (self.tile_m, self.tile_n, self.tile_k);
        let size = (self.gemm.m, self.gemm.n, self.gemm.depth());
        let stream_k = StreamK::new(size, tile, self.ctas, self.data_parallel_waves);
        match self.groups {
            1 => self.reduce::<FLOAT4S>(c, &stream_k, 1),
            groups => self.reduce::<1>(c, &stream_k, groups),
        }
    }

    /// The same. Each thread sums FLOAT4S float4s of C, one in each of as many equal bands of the
    /// tile's rows; more than one only where there is one group.
    #[inline(always)]
    unsafe fn reduce<const FLOAT4S: usize>(
        &self,
        c: &impl Sink<Sum = S>,
        stream_k: &StreamK,
        groups: usize,
    ) {
        const { assert!(AT_ONCE.is_multiple_of(FLOAT4S), "loads split evenly") }
        let Gemm { m, n, partials, .. } = self.gemm;
        let (tile_m, tile_n) = (self.tile_m, self.tile_n);
        let tile = thread::block_idx_y() as usize;
        let first = stream_k.cta_of(tile * stream_k.k_iterations);
        let last = stream_k.cta_of((tile + 1) * stream_k.k_iterations - 1);

        let thread = thread::thread_idx_x() as usize;
        // Divisions in 32 bits take fewer instructions.
        let lanes = (THREADS as u32 / groups as u32) as usize;
        let group = (thread as u32 / lanes as u32) as usize;
        let lane = thread - group * lanes;
        let (tile_row, tile_col) = stream_k.tile_position(stream_k.first_stream_k_tile() + tile);
        let element = 4 * (thread::block_idx_x() as usize * lanes + lane);
        let row_of_tile = (element as u32 / tile_n as u32) as usize;
        let band = tile_m / FLOAT4S;
        let row = tile_row * tile_m + row_of_tile;
        let col = tile_col * tile_n + element - row_of_tile * tile_n;
        let in_bounds = |i: usize| row_of_tile < band && row + i * band < m && col < n;

        // Only the work of the first CTA can begin in an earlier tile: each has a k-iteration at
        // least.
        let segments = last - first + 1;
        let began_before = stream_k.first_iteration(first) < tile * stream_k.k_iterations;
        grid_dependency::wait(); // for the partial sums
        if first == last {
            return;
        }
        let segment = |i: usize| {
            let workspace_tile = 2 * (first + i) + (i == 0 && began_before) as usize;
            partials.add(workspace_tile * tile_m * tile_n + element)
        };
        let of_group = (segments as u32).div_ceil(groups as u32) as usize;
        let mut next = group * of_group;
        let end = if next + of_group < segments {
            next + of_group
        } else {
            segments
        };
        let mut sums = [[S::ZERO; 4]; FLOAT4S];
        while in_bounds(0) && next < end {
            let mut loaded = [[[S::ZERO; 4]; FLOAT4S]; AT_ONCE];
            for i in 0..AT_ONCE / FLOAT4S {
                if next + i < end {
                    let segment = segment(next + i);
                    for j in 0..FLOAT4S {
                        let readable = if in_bounds(j) { j } else { 0 };
                        loaded[i][j] = S::load4(segment.add(readable * band * tile_n));
                    }
                }
            }
            for i in 0..AT_ONCE / FLOAT4S {
                for j in 0..FLOAT4S {
                    for lane in 0..4 {
                        sums[j][lane] = sums[j][lane].plus(loaded[i][j][lane]);
                    }
                }
            }
            next += AT_ONCE / FLOAT4S;
        }

        if groups > 1 {
            // (groups, lanes, 4), of f64 so that either type of sums fits
            let group_sums = shared_array![f64; 4 * THREADS].cast::<S>();
            Float4(sums[0]).write(group_sums.add(4 * thread));
            thread::sync_threads(); // the sums of all groups are there
            if group > 0 {
                return;
            }
            for group in 1..groups {
                let float4 = Float4::read(group_sums.add(4 * (group * lanes + lane)));
                for i in 0..4 {
                    sums[0][i] = sums[0][i].plus(float4.0[i]);
                }
            }
        }
        for i in 0..FLOAT4S {
            if in_bounds(i) {
                update4(&self.gemm, c, (row + i * band, col), Float4(sums[i]));
            }
        }
    }
}

/// A launch has a block along x for each [`elements_of_block`] of a tile, and one along y for each
/// stream-K tile.
///
/// # Safety
///
/// `c` is valid for reads and writes of `(m - 1) * ldc + n` elements that nothing else touches,
/// `partials` is as the kernel before left it, the launch has the shape above, and `groups` is a
/// power of two and no more than [`THREADS`].
#[cfg(any(not(cuda_device), feature = "entry-points"))]
#[kernel]
pub unsafe fn fix_up(block: FixUp<f32>) {
    block.run_fp32();
}

impl<E: Epilogue> FixUp<f32, f32, E> {
    /// The work of a block, which adds to a C of f32.
    ///
    /// # Safety
    ///
    /// As for [`fix_up`].
    #[inline(always)]
    pub unsafe fn run_fp32(self) {
        launch_bounds::<{ THREADS as u32 }, 1>();
        self.run(&self.gemm.with_c_of_cta());
    }
}

/// [`fix_up`] of f64.
///
/// # Safety
///
/// As for [`fix_up`].
#[cfg(any(not(cuda_device), feature = "entry-points"))]
#[kernel]
pub unsafe fn fix_up_f64(block: FixUp<f64, f64>) {
    launch_bounds::<{ THREADS as u32 }, 1>();
    block.run(&block.gemm.with_c_of_cta());
}

/// A partial sum.
pub trait Sum: Element {
    /// Loads four from global memory.
    ///
    /// # Safety
    ///
    /// `source` is a multiple of 16 bytes, and valid for reading four sums.
    unsafe fn load4(source: *const Self) -> [Self; 4];
}

impl Sum for f32 {
    #[inline(always)]
    unsafe fn load4(source: *const f32) -> [f32; 4] {
        global::load4(source)
    }
}

impl Sum for f64 {
    #[inline(always)]
    unsafe fn load4(source: *const f64) -> [f64; 4] {
        Float4::read(source).0
    }
}

/// What the sums belong to.
pub(crate) trait Sink {
    type Sum: Sum;

    /// `C[row][col..col + 4] = alpha * sums + beta * C[row][col..col + 4]`, as many of the four as
    /// the row has.
    ///
    /// # Safety
    ///
    /// `row` is one of C's, and no other thread touches these elements.
    unsafe fn update4(&self, row: usize, col: usize, sums: Float4<Self::Sum>);

    /// The same for the element of C at an index, which is that of this row and column.
    ///
    /// # Safety
    ///
    /// C has the element, and no other thread touches it.
    unsafe fn update_at(&self, index: usize, place: (usize, usize), sum: Self::Sum);
}

/// [`Sink::update4`] of a C whose columns may be apart ([`Gemm::column_stride`]).
///
/// # Safety
///
/// As for [`Sink::update4`], and `c` is the C of `gemm`.
#[inline(always)]
pub(crate) unsafe fn update4<T, C, S: Sum, E: Epilogue<S>>(
    gemm: &Gemm<'_, T, C, S, E>,
    c: &impl Sink<Sum = S>,
    (row, col): (usize, usize),
    sums: Float4<S>,
) {
    // Rows of a C that is stored transposed are closer to each other than they are long.
    let is_transposed = gemm.ldc < gemm.n && !E::IS_IDENTITY;
    if gemm.column_stride == 1 && !is_transposed {
        return c.update4(row, col, sums);
    }
    for i in 0..4 {
        if col + i < gemm.n {
            let index = row * gemm.ldc + (col + i) * gemm.column_stride;
            c.update_at(index, (col + i, row), sums.0[i]);
        }
    }
}

impl<T, E: Epilogue> Sink for Gemm<'_, T, f32, f32, E> {
    type Sum = f32;

    #[inline(always)]
    unsafe fn update4(&self, row: usize, col: usize, sums: Float4) {
        if self.c_is_float4_aligned() && col + 4 <= self.n {
            Gemm::update4::<false>(self, row, col, sums);
        } else {
            Gemm::update4::<true>(self, row, col, sums);
        }
    }

    #[inline(always)]
    unsafe fn update_at(&self, index: usize, (row, col): (usize, usize), sum: f32) {
        self.update_element(index, At::one(product_of_cta(), row, col), sum);
    }
}

impl<T, E: Epilogue<f64>> Sink for Gemm<'_, T, f64, f64, E> {
    type Sum = f64;

    #[inline(always)]
    unsafe fn update4(&self, row: usize, col: usize, sums: Float4<f64>) {
        for i in 0..4 {
            self.update(row, col + i, sums.0[i]);
        }
    }

    #[inline(always)]
    unsafe fn update_at(&self, index: usize, (row, col): (usize, usize), sum: f64) {
        self.update_element(index, At::one(product_of_cta(), row, col), sum);
    }
}
