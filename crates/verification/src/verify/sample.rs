//! The elements of a large result that are compared one by one.

use std::collections::BTreeSet;

use gpu_gemm::gpu_kernels::spec::Tile;
use rand::RngExt;
use rand_pcg::Pcg64;

use gpu_gemm::Shape;

/// The number of random samples, besides those at the corners and edges of tiles.
const RANDOM: usize = 2048;

/// The elements to compare: all that are in both a row and a column next to the edge of some tile
/// (the first tile, the second, one in the middle, the last) or of C, and about two thousand
/// others, chosen by `seed`.
pub fn positions(shape: Shape, tile: Tile, seed: u64) -> Vec<(usize, usize)> {
    if shape.is_empty() {
        return Vec::new();
    }
    let mut positions = BTreeSet::new();
    let columns = edges(shape.n, tile.n as usize);
    for row in edges(shape.m, tile.m as usize) {
        positions.extend(columns.iter().map(|&col| (row, col)));
    }
    let mut generator = Pcg64::new(seed.into(), 0x5a3b_1e55);
    for _ in 0..RANDOM {
        let row = generator.random_range(0..shape.m);
        positions.insert((row, generator.random_range(0..shape.n)));
    }
    positions.into_iter().collect()
}

/// The first and last index of some tiles along one dimension.
fn edges(size: usize, tile: usize) -> BTreeSet<usize> {
    let last = (size - 1) / tile * tile;
    let middle = size / 2 / tile * tile;
    [0, tile, middle, last]
        .into_iter()
        .flat_map(|start| [start, start.saturating_add(tile - 1)])
        .chain([size - 1])
        .filter(|&index| index < size)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: Tile = Tile {
        m: 128,
        n: 64,
        k: 8,
    };

    #[test]
    fn edges_are_those_of_the_first_tile_the_second_the_middle_one_and_the_last() {
        let edges = |size, tile| edges(size, tile).into_iter().collect::<Vec<_>>();
        assert_eq!(edges(1000, 128), [0, 127, 128, 255, 384, 511, 896, 999]);
        assert_eq!(edges(1024, 128), [0, 127, 128, 255, 512, 639, 896, 1023]);
        assert_eq!(edges(1023, 128), [0, 127, 128, 255, 384, 511, 896, 1022]);
        assert_eq!(edges(129, 128), [0, 127, 128]);
        assert_eq!(edges(128, 128), [0, 127]);
        assert_eq!(edges(127, 128), [0, 126]);
        assert_eq!(edges(1, 1), [0]);
        assert_eq!(edges(7, 1), [0, 1, 3, 6]);
    }

    #[test]
    fn a_single_element_is_sampled_once_and_none_not_at_all() {
        assert_eq!(positions(Shape::new(1, 1, 9), TILE, 1), [(0, 0)]);
        assert_eq!(positions(Shape::new(0, 1, 9), TILE, 1), []);
    }
}
