//! Orders: in which CTAs take the tiles of C, lanes their places in a warp tile, and a thread its
//! elements.

use core::ops::{Add, Div, Mul, Rem, Sub};

/// Rows of tiles in a group. CTAs take the tiles of a group column after column: what those of a
/// GPU read at a time is then nearly square, and shared in the L2 cache.
const GROUP: u8 = 8;

/// Row and column, among the `rows x cols` tiles of C, of the tile that comes at `index`.
#[inline(always)]
pub fn tile_position(index: usize, rows: usize, cols: usize) -> (usize, usize) {
    position(index, rows, cols)
}

/// Where a tile is of a batch whose products all have a C of as many tiles.
#[derive(Clone, Copy)]
pub struct Place {
    /// The product of the batch.
    pub product: usize,
    /// Row and column among the tiles of its C.
    pub row: usize,
    pub col: usize,
}

/// Where the tile is that comes at `index` among the `rows x cols` tiles of each product, one
/// product after the other. By divisions of 32 bits, of which a GPU makes several in the time of
/// one of 64: for persistent CTAs, which divide before each tile. There are fewer than 2^32 tiles.
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

/// The place of a lane among the 4 x 8 of its warp, in pairs along the 4.
///
/// Where each lane reads 16 bytes, shared memory serves a quarter of the warp at a time. In this
/// order a quarter is 2 x 4 lanes, which read 2 + 4 different float4s; as part of a row of 8 it
/// would read 1 + 8.
#[inline(always)]
pub fn lane_position(lane: usize) -> (usize, usize) {
    (lane / 16 * 2 + lane % 2, lane / 2 % 8)
}

/// The column at `index` of row `row` in serpentine order, even rows forwards and odd ones
/// backwards: each FMA shares an operand with the one before it, so that registers are read less
/// often.
#[inline(always)]
pub fn serpentine(row: usize, index: usize, columns: usize) -> usize {
    if row.is_multiple_of(2) {
        index
    } else {
        columns - 1 - index
    }
}
