//! Copies of A and B as `async_pipeline` wants them: transposed or not, each row beginning at a multiple of 16 bytes, with zeros up to whole
//! tiles. What GotoBLAS calls packing.
//!
//! No rung: it multiplies nothing. It reads and writes each element once, rows of 32 at a time on both sides: the elements change
//! places in shared memory.

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::launch_bounds;

/// The entry points.
pub const TRANSPOSE: &str = stringify!(transpose);
pub const PAD: &str = stringify!(pad);

/// Rows and columns that a block copies, and its threads along y.
pub const TILE: usize = 32;
pub const BLOCK_Y: usize = 8;
/// One more than a row holds: a column then lies in 32 banks.
const STRIDE: usize = TILE + 1;

/// `target[col][row] = source[row][col]` for the `rows x cols` elements of `source`; zeros in the rest of `target`, which has
/// `target_rows` rows, each of `target_leading` elements. A launch has a block of `TILE x BLOCK_Y` threads for each `TILE x TILE` of
/// `target`: along x for its columns, along y for its rows.
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
    launch_bounds::<{ (TILE * BLOCK_Y) as u32 }, 1>();
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
            let (from_row, from_col) = (row + y + i * BLOCK_Y, first + x);
            let exists = from_row < rows && from_col < cols;
            *staged.add((y + i * BLOCK_Y) * STRIDE + x) = if exists {
                *source.get_unchecked(from_row * leading + from_col)
            } else {
                0.0
            };
        }
        thread::sync_threads(); // the elements are there
        for i in 0..TILE / BLOCK_Y {
            let (to_row, to_col) = (first + y + i * BLOCK_Y, row + x);
            if to_row < target_rows && to_col < target_leading {
                *target.add(to_row * target_leading + to_col) =
                    *staged.add(x * STRIDE + y + i * BLOCK_Y);
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
    launch_bounds::<{ (TILE * BLOCK_Y) as u32 }, 1>();
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let col = thread::block_idx_x() as usize * TILE + x;
    let mut row = thread::block_idx_y() as usize * TILE + y;
    let every = thread::grid_dim_y() as usize * TILE;
    while row < target_rows {
        for i in 0..TILE / BLOCK_Y {
            let row = row + i * BLOCK_Y;
            if row < target_rows && col < target_leading {
                *target.add(row * target_leading + col) = if row < rows && col < cols {
                    *source.get_unchecked(row * leading + col)
                } else {
                    0.0
                };
            }
        }
        row += every;
    }
}
