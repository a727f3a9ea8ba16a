//! Copies of A and B as `async_pipeline` wants them: transposed or not, each row beginning at a multiple of 16 bytes, with zeros up to whole
//! tiles. What GotoBLAS calls packing.
//!
//! No rung: it multiplies nothing. It reads and writes each element once, 32 neighbours at a time on both sides: the elements change
//! places in shared memory.

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::launch_bounds;

/// The entry points.
pub const TRANSPOSE: &str = stringify!(transpose);
pub const PAD: &str = stringify!(pad);

/// Rows and columns that a block copies at a time: 16 elements a thread are on their way. (With 32 x 32, and four, transposing 4096 x 4096
/// took 46 instead of 38 us on an H200.)
pub const TILE: usize = 64;
/// Its threads along x and y.
pub const BLOCK_X: usize = 32;
pub const BLOCK_Y: usize = 8;
/// One more than a row holds: a column then lies in 32 banks.
const STRIDE: usize = TILE + 1;

/// `target[col][row] = source[row][col]` for the `rows x cols` elements of `source`; zeros in the rest of `target`, which has
/// `target_rows` rows, each of `target_leading` elements. A launch has a block of `BLOCK_X x BLOCK_Y` threads for each `TILE x TILE` of
/// `target`: along x for its columns, along y for its rows, or fewer along y.
///
/// # Safety
///
/// `source` holds `(rows - 1) * leading + cols` elements, `target` is valid for writes of `target_rows * target_leading`
/// elements that nothing else touches, and the launch has the shape above.
#[kernel]
#[allow(clippy::too_many_arguments)] // two matrices
pub unsafe fn transpose(
    source: &[f32],
    rows: usize,
    cols: usize,
    leading: usize,
    target: *mut f32,
    target_rows: usize,
    target_leading: usize,
) {
    launch_bounds::<{ (BLOCK_X * BLOCK_Y) as u32 }, 1>();
    let staged = shared_array![f32; TILE * STRIDE];
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let row = thread::block_idx_x() as usize * TILE;
    let mut first = thread::block_idx_y() as usize * TILE;
    let every = thread::grid_dim_y() as usize * TILE;
    while first < target_rows {
        for i in 0..TILE / BLOCK_Y {
            for j in 0..TILE / BLOCK_X {
                let (in_row, in_col) = (y + i * BLOCK_Y, x + j * BLOCK_X);
                let (from_row, from_col) = (row + in_row, first + in_col);
                let exists = from_row < rows && from_col < cols;
                *staged.add(in_row * STRIDE + in_col) = if exists {
                    *source.get_unchecked(from_row * leading + from_col)
                } else {
                    0.0
                };
            }
        }
        thread::sync_threads(); // the elements are there
        for i in 0..TILE / BLOCK_Y {
            for j in 0..TILE / BLOCK_X {
                let (in_row, in_col) = (y + i * BLOCK_Y, x + j * BLOCK_X);
                let (to_row, to_col) = (first + in_row, row + in_col);
                if to_row < target_rows && to_col < target_leading {
                    *target.add(to_row * target_leading + to_col) =
                        *staged.add(in_col * STRIDE + in_row);
                }
            }
        }
        thread::sync_threads(); // every thread has read them
        first += every;
    }
}

/// `target[row][col] = source[row][col]`, else as [`transpose`].
///
/// # Safety
///
/// As for [`transpose`].
#[kernel]
#[allow(clippy::too_many_arguments)] // two matrices
pub unsafe fn pad(
    source: &[f32],
    rows: usize,
    cols: usize,
    leading: usize,
    target: *mut f32,
    target_rows: usize,
    target_leading: usize,
) {
    launch_bounds::<{ (BLOCK_X * BLOCK_Y) as u32 }, 1>();
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let first_col = thread::block_idx_x() as usize * TILE + x;
    let mut first_row = thread::block_idx_y() as usize * TILE + y;
    let every = thread::grid_dim_y() as usize * TILE;
    while first_row < target_rows {
        for i in 0..TILE / BLOCK_Y {
            for j in 0..TILE / BLOCK_X {
                let (row, col) = (first_row + i * BLOCK_Y, first_col + j * BLOCK_X);
                if row < target_rows && col < target_leading {
                    *target.add(row * target_leading + col) = if row < rows && col < cols {
                        *source.get_unchecked(row * leading + col)
                    } else {
                        0.0
                    };
                }
            }
        }
        first_row += every;
    }
}
