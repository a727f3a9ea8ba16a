//! The order in which the tiles of C are handed out.

/// Rows of tiles that are handed out together, column after column: what the blocks of a GPU read at a time is then nearly square, and
/// shared in the L2.
const GROUP: usize = 8;

/// Row and column of a tile among the `rows x cols` tiles of C.
#[inline(always)]
pub fn place(tile: usize, rows: usize, cols: usize) -> (usize, usize) {
    let group = tile / (GROUP * cols);
    let within = tile - group * GROUP * cols;
    let first_row = group * GROUP;
    let rows = if rows - first_row < GROUP {
        rows - first_row
    } else {
        GROUP
    };
    (first_row + within % rows, within / rows)
}
