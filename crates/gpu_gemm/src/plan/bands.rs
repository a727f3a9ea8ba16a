//! Bands of rows: how a product is split if its grid would have more CTAs than a GPU allows.

use gpu_kernels::spec::{Grid, Tile, Variant};
use thiserror::Error;

use crate::call::Shape;

/// The maximum number of CTAs in a grid along y, on every GPU so far; along x it is 2^31 - 1.
pub const MOST_CTAS_Y: u32 = 65_535;
/// The same along z.
pub const MOST_CTAS_Z: u32 = 65_535;
pub const MOST_CTAS_X: u32 = i32::MAX as u32;

/// Some consecutive rows of C, computed by one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// The first row of A and C.
    pub first_row: usize,
    /// The number of rows: at least one.
    pub rows: usize,
    /// CTAs along x and y.
    pub grid: (u32, u32),
}

/// The maximum number of launches for one result: enough for any C that fits into memory, and few
/// enough to list.
const MOST_BANDS: usize = 1 << 20;

/// C is too large for the maximum number of launches.
#[derive(Clone, Debug, Error, PartialEq)]
#[error(
    "C of {m} x {n} is too large: a launch takes {MOST_CTAS_X} x {MOST_CTAS_Y} CTAs of {} x {} (n x m), and a result {MOST_BANDS} launches.",
    .tile.n,
    .tile.m
)]
pub struct TooLarge {
    m: usize,
    n: usize,
    tile: Tile,
}

/// The launches that cover C with tiles of `variant`: none if C is empty, one for most shapes,
/// and bands of rows if a grid would have more CTAs than a GPU allows.
///
/// # Errors
///
/// C is larger than any memory.
pub fn bands(variant: &Variant, shape: Shape) -> Result<Vec<Band>, TooLarge> {
    let Shape { m, n, .. } = shape;
    if shape.is_empty() {
        return Ok(Vec::new());
    }
    let tile = variant.tile;
    let too_large = TooLarge { m, n, tile };
    let (tile_m, tile_n) = (tile.m as usize, tile.n as usize);
    let most_x = MOST_CTAS_X as usize;
    // Split operands have rows twice as long.
    let depth = match variant.splits_operands {
        true => shape.k.saturating_mul(2).saturating_add(128),
        false => shape.k,
    };
    let most_rows = match variant.grid {
        Grid::Tiles | Grid::StreamK if n.div_ceil(tile_n) > most_x => 0,
        Grid::Tiles | Grid::StreamK => MOST_CTAS_Y as usize * tile_m,
        // The copy engine counts rows and columns as i32.
        grid if grid.is_mapped() && m.max(n).max(depth) > most_x => 0,
        Grid::Persistent | Grid::MappedTiles | Grid::PersistentStreamK => m,
        Grid::Rows => most_x,
        Grid::Linear => most_x * tile_n / n,
    };
    if most_rows == 0 || m.div_ceil(most_rows) > MOST_BANDS {
        return Err(too_large);
    }
    // Neither the product nor the quotient exceeds what `most_rows` allows.
    let grid = |rows: usize| match variant.grid {
        Grid::Tiles | Grid::StreamK => (n.div_ceil(tile_n) as u32, rows.div_ceil(tile_m) as u32),
        Grid::Persistent | Grid::MappedTiles | Grid::PersistentStreamK => (1, 1),
        Grid::Rows => (rows as u32, 1),
        Grid::Linear => ((rows * n).div_ceil(tile_n) as u32, 1),
    };
    let bands = (0..m).step_by(most_rows).map(|first_row| {
        let rows = most_rows.min(m - first_row);
        Band {
            first_row,
            rows,
            grid: grid(rows),
        }
    });
    Ok(bands.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::spec::{Block, DataType};

    fn planned(m: usize, n: usize) -> Vec<Band> {
        planned_as(Grid::Tiles, m, n)
    }

    fn planned_as(grid: Grid, m: usize, n: usize) -> Vec<Band> {
        tried(grid, m, n).unwrap()
    }

    fn tried(grid: Grid, m: usize, n: usize) -> Result<Vec<Band>, TooLarge> {
        let entry = gpu_kernels::naive::KERNEL.variants[0].entry;
        let (block, tile) = (Block { x: 8, y: 8 }, Tile { m: 16, n: 32, k: 1 });
        // SAFETY: it is never launched.
        let mut variant = unsafe { Variant::new("", entry, DataType::F32, block, tile) };
        variant.grid = grid;
        bands(&variant, Shape { m, n, k: 1 })
    }

    #[test]
    fn rows_beyond_the_grid_go_to_further_launches() {
        let most = 65_535 * 16;
        assert_eq!(planned(most, 1).len(), 1);
        let band = |first_row, rows, blocks| Band {
            first_row,
            rows,
            grid: (1, blocks),
        };
        assert_eq!(
            planned(2 * most + 17, 1),
            [
                band(0, most, 65_535),
                band(most, most, 65_535),
                band(2 * most, 17, 2)
            ]
        );
    }

    #[test]
    fn a_grid_of_rows_has_a_cta_for_each_row_and_a_linear_grid_one_for_each_tile() {
        assert_eq!(planned_as(Grid::Rows, 70_000, 100)[0].grid, (70_000, 1));
        assert_eq!(planned_as(Grid::Linear, 3, 11)[0].grid, (2, 1));
        assert_eq!(planned_as(Grid::Linear, 70_000, 32)[0].grid, (70_000, 1));
    }

    #[test]
    fn elements_beyond_the_grid_go_to_further_launches() {
        let most = i32::MAX as usize;
        let bands = planned_as(Grid::Linear, most, 33);
        // 32 elements a block: with that many rows, 33 columns are too many.
        let first = most * 32 / 33;
        assert_eq!((bands[0].rows, bands[1].first_row), (first, first));
        assert!(bands.iter().all(|band| band.grid.0 as usize <= most));
        assert_eq!(bands.iter().map(|band| band.rows).sum::<usize>(), most);
    }

    #[test]
    fn rows_beyond_any_memory_are_refused_and_not_listed() {
        let message = tried(Grid::Tiles, usize::MAX, 1).unwrap_err().to_string();
        assert!(
            message.starts_with("C of 18446744073709551615 x 1 is too large"),
            "{message}"
        );
    }

    #[test]
    fn columns_beyond_the_grid_are_refused() {
        let most = 32 * (i32::MAX as usize);
        assert!(tried(Grid::Tiles, 1, most).is_ok());
        assert!(tried(Grid::Tiles, 1, most + 1).is_err());
    }
}
