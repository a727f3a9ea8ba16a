//! How the blocks of a kernel that streams share the tiles of C.

/// Blocks that a grid may have along x and y.
const MOST_X: usize = i32::MAX as usize;
const MOST_WAVES: usize = 65_534;

/// A grid of `count x (whole_waves + 1)` blocks. In the first `whole_waves` rows each block computes a tile of its own; those of the
/// last row share the steps of the remaining tiles evenly, and may begin and end in the middle of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// Blocks of a row: as many as the GPU holds at once, so that none waits for another.
    pub count: u32,
    /// Rows of whole tiles.
    pub whole_waves: u32,
}

impl Streams {
    /// Each block a tile: nothing is split, whatever remains of the last wave.
    pub const UNSHARED: Streams = Streams {
        count: u32::MAX,
        whole_waves: 1,
    };

    /// For `resident` blocks at once: whole tiles as long as more than two remain for each block, and what remains is shared.
    pub fn shared(tiles: usize, resident: u32) -> Streams {
        let resident = resident.max(1);
        let waves = tiles / resident as usize;
        let whole_waves = match tiles.is_multiple_of(resident as usize) {
            true => waves,
            // The last whole wave and what is left over are shared, so that each block has a tile's steps or more.
            false => waves.saturating_sub(1),
        };
        Streams {
            count: resident,
            whole_waves: whole_waves.min(MOST_WAVES) as u32,
        }
    }

    /// As far as there is work for it: `tiles` (one at least) of `steps` each. Where there are no steps, a block a tile, since
    /// C is to be scaled in any case.
    pub(super) fn for_work(self, tiles: usize, steps: usize) -> Streams {
        let one_each = tiles.min(MOST_X) as u32;
        if steps == 0 {
            return Streams {
                count: one_each,
                whole_waves: 1,
            };
        }
        if self == Streams::UNSHARED {
            return Streams {
                count: one_each,
                whole_waves: 0,
            };
        }
        let most = tiles.saturating_mul(steps).min(MOST_X);
        let count = (self.count as usize).clamp(1, most);
        let whole_waves = (self.whole_waves as usize)
            .min(tiles / count)
            .min(MOST_WAVES);
        Streams {
            count: count as u32,
            whole_waves: whole_waves as u32,
        }
    }

    /// Tiles whose steps the last row of blocks shares.
    pub fn shared_tiles(self, tiles: usize) -> usize {
        tiles.saturating_sub(self.count as usize * self.whole_waves as usize)
    }

    /// Whether any of `tiles` of `steps` each is computed by several blocks.
    pub(super) fn split(self, tiles: usize, steps: usize) -> bool {
        let (steps, count) = (steps as u128, u128::from(self.count));
        let shared = self.shared_tiles(tiles) as u128 * steps;
        shared > 0 && (1..count).any(|block| !(block * shared / count).is_multiple_of(steps))
    }
}
