//! Parts of row-major matrices, which can be cut along rows and columns, for divide and conquer
//! and for threads.

use std::marker::PhantomData;
use std::ops::Range;

use gpu_gemm::MatrixLayout;

/// A part of a matrix to read.
#[derive(Debug)]
pub struct View<'a, T> {
    elements: &'a [T],
    rows: usize,
    columns: usize,
    /// Elements from the start of a row to the start of the next.
    leading: usize,
}

// A derived impl would require `T: Copy`.
impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

impl<'a, T> View<'a, T> {
    /// The `rows x columns` matrix that `elements` begin with.
    ///
    /// # Panics
    ///
    /// If rows overlap, or the elements end before the matrix does.
    pub fn new(elements: &'a [T], rows: usize, columns: usize, leading: usize) -> Self {
        let extent = extent(rows, columns, leading);
        View {
            elements: &elements[..extent],
            rows,
            columns,
            // The rows of an empty matrix all start at its beginning.
            leading: if extent == 0 { 0 } else { leading },
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Elements from the start of a row to the start of the next.
    pub fn leading(&self) -> usize {
        self.leading
    }

    /// The elements from the first to the last of the matrix.
    pub fn elements(&self) -> &'a [T] {
        self.elements
    }

    /// The elements of one row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &'a [T] {
        let start = row * self.leading;
        &self.elements[start..start + self.columns]
    }

    /// A submatrix: some of its rows and columns.
    ///
    /// # Panics
    ///
    /// If it does not have them.
    pub fn part(&self, rows: Range<usize>, columns: Range<usize>) -> View<'a, T> {
        assert!(rows.end <= self.rows && columns.end <= self.columns);
        let elements = match rows.is_empty() || columns.is_empty() {
            true => &[],
            false => &self.elements[rows.start * self.leading + columns.start..],
        };
        View::new(
            elements,
            rows.len(),
            columns.len(),
            self.leading.max(columns.len()),
        )
    }
}

impl<T: Copy> View<'_, T> {
    /// One element.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> T {
        self.elements[row * self.leading + column]
    }
}

/// A part of a matrix to write. No other [`ViewMut`] overlaps it.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    first: *mut T,
    rows: usize,
    columns: usize,
    leading: usize,
    /// Elements that are borrowed for `'a`.
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: it is an exclusive borrow of its elements, as `&mut [T]` is.
unsafe impl<T: Send> Send for ViewMut<'_, T> {}

impl<'a, T> ViewMut<'a, T> {
    /// The `rows x columns` matrix that `elements` begin with.
    ///
    /// # Panics
    ///
    /// If rows overlap, or the elements end before the matrix does.
    pub fn new(elements: &'a mut [T], rows: usize, columns: usize, leading: usize) -> Self {
        let extent = extent(rows, columns, leading);
        ViewMut {
            first: elements[..extent].as_mut_ptr(),
            rows,
            columns,
            leading: if extent == 0 { 0 } else { leading },
            borrowed: PhantomData,
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Elements from the start of a row to the start of the next.
    pub fn leading(&self) -> usize {
        self.leading
    }

    /// The first element, or a dangling pointer if there is none.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.first
    }

    /// The elements of one row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows);
        // SAFETY: the row is inside the elements passed to `new`, and no other view overlaps it.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(row * self.leading), self.columns) }
    }

    /// The same part, borrowed again for a shorter time.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { ..*self }
    }

    /// The rows before `row`, and the others.
    ///
    /// # Panics
    ///
    /// If there are fewer rows.
    pub fn split_rows(self, row: usize) -> (Self, Self) {
        assert!(row <= self.rows);
        let below = ViewMut {
            // There may be no rows below; the pointer would then be past the elements.
            first: self.first.wrapping_add(row * self.leading),
            rows: self.rows - row,
            ..self
        };
        (ViewMut { rows: row, ..self }, below)
    }

    /// The columns before `column`, and the others.
    ///
    /// # Panics
    ///
    /// If there are fewer columns.
    pub fn split_columns(self, column: usize) -> (Self, Self) {
        assert!(column <= self.columns);
        let right = ViewMut {
            first: self.first.wrapping_add(column),
            columns: self.columns - column,
            ..self
        };
        let left = ViewMut {
            columns: column,
            ..self
        };
        (left, right)
    }

    /// Its pieces of up to `rows x columns`, one row of pieces after the other, each with the
    /// row and the column that it starts at.
    ///
    /// # Panics
    ///
    /// If a piece would be empty.
    pub fn pieces(self, rows: usize, columns: usize) -> Vec<(usize, usize, Self)> {
        assert!(rows > 0 && columns > 0);
        let (all_rows, all_columns) = (self.rows, self.columns);
        let mut pieces = Vec::new();
        let mut below = self;
        for row in (0..all_rows).step_by(rows) {
            let (mut band, rest) = below.split_rows(rows.min(all_rows - row));
            below = rest;
            for column in (0..all_columns).step_by(columns) {
                let (piece, rest) = band.split_columns(columns.min(all_columns - column));
                band = rest;
                pieces.push((row, column, piece));
            }
        }
        pieces
    }
}

/// Elements from the first to the last of a matrix.
fn extent(rows: usize, columns: usize, leading: usize) -> usize {
    assert!(
        columns <= leading,
        "rows of {columns} elements, {leading} apart, overlap"
    );
    // If that saturates, no slice is as long.
    MatrixLayout::one((rows, columns), leading).extent()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_elements_at_its_rows_and_columns() {
        let elements: Vec<i32> = (0..4 * 6).collect();
        let part = View::new(&elements, 4, 5, 6).part(1..3, 2..5);
        assert_eq!([part.row(0), part.row(1)], [[8, 9, 10], [14, 15, 16]]);
        assert_eq!(part.at(1, 2), 16);
        let empty = part.part(2..2, 0..3);
        assert_eq!((empty.rows(), empty.columns()), (0, 3));
        assert!(part.part(0..2, 3..3).row(1).is_empty());
    }

    #[test]
    fn pieces_cover_every_element_once_and_no_padding() {
        for (rows, columns, count) in [(7, 10, 9), (0, 3, 0), (3, 0, 0)] {
            let mut elements = vec![0; 7 * 11];
            let pieces = ViewMut::new(&mut elements, rows, columns, 11).pieces(3, 4);
            assert_eq!(pieces.len(), count);
            for (row, column, mut piece) in pieces {
                for index in 0..piece.rows() {
                    for (offset, element) in piece.row_mut(index).iter_mut().enumerate() {
                        *element += (row + index) * 100 + column + offset + 1;
                    }
                }
            }
            for (index, element) in elements.iter().enumerate() {
                let (row, column) = (index / 11, index % 11);
                let is_inside = row < rows && column < columns;
                let expected = if is_inside { row * 100 + column + 1 } else { 0 };
                assert_eq!(*element, expected);
            }
        }
        let (above, below) = ViewMut::new(&mut [] as &mut [i32], 0, 3, 9).split_rows(0);
        assert_eq!((above.rows(), below.rows()), (0, 0));
    }

    #[test]
    #[should_panic(expected = "out of range for slice")]
    fn a_matrix_whose_extent_wraps_is_refused() {
        ViewMut::new(&mut [0; 4], (1 << 62) + 1, 4, 4);
    }
}
