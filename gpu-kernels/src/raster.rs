//! Orders: of CTAs over the tiles of C, of lanes over a warp tile, and of a thread over its
//! elements.

use core::ops::{Add, Div, Mul, Rem, Sub};

/// Rows of tiles in a group. CTAs take the tiles of a group column by column: the tiles in flight
/// then form a near-square, and share their operands in the L2 cache.
const GROUP: u8 = 8;

/// The row and column of the tile at `index` in this order, among the `rows x cols` tiles of C.
#[inline(always)]
pub fn tile_position(index: usize, rows: usize, cols: usize) -> (usize, usize) {
    position(index, rows, cols)
}

/// The place of a tile in a batch. All products have the same number of tiles.
#[derive(Clone, Copy)]
pub struct Place {
    /// The product of the batch.
    pub product: usize,
    /// Row and column among the tiles of its C.
    pub row: usize,
    pub col: usize,
}

/// The place of the tile at `index`, with `rows x cols` tiles of each product, one product after
/// the other. For persistent CTAs, which divide before each tile: with divisions of 32 bits,
/// several times as fast on a GPU as those of 64. There are fewer than 2^32 tiles.
#[inline(always)]
pub fn place(index: usize, rows: usize, cols: usize) -> Place {
    let (index, rows, cols) = (index as u32, rows as u32, cols as u32);
    let product = index / (rows * cols);
    let (row, col) = position(index - product * (rows * cols), rows, cols);
    Place {
        product: product as usize,
        row: row as usize,
        col: col as usize,
    }
}

#[inline(always)]
fn position<N>(index: N, rows: N, cols: N) -> (N, N)
where
    N: Copy + PartialOrd + From<u8>,
    N: Add<Output = N> + Sub<Output = N> + Mul<Output = N> + Div<Output = N> + Rem<Output = N>,
{
    let height = N::from(GROUP);
    let group = index / (height * cols);
    let within = index - group * height * cols;
    let first_row = group * height;
    let rows = if rows - first_row < height {
        rows - first_row
    } else {
        height
    };
    (first_row + within % rows, within / rows)
}

/// The place of a lane among the 4 x 8 of its warp, in pairs along the dimension of 4.
///
/// When each lane reads 16 bytes, shared memory serves a quarter of the warp at a time. In this
/// order a quarter is 2 x 4 lanes, which read 2 + 4 different float4s; a row of 8 lanes would read
/// 1 + 8.
#[inline(always)]
pub fn lane_position(lane: usize) -> (usize, usize) {
    (lane / 16 * 2 + lane % 2, lane / 2 % 8)
}

/// The column at `index` of row `row` in serpentine order, even rows forwards and odd ones
/// backwards: consecutive FMAs share an operand, which saves register reads.
#[inline(always)]
pub fn serpentine(row: usize, index: usize, columns: usize) -> usize {
    if row.is_multiple_of(2) {
        index
    } else {
        columns - 1 - index
    }
}
