//! Stream-K: how the CTAs of a launch divide the work (Osama et al., PPoPP 2023).
//!
//! A product takes `tiles * k_iterations` k-iterations: each tile of C takes K / BK of them,
//! rounded up. A GPU runs G CTAs at once. If each took a tile, the last wave would seldom have G
//! tiles, and a small C would not even fill one wave. So CTAs take one tile each in all full
//! waves, the data-parallel ones, and divide the k-iterations of the other tiles evenly, across
//! tiles:
//!
//! ```text
//!   G = 4, 11 tiles of 8 k-iterations: one data-parallel wave, and 56 k-iterations for 4 CTAs
//!
//!   CTA        0        1        2        3
//!   y = 0   tile 0   tile 1   tile 2   tile 3
//!   y = 1   [4   5.......][5 6...7][..7 8....][9    10   ]      14 k-iterations each
//! ```
//!
//! A tile may thus be split into segments: each of its CTAs stores partial sums in the workspace,
//! and `fix_up` adds them in the order of k. The division depends only on the sizes, G and W, so
//! that results are bit-identical from run to run.

use cuda_std::prelude::*;

use crate::raster::{self, Place};

/// The work of a launch, and how its CTAs divide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamK {
    /// Tiles of C along M and along N.
    pub tile_rows: usize,
    pub tile_cols: usize,
    /// The k-iterations of a tile: at least one.
    pub k_iterations: usize,
    /// G: the CTAs that divide the tiles after the data-parallel waves.
    pub ctas: usize,
    /// W: the waves in which each CTA takes one tile.
    pub data_parallel_waves: usize,
}

/// The work of a CTA: k-iterations `begin .. end`, counted from the first one of `first_tile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CtaWork {
    pub first_tile: usize,
    pub begin: usize,
    pub end: usize,
}

/// K-iterations `from .. to` of one tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub tile: usize,
    pub from: usize,
    pub to: usize,
}

impl StreamK {
    /// Divides a C of `m x n`, with depth `depth`, into tiles of `tile = (m, n, k)`.
    #[inline(always)]
    pub fn new(
        (m, n, depth): (usize, usize, usize),
        tile: (usize, usize, usize),
        ctas: usize,
        data_parallel_waves: usize,
    ) -> StreamK {
        let k_iterations = depth.div_ceil(tile.2);
        StreamK {
            tile_rows: m.div_ceil(tile.0),
            tile_cols: n.div_ceil(tile.1),
            k_iterations: if k_iterations == 0 { 1 } else { k_iterations },
            ctas,
            data_parallel_waves,
        }
    }

    /// The work of the calling thread's launch, divided among its grid, and the work of its CTA.
    #[inline(always)]
    pub fn of_launch(
        size: (usize, usize, usize),
        tile: (usize, usize, usize),
    ) -> (StreamK, CtaWork) {
        let (block_x, block_y) = (
            thread::block_idx_x() as usize,
            thread::block_idx_y() as usize,
        );
        let stream_k = StreamK::new(
            size,
            tile,
            thread::grid_dim_x() as usize,
            thread::grid_dim_y() as usize - 1,
        );
        (stream_k, stream_k.work(block_x, block_y))
    }

    /// The first tile after the data-parallel waves.
    #[inline(always)]
    pub fn first_stream_k_tile(&self) -> usize {
        self.data_parallel_waves * self.ctas
    }

    /// The number of tiles after the data-parallel waves, which the CTAs divide.
    #[inline(always)]
    pub fn stream_k_tiles(&self) -> usize {
        // The last wave of persistent CTAs may have fewer tiles than CTAs.
        (self.tile_rows * self.tile_cols).saturating_sub(self.first_stream_k_tile())
    }

    /// The first k-iteration of `cta`, counted from the first of the stream-K tiles; the next
    /// CTA's first is one after its last.
    #[inline(always)]
    pub fn first_iteration(&self, cta: usize) -> usize {
        cta * (self.stream_k_tiles() * self.k_iterations) / self.ctas
    }

    /// The CTA of a k-iteration, counted from the first of the stream-K tiles.
    #[inline(always)]
    pub fn cta_of(&self, iteration: usize) -> usize {
        ((iteration + 1) * self.ctas - 1) / (self.stream_k_tiles() * self.k_iterations)
    }

    /// The most segments that a stream-K tile is split into.
    ///
    /// # Panics
    ///
    /// If there are no stream-K tiles.
    pub fn max_segments(&self) -> usize {
        let segments = self.ctas.div_ceil(self.stream_k_tiles());
        // If CTAs do not begin at multiples of a tile, there is one more.
        match self.ctas % self.stream_k_tiles() {
            0 => segments,
            _ => segments + 1,
        }
    }

