//! How the CTAs of a stream-K kernel divide the tiles of C among themselves
//! ([`gpu_kernels::stream_k`]).

use gpu_kernels::spec::Tile;
use gpu_kernels::stream_k::StreamK;

use super::bands::{MOST_CTAS_X, MOST_CTAS_Y};
use crate::call::Shape;

const MOST_X: usize = MOST_CTAS_X as usize;
const MOST_Y: usize = MOST_CTAS_Y as usize;

/// A grid of `ctas x (data_parallel_waves + 1)`. In the first `data_parallel_waves` rows of the
/// grid each CTA computes a tile of its own. The CTAs of the last row divide the k-iterations of
/// the remaining tiles evenly, and may begin and end in the middle of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decomposition {
    /// The CTAs in a row of the grid: ideally as many as the GPU holds at once, so that none
    /// waits for another.
    pub ctas: u32,
    pub data_parallel_waves: u32,
}

impl Decomposition {
    /// One CTA per tile: no tile is split, however full the last wave is.
    pub const DATA_PARALLEL: Decomposition = Decomposition::stream_k(u32::MAX);

    /// All tiles divided evenly among `ctas`, without data-parallel waves.
    pub const fn stream_k(ctas: u32) -> Decomposition {
        Decomposition {
            ctas,
            data_parallel_waves: 0,
        }
    }

    /// The decomposition of `tiles` for the `resident` CTAs that a GPU holds at once:
    /// data-parallel waves as long as there is a tile for each CTA, and stream-K for the
    /// remaining tiles. (Stream-K for the last full wave as well was 0.5 % slower at 4096 on an
    /// H200; 256 tiles on 264 CTAs 6 %.)
    pub fn even(tiles: usize, resident: u32) -> Decomposition {
        let resident = resident.max(1);
        let waves = tiles / resident as usize;
        let nearly_a_wave = tiles > resident as usize - resident as usize / 8;
        if waves == 0 && nearly_a_wave {
            return Decomposition::DATA_PARALLEL;
        }
        Decomposition {
            ctas: resident,
            data_parallel_waves: waves.min(MOST_Y - 1) as u32,
        }
    }

    /// The decomposition limited to the work in a product of this shape, whose C is not empty,
    /// and to the maximum grid.
    pub(crate) fn limited(self, shape: Shape, tile: Tile) -> Decomposition {
        let tiles = tiles(shape, tile);
        let one_each = Decomposition::stream_k(tiles.min(MOST_X) as u32);
        if self == Decomposition::DATA_PARALLEL {
            return one_each;
        }
        let k_iterations = self.of(shape, tile).k_iterations;
        let most = tiles.saturating_mul(k_iterations).min(MOST_X);
        let ctas = (self.ctas as usize).clamp(1, most);
        // Each remaining tile takes a row of CTAs in `fix_up`'s grid.
        let fewest = tiles.saturating_sub(MOST_Y).div_ceil(ctas);
        let most_waves = (tiles / ctas).min(MOST_Y - 1);
        if fewest > most_waves {
            return one_each;
        }
        let mut waves = (self.data_parallel_waves as usize).clamp(fewest, most_waves);
        // `fix_up` requires at least one k-iteration for each CTA if any k-iterations are
        // divided.
        let divided = (tiles - ctas * waves).saturating_mul(k_iterations);
        if 0 < divided && divided < ctas {
            waves = waves.saturating_sub(1);
        }
        Decomposition {
            ctas: ctas as u32,
            data_parallel_waves: waves as u32,
        }
    }

    /// The decomposition of `tiles` for this number of persistent CTAs: in rounds where the last
    /// has tiles for three CTAs of four at least, else with that one divided evenly.
    pub fn persistent(tiles: usize, ctas: u32) -> Decomposition {
        let ctas = ctas.max(1);
        let waves = tiles / ctas as usize;
        let rest = tiles - waves * ctas as usize;
        if rest == 0 || 4 * rest >= 3 * ctas as usize {
            return Decomposition::rounds(tiles, ctas);
        }
        Decomposition {
            ctas,
            data_parallel_waves: u32::try_from(waves).unwrap_or(u32::MAX),
        }
    }

    /// Rounds of this number of persistent CTAs, the last of which may have fewer tiles: none is
    /// split.
    pub fn rounds(tiles: usize, ctas: u32) -> Decomposition {
        let ctas = (ctas.max(1) as usize).min(tiles.max(1));
        Decomposition {
            ctas: ctas as u32,
            data_parallel_waves: u32::try_from(tiles.div_ceil(ctas)).unwrap_or(u32::MAX),
        }
    }

    /// Whether these are rounds of persistent CTAs, which take whole tiles only.
    pub(super) fn is_rounds(self, tiles: usize) -> bool {
        self == Decomposition::rounds(tiles, self.ctas)
    }

    /// The decomposition in the form that the kernel takes.
    pub fn of(self, shape: Shape, tile: Tile) -> StreamK {
        StreamK::new(
            (shape.m, shape.n, shape.k),
            (tile.m as usize, tile.n as usize, tile.k as usize),
            self.ctas as usize,
            self.data_parallel_waves as usize,
        )
    }
}

/// The number of tiles in a C of this shape.
pub fn tiles(shape: Shape, tile: Tile) -> usize {
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize);
    tiles(shape.m, tile.m).saturating_mul(tiles(shape.n, tile.n))
}

