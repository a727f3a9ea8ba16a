//! How the blocks of a kernel that streams share the tiles of C ([`gpu_kernels::streams`]).

use gpu_kernels::spec::Tile;
use gpu_kernels::streams::Streams;

use crate::device::launch::{MOST_BLOCKS_X, MOST_BLOCKS_Y};
use crate::problem::Shape;

const MOST_X: usize = MOST_BLOCKS_X as usize;
const MOST_Y: usize = MOST_BLOCKS_Y as usize;

/// A grid of `streams x (whole_waves + 1)` blocks. In the first `whole_waves` rows each block computes a tile of its own; those of the
/// last row share the steps of the remaining tiles evenly, and may begin and end in the middle of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Blocks of a row: best as many as the GPU holds at once, so that none waits for another.
    pub streams: u32,
    /// Rows of whole tiles.
    pub whole_waves: u32,
}

impl Sharing {
    /// Each block a tile: nothing is split, however full the last wave is.
    pub const NONE: Sharing = Sharing {
        streams: u32::MAX,
        whole_waves: 0,
    };

    /// Of `tiles` by the `resident` blocks that a GPU holds at once: whole tiles first. The tiles of the last full wave and those that
    /// are left over are shared, so that each block has a tile's steps or more of them.
    pub fn even(tiles: usize, resident: u32) -> Sharing {
        let resident = resident.max(1);
        let whole_waves = (tiles / resident as usize).saturating_sub(1);
        Sharing {
            streams: resident,
            whole_waves: whole_waves.min(MOST_Y - 1) as u32,
        }
    }

    /// As far as there is work for it in a product of this shape, which has a C, and as far as grids go.
    pub(super) fn limited(self, shape: Shape, tile: Tile) -> Sharing {
        let work = Work::new(shape, tile);
        let one_each = Sharing {
            streams: work.tiles.min(MOST_X) as u32,
            whole_waves: 0,
        };
        if self == Sharing::NONE {
            return one_each;
        }
        let most = work.tiles.saturating_mul(work.steps).min(MOST_X);
        let streams = (self.streams as usize).clamp(1, most);
        // Each shared tile may take a row of blocks of another grid.
        let fewest = work.tiles.saturating_sub(MOST_Y).div_ceil(streams);
        let most_waves = (work.tiles / streams).min(MOST_Y - 1);
        if fewest > most_waves {
            return one_each;
        }
        let whole_waves = (self.whole_waves as usize).clamp(fewest, most_waves);
        Sharing {
            streams: streams as u32,
            whole_waves: whole_waves as u32,
        }
    }

    /// The kernel's own view of it.
    pub fn of(self, shape: Shape, tile: Tile) -> Streams {
        Streams::new(
            (shape.m, shape.n, shape.k),
            (tile.m as usize, tile.n as usize, tile.k as usize),
            self.streams as usize,
            self.whole_waves as usize,
        )
    }
}

/// Tiles, and the steps of each.
struct Work {
    tiles: usize,
    steps: usize,
}

impl Work {
    fn new(shape: Shape, tile: Tile) -> Work {
        let streams = Sharing::NONE.of(shape, tile);
        Work {
            tiles: streams.tile_rows.saturating_mul(streams.tile_cols),
            steps: streams.steps,
        }
    }
}

/// Whether any tile is computed by several blocks.
pub(super) fn splits(streams: &Streams) -> bool {
    let inside = |block| !streams.first_step(block).is_multiple_of(streams.steps);
    streams.shared() > 0 && (1..streams.streams).any(inside)
}
