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

    /// Of `tiles` by the `resident` blocks that a GPU holds at once: whole tiles as long as there is one for each block, and what is left
    /// over is shared. (Sharing the last full wave as well was 0.5 % slower at 4096 on an H200; sharing 256 tiles among 264 blocks 6 %.)
    pub fn even(tiles: usize, resident: u32) -> Sharing {
        let resident = resident.max(1);
        let whole_waves = tiles / resident as usize;
        let nearly_a_wave = tiles > resident as usize - resident as usize / 8;
        if whole_waves == 0 && nearly_a_wave {
            return Sharing::NONE;
        }
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
        let mut whole_waves = (self.whole_waves as usize).clamp(fewest, most_waves);
        // `fix_up` wants a step at least for each stream, where any are shared.
        let shared = (work.tiles - streams * whole_waves).saturating_mul(work.steps);
        if 0 < shared && shared < streams {
            whole_waves = whole_waves.saturating_sub(1);
        }
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

/// Tiles of a C of this shape.
pub(crate) fn tiles(shape: Shape, tile: Tile) -> usize {
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize);
    tiles(shape.m, tile.m).saturating_mul(tiles(shape.n, tile.n))
}

/// Tiles, and the steps of each.
struct Work {
    tiles: usize,
    steps: usize,
}

impl Work {
    fn new(shape: Shape, tile: Tile) -> Work {
        Work {
            tiles: tiles(shape, tile),
            steps: Sharing::NONE.of(shape, tile).steps,
        }
    }
}

/// Whether any tile is computed by several blocks.
pub(super) fn splits(streams: &Streams) -> bool {
    let inside = |block| !streams.first_step(block).is_multiple_of(streams.steps);
    streams.shared() > 0 && (1..streams.streams).any(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: Tile = Tile {
        m: 128,
        n: 128,
        k: 8,
    };

    fn shape(tiles_m: usize, tiles_n: usize, steps: usize) -> Shape {
        Shape {
            m: 128 * tiles_m,
            n: 128 * tiles_n,
            k: 8 * steps,
        }
    }

    /// Streams, whole waves, and whether tiles are split.
    fn limited(sharing: Sharing, shape: Shape) -> (u32, u32, bool) {
        let sharing = sharing.limited(shape, TILE);
        let split = splits(&sharing.of(shape, TILE));
        (sharing.streams, sharing.whole_waves, split)
    }

    #[test]
    fn an_even_sharing_splits_only_what_does_not_fill_the_last_wave() {
        // 1024 tiles on 264 blocks: 3 whole waves, and 232 tiles for 264 blocks.
        let even = |tiles_m, tiles_n, steps| {
            let sharing = Sharing::even(tiles_m * tiles_n, 264);
            limited(sharing, shape(tiles_m, tiles_n, steps))
        };
        assert_eq!(even(32, 32, 512), (264, 3, true));
        assert_eq!(even(33, 16, 512), (264, 2, false));
        assert_eq!(even(33, 8, 512), (264, 1, false));
        // 256 tiles for 264 blocks are nearly a wave.
        assert_eq!(even(16, 16, 512), (256, 0, false));
        assert_eq!(even(8, 8, 128), (264, 0, true));
        // 132 tiles: two blocks each.
        assert_eq!(even(11, 12, 2), (264, 0, true));
        assert_eq!(even(11, 12, 1), (132, 0, false));
    }

    #[test]
    fn without_sharing_there_is_a_block_for_each_tile() {
        assert_eq!(limited(Sharing::NONE, shape(3, 5, 7)), (15, 0, false));
        assert_eq!(limited(Sharing::NONE, shape(3, 5, 0)), (15, 0, false));
    }

    #[test]
    fn there_are_never_more_streams_than_steps_nor_more_waves_than_tiles() {
        let many = Sharing {
            streams: 1000,
            whole_waves: 1000,
        };
        assert_eq!(limited(many, shape(2, 3, 10)), (60, 0, true));
        assert_eq!(limited(many, shape(50, 50, 10)), (1000, 2, true));
        // Sums without products are one step, in which C is scaled.
        assert_eq!(limited(many, shape(2, 3, 0)), (6, 1, false));
    }

    #[test]
    fn each_stream_gets_a_step_or_none_does() {
        let sharing = |streams, whole_waves| Sharing {
            streams,
            whole_waves,
        };
        // 2 tiles of 3 steps are left over: not enough for 10 streams.
        assert_eq!(limited(sharing(10, 1), shape(3, 4, 3)), (10, 0, true));
        assert_eq!(limited(sharing(10, 1), shape(3, 4, 5)), (10, 1, true));
        assert_eq!(limited(sharing(6, 2), shape(3, 4, 3)), (6, 2, false));
        for streams in 1..40 {
            for whole_waves in 0..4 {
                for steps in 0..5 {
                    let shape = shape(3, 4, steps);
                    let limited = sharing(streams, whole_waves).limited(shape, TILE);
                    let of = limited.of(shape, TILE);
                    let shared = of.shared() * of.steps;
                    assert!(shared == 0 || shared >= of.streams, "{limited:?}");
                }
            }
        }
    }

    #[test]
    fn a_row_of_blocks_of_a_grid_is_enough_for_the_shared_tiles() {
        let few = Sharing {
            streams: 5,
            whole_waves: 0,
        };
        let (streams, waves, _) = limited(few, shape(300, 300, 2));
        assert!(90_000 - (streams * waves) as usize <= MOST_Y);
        // 5 x 65534 whole tiles, and too many for 5 blocks.
        assert_eq!(limited(few, shape(1000, 1000, 2)), (1_000_000, 0, false));
    }
}