/// Whether any tile is computed by several CTAs.
pub(crate) fn splits(stream_k: &StreamK) -> bool {
    // If T tiles are not a multiple of C CTAs, then for some CTA i the fraction of i * T / C is
    // half or more: with two k-iterations it begins within a tile.
    let tiles = stream_k.stream_k_tiles();
    stream_k.k_iterations > 1 && !tiles.is_multiple_of(stream_k.ctas)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: Tile = Tile {
        m: 128,
        n: 128,
        k: 8,
    };

    fn shape(tiles_m: usize, tiles_n: usize, k_iterations: usize) -> Shape {
        Shape::new(128 * tiles_m, 128 * tiles_n, 8 * k_iterations)
    }

    /// CTAs, data-parallel waves, and whether tiles are split.
    fn limited(decomposition: Decomposition, shape: Shape) -> (u32, u32, bool) {
        let decomposition = decomposition.limited(shape, TILE);
        let split = splits(&decomposition.of(shape, TILE));
        (decomposition.ctas, decomposition.data_parallel_waves, split)
    }

    #[test]
    fn an_even_decomposition_splits_only_what_does_not_fill_the_last_wave() {
        // 1024 tiles on 264 CTAs: 3 data-parallel waves, and 232 tiles for 264 CTAs.
        let even = |tiles_m, tiles_n, k_iterations| {
            let decomposition = Decomposition::even(tiles_m * tiles_n, 264);
            limited(decomposition, shape(tiles_m, tiles_n, k_iterations))
        };
        assert_eq!(even(32, 32, 512), (264, 3, true));
        assert_eq!(even(33, 16, 512), (264, 2, false));
        assert_eq!(even(33, 8, 512), (264, 1, false));
        // 256 tiles for 264 CTAs are nearly a wave.
        assert_eq!(even(16, 16, 512), (256, 0, false));
        assert_eq!(even(8, 8, 128), (264, 0, true));
        // 132 tiles: two CTAs for each.
        assert_eq!(even(11, 12, 2), (264, 0, true));
        assert_eq!(even(11, 12, 1), (132, 0, false));
    }

    #[test]
    fn tiles_are_split_if_a_cta_begins_within_one() {
        let sizes = (1..13).flat_map(|ctas| (0..13).map(move |tiles| (ctas, tiles)));
        for ((ctas, tiles), k_iterations) in sizes.flat_map(|size| (1..7).map(move |k| (size, k))) {
            let stream_k = StreamK {
                tile_rows: 1,
                tile_cols: tiles,
                k_iterations,
                ctas,
                data_parallel_waves: 0,
            };
            let begins_within = |cta| {
                let iteration = stream_k.first_iteration(cta);
                !iteration.is_multiple_of(k_iterations)
            };
            let expected = (0..ctas).any(begins_within);
            assert_eq!(splits(&stream_k), expected, "{stream_k:?}");
        }
    }

    #[test]
    fn data_parallel_is_a_cta_for_each_tile() {
        for k_iterations in [7, 0] {
            let shape = shape(3, 5, k_iterations);
            assert_eq!(limited(Decomposition::DATA_PARALLEL, shape), (15, 0, false));
        }
    }

    #[test]
    fn there_are_never_more_ctas_than_k_iterations_nor_more_waves_than_tiles() {
        let many = Decomposition {
            ctas: 1000,
            data_parallel_waves: 1000,
        };
        assert_eq!(limited(many, shape(2, 3, 10)), (60, 0, true));
        assert_eq!(limited(many, shape(50, 50, 10)), (1000, 2, true));
        // Sums without products are one k-iteration, in which C is scaled.
        assert_eq!(limited(many, shape(2, 3, 0)), (6, 1, false));
    }

    #[test]
    fn each_cta_gets_a_k_iteration_or_none_does() {
        let decomposition = |ctas, data_parallel_waves| Decomposition {
            ctas,
            data_parallel_waves,
        };
        // 2 tiles of 3 k-iterations remain: not enough for 10 CTAs.
        assert_eq!(limited(decomposition(10, 1), shape(3, 4, 3)), (10, 0, true));
        assert_eq!(limited(decomposition(10, 1), shape(3, 4, 5)), (10, 1, true));
        assert_eq!(limited(decomposition(6, 2), shape(3, 4, 3)), (6, 2, false));
        for ctas in 1..40 {
            for data_parallel_waves in 0..4 {
                for k_iterations in 0..5 {
                    let shape = shape(3, 4, k_iterations);
                    let limited = decomposition(ctas, data_parallel_waves).limited(shape, TILE);
                    let of = limited.of(shape, TILE);
                    let divided = of.stream_k_tiles() * of.k_iterations;
                    assert!(divided == 0 || divided >= of.ctas, "{limited:?}");
                }
            }
        }
    }

    #[test]
    fn the_remaining_tiles_fit_a_row_of_ctas_of_a_grid() {
        let few = Decomposition::stream_k(5);
        let (ctas, waves, _) = limited(few, shape(300, 300, 2));
        assert!(90_000 - (ctas * waves) as usize <= MOST_Y);
        // 5 x 65534 data-parallel tiles, and too many remaining tiles for 5 CTAs.
        assert_eq!(limited(few, shape(1000, 1000, 2)), (1_000_000, 0, false));
    }
}