    /// The work of block `(x, y)` of the launch.
    #[inline(always)]
    pub fn work(&self, x: usize, y: usize) -> CtaWork {
        if y < self.data_parallel_waves {
            CtaWork {
                first_tile: y * self.ctas + x,
                begin: 0,
                end: self.k_iterations,
            }
        } else {
            CtaWork {
                first_tile: self.first_stream_k_tile(),
                begin: self.first_iteration(x),
                end: self.first_iteration(x + 1),
            }
        }
    }

    /// The first segment of `work`.
    #[inline(always)]
    pub fn segment(&self, work: CtaWork) -> Segment {
        let tile = work.begin / self.k_iterations;
        let from = work.begin - tile * self.k_iterations;
        let remaining = work.end - work.begin;
        Segment {
            tile: work.first_tile + tile,
            from,
            to: if remaining < self.k_iterations - from {
                from + remaining
            } else {
                self.k_iterations
            },
        }
    }

    /// Whether a segment has all k-iterations of its tile.
    #[inline(always)]
    pub fn covers_tile(&self, segment: Segment) -> bool {
        segment.from == 0 && segment.to == self.k_iterations
    }

    /// Row and column of a tile among the tiles of C.
    #[inline(always)]
    pub fn tile_position(&self, tile: usize) -> (usize, usize) {
        raster::tile_position(tile, self.tile_rows, self.tile_cols)
    }
}

/// The arguments of a launch of persistent CTAs, besides the grid of G CTAs along x.
#[derive(Clone, Copy)]
pub struct Division {
    /// The workspace for the sums of segments: 2 * G block tiles.
    pub partials: *mut f32,
    /// W. The last wave may have fewer tiles than CTAs: then no tile is split.
    pub data_parallel_waves: usize,
    /// The number of products in the batch: if there are several, no tile is split.
    pub products: usize,
}

/// The segments of a persistent CTA: a tile of each data-parallel wave, and its part of the other
/// tiles.
pub struct Segments {
    pub stream_k: StreamK,
    products: usize,
    tile_elements: usize,
    partials: *mut f32,
    cta: usize,
}

impl Segments {
    /// The segments of the calling thread's CTA.
    #[inline(always)]
    pub fn of_launch(
        size: (usize, usize, usize),
        tile: (usize, usize, usize),
        division: Division,
    ) -> Segments {
        let ctas = thread::grid_dim_x() as usize;
        Segments {
            stream_k: StreamK::new(size, tile, ctas, division.data_parallel_waves),
            products: division.products,
            tile_elements: tile.0 * tile.1,
            partials: division.partials,
            cta: thread::block_idx_x() as usize,
        }
    }

    /// Whether tiles are divided, or no CTA has several.
    #[inline(always)]
    pub fn are_few(&self) -> bool {
        self.stream_k.data_parallel_waves < 2 || self.stream_k.stream_k_tiles() > 0
    }

    /// The segment at `index`, if there is one. No state is kept between calls: registers are
    /// needed for sums.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<Segment> {
        let stream_k = self.stream_k;
        let (waves, k_iterations) = (stream_k.data_parallel_waves, stream_k.k_iterations);
        if index < waves {
            let tile = index * stream_k.ctas + self.cta;
            let is_tile = tile < self.products * stream_k.tile_rows * stream_k.tile_cols;
            return is_tile.then_some(Segment {
                tile,
                from: 0,
                to: k_iterations,
            });
        }
        let work = stream_k.work(self.cta, waves);
        let tile = work.begin / k_iterations + (index - waves);
        let first = tile * k_iterations;
        let from = if index == waves {
            work.begin - first
        } else {
            0
        };
        if first + from >= work.end {
            return None;
        }
        Some(Segment {
            tile: work.first_tile + tile,
            from,
            to: if work.end - first < k_iterations {
                work.end - first
            } else {
                k_iterations
            },
        })
    }

    /// The place of a segment's tile.
    #[inline(always)]
    pub fn place(&self, segment: Segment) -> Place {
        raster::place(
            segment.tile,
            self.stream_k.tile_rows,
            self.stream_k.tile_cols,
        )
    }

    /// The workspace for the sums of the segment at `index`, if it is a part of a tile, as only
    /// the first and the last can be.
    #[inline(always)]
    pub fn partial(&self, index: usize) -> *mut f32 {
        let is_last = index > self.stream_k.data_parallel_waves;
        let tile = 2 * self.cta + is_last as usize;
        self.partials.wrapping_add(tile * self.tile_elements)
    }
}
