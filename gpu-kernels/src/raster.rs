//! Orders: in which CTAs take the tiles of C, lanes their places in a warp tile, and a thread its
//! elements.

/// Rows of tiles in a group. CTAs take the tiles of a group column after column: what those of a
/// GPU read at a time is then nearly square, and shared in the L2 cache.
const GROUP: usize = 8;

/// Row and column, among the `rows x cols` tiles of C, of the tile that comes at `index`.
#[inline(always)]
pub fn tile_position(index: usize, rows: usize, cols: usize) -> (usize, usize) {
    let group = index / (GROUP * cols);
    let within = index - group * GROUP * cols;
    let first_row = group * GROUP;
    let rows = if rows - first_row < GROUP {
        rows - first_row
    } else {
        GROUP
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
