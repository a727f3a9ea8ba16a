//! How the blocks of a launch share the work: "stream-K" (Osama et al., PPoPP 2023).
//!
//! A product is `tiles * steps` steps: each tile of C takes as many as its sums are tiles deep. A GPU runs G blocks at a time; handed out
//! tile by tile, the last round seldom has G tiles, and a small C has not even one round. So whole rounds are handed
//! out tile by tile, and the steps of what remains evenly, whatever tile they belong to:
//!
//! ```text
//!   G = 4, 11 tiles of 8 steps: one round, and 56 steps for 4 blocks
//!
//!   block      0        1        2        3
//!   y = 0   tile 0   tile 1   tile 2   tile 3
//!   y = 1   [4   5.......][5 6...7][..7 8....][9    10   ]      14 steps each
//! ```
//!
//! A tile that ends up in the hands of several blocks is split: each leaves its partial sums, and `fix_up` adds them in the order
//! of k. Who gets what depends on the sizes, G and W alone, so that results are the same, bit for bit, from run to run.

use cuda_std::prelude::*;

use crate::raster;

/// The work of a launch, and how it is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// Tiles of C along its rows and along its columns.
    pub tile_rows: usize,
    pub tile_cols: usize,
    /// Steps of a tile: at least one.
    pub steps: usize,
    /// Blocks that share what is not handed out tile by tile.
    pub streams: usize,
    /// Rounds of `streams` tiles that are handed out tile by tile.
    pub whole_waves: usize,
}

/// What a block has to do: steps `begin .. end`, counted from the first step of `first_tile` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub first_tile: usize,
    pub begin: usize,
    pub end: usize,
}

/// Consecutive steps of one tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub tile: usize,
    /// The first step, and the one after the last.
    pub from: usize,
    pub to: usize,
}

impl Streams {
    /// Of a C of `m x n` in tiles of `tile = (m, n, k)`, with sums of `depth` products.
    #[inline(always)]
    pub fn new(
        (m, n, depth): (usize, usize, usize),
        tile: (usize, usize, usize),
        streams: usize,
        whole_waves: usize,
    ) -> Streams {
        let steps = depth.div_ceil(tile.2);
        Streams {
            tile_rows: m.div_ceil(tile.0),
            tile_cols: n.div_ceil(tile.1),
            steps: if steps == 0 { 1 } else { steps },
            streams,
            whole_waves,
        }
    }

    /// The work of the launch that the calling thread belongs to, whose grid says how it is shared, and what this block has to do.
    #[inline(always)]
    pub fn of_launch(size: (usize, usize, usize), tile: (usize, usize, usize)) -> (Streams, Share) {
        let (block_x, block_y) = (
            thread::block_idx_x() as usize,
            thread::block_idx_y() as usize,
        );
        let streams = Streams::new(
            size,
            tile,
            thread::grid_dim_x() as usize,
            thread::grid_dim_y() as usize - 1,
        );
        (streams, streams.share(block_x, block_y))
    }

    /// The first tile that is not handed out whole.
    #[inline(always)]
    pub fn first_shared(&self) -> usize {
        self.whole_waves * self.streams
    }

    /// Tiles that are not handed out whole.
    #[inline(always)]
    pub fn shared(&self) -> usize {
        self.tile_rows * self.tile_cols - self.first_shared()
    }

    /// The first of the shared steps that `block` gets; its last is the one before the next block's first.
    #[inline(always)]
    pub fn first_step(&self, block: usize) -> usize {
        block * (self.shared() * self.steps) / self.streams
    }

    /// The block that gets a shared step.
    #[inline(always)]
    pub fn block_of(&self, step: usize) -> usize {
        ((step + 1) * self.streams - 1) / (self.shared() * self.steps)
    }

    /// Parts that a shared tile is cut into at most; there are some.
    pub fn most_parts(&self) -> usize {
        let parts = self.streams.div_ceil(self.shared());
        // Where cuts are no multiples of tiles, there is a part more.
        match self.streams % self.shared() {
            0 => parts,
            _ => parts + 1,
        }
    }

    /// What block `(x, y)` of the launch has to do.
    #[inline(always)]
    pub fn share(&self, x: usize, y: usize) -> Share {
        if y < self.whole_waves {
            Share {
                first_tile: y * self.streams + x,
                begin: 0,
                end: self.steps,
            }
        } else {
            Share {
                first_tile: self.first_shared(),
                begin: self.first_step(x),
                end: self.first_step(x + 1),
            }
        }
    }

    /// What comes first in a share.
    #[inline(always)]
    pub fn part(&self, share: Share) -> Part {
        let tile = share.begin / self.steps;
        let from = share.begin - tile * self.steps;
        let left = share.end - share.begin;
        Part {
            tile: share.first_tile + tile,
            from,
            to: if left < self.steps - from {
                from + left
            } else {
                self.steps
            },
        }
    }

    /// Whether a part is all of its tile.
    #[inline(always)]
    pub fn is_whole(&self, part: Part) -> bool {
        part.from == 0 && part.to == self.steps
    }

    /// Row and column of a tile among the tiles of C.
    #[inline(always)]
    pub fn place(&self, tile: usize) -> (usize, usize) {
        raster::place(tile, self.tile_rows, self.tile_cols)
    }
}
