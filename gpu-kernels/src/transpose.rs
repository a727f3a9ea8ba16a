//! Copies of A and B in the layout that a stream-K kernel requires: transposed or not, each row at
//! a multiple of 16 bytes, with zeros up to exact tiles. GotoBLAS calls this packing.
//!
//! Not a rung: nothing is multiplied. Each element is read and written once, 32 neighbours at a
//! time in both; the transposition happens in shared memory.

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::compat::{global, launch_bounds, unless_published};
use crate::spec::{entry, EntryPoint};

unless_published! {
    /// The entry points, for elements of 4, 8, 2 bytes and 1.
    pub static TRANSPOSE: EntryPoint = entry!(transpose(Matrices<'_, f32>));
    pub static TRANSPOSE_F64: EntryPoint = entry!(transpose_f64(Matrices<'_, f64>));
    pub static TRANSPOSE_16: EntryPoint = entry!(transpose_16(Matrices<'_, u16>));
    pub static TRANSPOSE_8: EntryPoint = entry!(transpose_8(Matrices<'_, u8>));
    pub static PAD: EntryPoint = entry!(pad(Matrices<'_, f32>));
    pub static PAD_F64: EntryPoint = entry!(pad_f64(Matrices<'_, f64>));
    pub static PAD_16: EntryPoint = entry!(pad_16(Matrices<'_, u16>));
    pub static PAD_8: EntryPoint = entry!(pad_8(Matrices<'_, u8>));
}

/// Rows and columns that a block copies at once, so that each thread has 16 loads in flight: 38
/// us; 32 x 32, with four loads, takes 46 us (4096 x 4096, H200).
pub const TILE: usize = 64;
/// The threads of a block along x and y.
pub const BLOCK_X: usize = 32;
pub const BLOCK_Y: usize = 8;
/// Elements from a row in shared memory to the next: one more than a row has, so that a column
/// covers all 32 banks.
const STRIDE: usize = TILE + 1;

/// The argument block of these kernels: `source` has `rows` rows of `cols` elements, `leading`
/// elements apart; `target` has `target_rows` rows of `target_leading` elements.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Matrices<'a, T> {
    pub source: &'a [T],
    pub rows: usize,
    pub cols: usize,
    pub leading: usize,
    pub target: *mut T,
    pub target_rows: usize,
    pub target_leading: usize,
}

impl<T> Matrices<'_, T> {
    /// The same, with a source that is read-only while the kernel runs.
    ///
    /// # Safety
    ///
    /// Nothing writes the source while the kernel runs.
    #[inline(always)]
    unsafe fn read_only(self) -> Self {
        Matrices {
            source: global::read_only(self.source),
            ..self
        }
    }
}

/// Entry points that copy elements of these types.
macro_rules! entry_points {
    ($($(#[$about:meta])* $name:ident($element:ty) $($staged:ident: [$staged_element:ty; $elements:expr])? => $body:ident;)*) => {$(
        $(#[$about])*
        ///
        /// A launch has a block of `BLOCK_X x BLOCK_Y` threads for each `TILE x TILE` of `target`:
        /// along x for its columns, along y for its rows, or fewer along y.
        ///
        /// # Safety
        ///
        /// `source` holds `(rows - 1) * leading + cols` elements, `target` is valid for writes of
        /// `target_rows * target_leading` elements that nothing else touches, and the launch has
        /// the shape above.
        #[cfg(any(not(cuda_device), feature = "entry-points"))]
        #[kernel]
        pub unsafe fn $name(matrices: Matrices<'_, $element>) {
            launch_bounds::<{ (BLOCK_X * BLOCK_Y) as u32 }, 1>();
            $(let $staged = shared_array![$staged_element; $elements];)?
            $body(matrices.read_only() $(, $staged)?);
        }
    )*};
}

entry_points! {
    /// `target[col][row] = source[row][col]`, and zeros elsewhere in `target`.
    transpose(f32) staged: [f32; TILE * STRIDE] => transposed;
    /// [`transpose`] for elements of 8 bytes.
    transpose_f64(f64) staged: [f64; TILE * STRIDE] => transposed;
    /// [`transpose`] for elements of 2 bytes.
    transpose_16(u16) staged: [u16; TILE * STRIDE] => transposed;
    /// [`transpose`] for elements of one byte.
    transpose_8(u8) staged: [u8; TILE * STRIDE] => transposed;
    /// `target[row][col] = source[row][col]`, and zeros elsewhere in `target`.
    pad(f32) => padded;
    /// [`pad`] for elements of 8 bytes.
    pad_f64(f64) => padded;
    /// [`pad`] for elements of 2 bytes.
    pad_16(u16) => padded;
    /// [`pad`] for elements of one byte.
    pad_8(u8) => padded;
}

/// `staged` is a tile in shared memory, its rows padded by one element.
#[inline(always)]
unsafe fn transposed<T: Copy + Default>(
    matrices: Matrices<'_, T>,
    staged: *mut T, // (TILE, STRIDE)
) {
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let row = thread::block_idx_x() as usize * TILE;
    let mut first = thread::block_idx_y() as usize * TILE;
    let next = thread::grid_dim_y() as usize * TILE;
    while first < matrices.target_rows {
        for i in 0..TILE / BLOCK_Y {
            for j in 0..TILE / BLOCK_X {
                let (in_row, in_col) = (y + i * BLOCK_Y, x + j * BLOCK_X);
                let (from_row, from_col) = (row + in_row, first + in_col);
                let in_bounds = from_row < matrices.rows && from_col < matrices.cols;
                *staged.add(in_row * STRIDE + in_col) = if in_bounds {
                    *matrices
                        .source
                        .get_unchecked(from_row * matrices.leading + from_col)
                } else {
                    T::default()
                };
            }
        }
        thread::sync_threads(); // the tile is complete
        for i in 0..TILE / BLOCK_Y {
            for j in 0..TILE / BLOCK_X {
                let (in_row, in_col) = (y + i * BLOCK_Y, x + j * BLOCK_X);
                let (to_row, to_col) = (first + in_row, row + in_col);
                if to_row < matrices.target_rows && to_col < matrices.target_leading {
                    *matrices
                        .target
                        .add(to_row * matrices.target_leading + to_col) =
                        *staged.add(in_col * STRIDE + in_row);
                }
            }
        }
        thread::sync_threads(); // every thread has finished reading the tile
        first += next;
    }
}

#[inline(always)]
unsafe fn padded<T: Copy + Default>(matrices: Matrices<'_, T>) {
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let first_col = thread::block_idx_x() as usize * TILE + x;
    let mut first_row = thread::block_idx_y() as usize * TILE + y;
    let next = thread::grid_dim_y() as usize * TILE;
    while first_row < matrices.target_rows {
        let place = |i: usize, j: usize| (first_row + i * BLOCK_Y, first_col + j * BLOCK_X);
        // All loads come before the first store: the compiler does not reorder them.
        let mut loaded = [[T::default(); TILE / BLOCK_X]; TILE / BLOCK_Y];
        for i in 0..TILE / BLOCK_Y {
            for j in 0..TILE / BLOCK_X {
                let (row, col) = place(i, j);
                if row < matrices.rows && col < matrices.cols {
                    loaded[i][j] = *matrices.source.get_unchecked(row * matrices.leading + col);
                }
            }
        }
        for i in 0..TILE / BLOCK_Y {
            for j in 0..TILE / BLOCK_X {
                let (row, col) = place(i, j);
                if row < matrices.target_rows && col < matrices.target_leading {
                    *matrices.target.add(row * matrices.target_leading + col) = loaded[i][j];
                }
            }
        }
        first_row += next;
    }
}
