//! A row-major matrix in a buffer, valid by construction, with poison wherever a kernel must not
//! read or write.

use std::hash::{DefaultHasher, Hasher};

use gpu_gemm::MatrixLayout;
use rand_pcg::Pcg64;

use super::error::ProblemError;
use super::number::Number;
use super::random::Data;
use crate::parallel;

/// The position of a row-major matrix in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Elements of the buffer before the first of the matrix.
    pub offset: usize,
    /// Elements from the start of a row to the start of the next.
    pub leading: usize,
}

impl Placement {
    /// Rows of `columns` elements one after the other, from the start of the buffer.
    pub const fn compact(columns: usize) -> Placement {
        Placement {
            offset: 0,
            leading: columns,
        }
    }
}

/// A row-major matrix in a buffer of its own, which may be longer than the matrix needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    buffer: Vec<T>,
    rows: usize,
    columns: usize,
    placement: Placement,
}

impl<T: Number> Matrix<T> {
    /// The compact matrix with these elements.
    ///
    /// # Panics
    ///
    /// If there are more or fewer of them.
    pub fn new(elements: Vec<T>, rows: usize, columns: usize) -> Self {
        assert_eq!(elements.len(), rows * columns);
        Matrix {
            buffer: elements,
            rows,
            columns,
            placement: Placement::compact(columns),
        }
    }

    /// A matrix that `row` fills, row by row, in parallel; all else in its buffer is
    /// [`Number::POISON`].
    ///
    /// # Errors
    ///
    /// There is no memory for it, or the sizes overflow.
    pub fn from_rows(
        rows: usize,
        columns: usize,
        placement: Placement,
        row: impl Fn(usize, &mut [T]) + Sync,
    ) -> Result<Self, ProblemError> {
        Self::from_rows_by(rows, columns, placement, &row)
    }

    /// Compiled once for each type, and not for each closure.
    fn from_rows_by(
        rows: usize,
        columns: usize,
        placement: Placement,
        row: &(dyn Fn(usize, &mut [T]) + Sync),
    ) -> Result<Self, ProblemError> {
        let Placement { offset, leading } = placement;
        assert!(
            leading >= columns,
            "a leading dimension of {leading} for {columns} columns"
        );
        let length = rows
            .checked_mul(leading)
            .and_then(|length| length.checked_add(offset))
            .filter(|&length| length <= isize::MAX as usize / 16)
            .ok_or(ProblemError::Overflow { rows, leading })?;
        let mut buffer = Vec::new();
        buffer
            .try_reserve_exact(length)
            .map_err(|_| ProblemError::OutOfMemory {
                rows,
                columns,
                bytes: length.saturating_mul(size_of::<T>()),
            })?;
        buffer.resize(length, T::POISON);
        if columns > 0 {
            parallel::pieces(&mut buffer[offset..], leading, |index, padded| {
                row(index, &mut padded[..columns])
            });
        }
        Ok(Matrix {
            buffer,
            rows,
            columns,
            placement,
        })
    }

    /// The compact matrix with the elements `element(row, column)`.
    pub fn from_elements(
        rows: usize,
        columns: usize,
        element: impl Fn(usize, usize) -> T + Sync,
    ) -> Result<Self, ProblemError> {
        Matrix::from_rows(rows, columns, Placement::compact(columns), |row, values| {
            for (column, value) in values.iter_mut().enumerate() {
                *value = element(row, column);
            }
        })
    }

    /// A row of `columns` elements of [`Number::POISON`].
    pub fn poison(columns: usize) -> Self {
        Matrix::new(vec![T::POISON; columns], 1, columns)
    }

    /// The same elements at another placement, surrounded by poison.
    pub fn moved_to(&self, placement: Placement) -> Result<Self, ProblemError> {
        Matrix::from_rows(self.rows, self.columns, placement, |row, elements| {
            elements.copy_from_slice(self.row(row));
        })
    }

    /// The same matrix at the same placement, its elements rounded to another type.
    pub fn converted<Other: Number>(&self) -> Result<Matrix<Other>, ProblemError> {
        Matrix::from_rows(self.rows, self.columns, self.placement, |row, elements| {
            for (element, source) in elements.iter_mut().zip(self.row(row)) {
                *element = Other::nearest(source.to_f64());
            }
        })
    }

    /// Replaces each element, in parallel.
    pub fn replace_each(&mut self, by: impl Fn(T) -> T + Sync) {
        let Placement { offset, leading } = self.placement;
        if self.extent() > 0 {
            parallel::pieces(&mut self.buffer[offset..], leading, |row, padded| {
                if row < self.rows {
                    padded[..self.columns]
                        .iter_mut()
                        .for_each(|element| *element = by(*element));
                }
            });
        }
    }

    /// Some of its rows, at the same placement.
    ///
    /// # Panics
    ///
    /// If there are fewer rows.
    pub fn rows_from(&self, first: usize, rows: usize) -> Result<Self, ProblemError> {
        assert!(first + rows <= self.rows);
        Matrix::from_rows(rows, self.columns, self.placement, |row, elements| {
            elements.copy_from_slice(self.row(first + row));
        })
    }

    /// Replaces the rows from `first` on by those of another matrix.
    ///
    /// # Panics
    ///
    /// If there are fewer rows, or they have another length.
    pub fn set_rows(&mut self, first: usize, rows: &Matrix<T>) {
        for row in 0..rows.rows {
            self.row_mut(first + row).copy_from_slice(rows.row(row));
        }
    }

    /// The transpose of each of the `count` matrices stacked in this one, with the same offset and
    /// the same padding: as many elements between the end of a row and the start of the next.
    pub fn transposed(&self, count: usize) -> Result<Self, ProblemError> {
        let (rows, columns) = (self.columns, self.rows / count);
        let padding = self.leading() - self.columns;
        let placement = Placement {
            leading: columns.saturating_add(padding),
            ..self.placement
        };
        Matrix::from_rows(count * rows, columns, placement, |row, elements| {
            let (matrix, row) = (row / rows, row % rows);
            for (column, element) in elements.iter_mut().enumerate() {
                *element = self.row(matrix * columns + column)[row];
            }
        })
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Its position in its buffer.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Elements from the start of a row to the start of the next.
    pub fn leading(&self) -> usize {
        self.placement.leading
    }

    /// The entire buffer, with padding and with everything before and after the matrix.
    pub fn buffer(&self) -> &[T] {
        &self.buffer
    }

    /// The same matrix over another buffer of the same length.
    ///
    /// # Panics
    ///
    /// If the length differs.
    pub fn with_buffer(&self, buffer: Vec<T>) -> Matrix<T> {
        assert_eq!(buffer.len(), self.buffer.len());
        Matrix { buffer, ..*self }
    }

    /// The elements from the first to the last of the matrix: exactly what a kernel may touch,
    /// its padding included.
    pub fn elements(&self) -> &[T] {
        &self.buffer[self.placement.offset..][..self.extent()]
    }

    /// [`Matrix::elements`], to write.
    pub fn elements_mut(&mut self) -> &mut [T] {
        let extent = self.extent();
        &mut self.buffer[self.placement.offset..][..extent]
    }

    /// Elements from the first to the last of the matrix; 0 if it has none.
    pub fn extent(&self) -> usize {
        self.layout(1).extent()
    }

    /// Where its elements are from the first on, as those of `count` matrices, stacked.
    pub fn layout(&self, count: usize) -> MatrixLayout {
        let (rows, leading) = (self.rows / count, self.leading());
        MatrixLayout::one((rows, self.columns), leading)
            .batched(count, rows.saturating_mul(leading))
    }

    /// The elements of one row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[T] {
        assert!(row < self.rows);
        let start = self.placement.offset + row * self.placement.leading;
        &self.buffer[start..start + self.columns]
    }

    /// The elements of one row, to write.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows);
        let start = self.placement.offset + row * self.placement.leading;
        &mut self.buffer[start..start + self.columns]
    }

    /// The index in the buffer of the first element outside of the matrix that differs, in any
    /// bit, between `self` and `other`, a buffer of the same length.
    pub fn first_padding_difference(&self, other: &[T]) -> Option<usize> {
        const PIECE: usize = 1 << 16;
        let length = self.buffer.len().min(other.len());
        let found = parallel::map(length.div_ceil(PIECE), |piece| {
            let first = piece * PIECE;
            (first..length.min(first + PIECE)).find(|&index| {
                self.buffer[index].bits() != other[index].bits() && !self.contains(index)
            })
        });
        found.into_iter().flatten().next()
    }

    /// A hash of the bits of all elements, whatever their placement: two different matrices of one
    /// size share it with a probability of 2^-64.
    pub fn hash_of_bits(&self) -> u64 {
        let of_rows = parallel::map(self.rows, |row| {
            let mut hasher = DefaultHasher::new();
            for element in self.row(row) {
                hasher.write_u64(element.bits());
            }
            hasher.finish()
        });
        let mut hasher = DefaultHasher::new();
        of_rows.into_iter().for_each(|hash| hasher.write_u64(hash));
        hasher.finish()
    }

    /// Whether an index of the buffer is an element of the matrix.
    fn contains(&self, index: usize) -> bool {
        let Placement { offset, leading } = self.placement;
        leading > 0
            && index.checked_sub(offset).is_some_and(|position| {
                position / leading < self.rows && position % leading < self.columns
            })
    }

    /// The random `data` of each row and column, times a power of two. The same seed gives the
    /// same matrix, whatever its placement.
    pub fn random_at(
        rows: usize,
        columns: usize,
        placement: Placement,
        seed: u64,
        data: impl Fn(usize, usize) -> (Data, i32) + Sync,
    ) -> Result<Self, ProblemError> {
        Matrix::from_rows(rows, columns, placement, |row, elements| {
            // A sequence of random numbers for each row, so that rows can be filled in any
            // order.
            let mut generator = Pcg64::new(seed.into(), row as u128);
            for (column, element) in elements.iter_mut().enumerate() {
                let (data, power) = data(row, column);
                *element = T::random_scaled(data, power, &mut generator);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(rows: usize, columns: usize, placement: Placement) -> Matrix<f32> {
        Matrix::random_at(rows, columns, placement, 7, |_, _| (Data::Uniform, 0)).unwrap()
    }

    const fn placed(offset: usize, leading: usize) -> Placement {
        Placement { offset, leading }
    }

    #[test]
    fn sizes_that_overflow_are_refused_and_a_matrix_larger_than_memory_is_an_error() {
        let of = |size, placement| Matrix::<f32>::from_rows(size, size, placement, |_, _| ());
        for placement in [placed(0, usize::MAX / 2), placed(usize::MAX, 5)] {
            assert!(matches!(
                of(4, placement),
                Err(ProblemError::Overflow { .. })
            ));
        }
        let large = of(1 << 28, placed(0, 1 << 28));
        assert!(matches!(large, Err(ProblemError::OutOfMemory { .. })));
    }

    #[test]
    fn everything_outside_a_random_matrix_is_poison_and_nothing_inside_is() {
        let matrix = uniform(4, 5, placed(3, 6));
        let poisoned = |element: &f32| element.bits() == f32::POISON.bits();
        assert_eq!(matrix.buffer().len(), 3 + 4 * 6);
        let count = matrix.buffer().iter().filter(|one| poisoned(one)).count();
        assert_eq!(count, 3 + 4);
        assert!((0..4).all(|row| !matrix.row(row).iter().any(poisoned)));
        assert_eq!(matrix.elements().len(), 3 * 6 + 5);
    }

    #[test]
    fn a_changed_bit_of_padding_is_found_and_changes_inside_are_not_padding() {
        let matrix = uniform(3, 3, placed(1, 4));
        let mut other = matrix.buffer().to_vec();
        other[1 + 4 + 1] = 9.0;
        assert_eq!(matrix.first_padding_difference(&other), None);
        other[1 + 4 + 3] = f32::NAN; // still a NaN, but not the poison that was there
        assert_eq!(matrix.first_padding_difference(&other), Some(8));
        other[0] = 0.0;
        assert_eq!(matrix.first_padding_difference(&other), Some(0));
    }

    #[test]
    fn the_hash_tells_each_bit_of_each_element_apart_and_nothing_else() {
        let matrix = Matrix::from_elements(3, 4, |row, column| (row * 4 + column) as f32).unwrap();
        let hash = matrix.hash_of_bits();
        assert_eq!(matrix.moved_to(placed(5, 9)).unwrap().hash_of_bits(), hash);
        for (row, column) in (0..3).flat_map(|row| (0..4).map(move |column| (row, column))) {
            let mut changed = matrix.clone();
            let element = &mut changed.row_mut(row)[column];
            *element = f32::from_bits(element.to_bits() ^ 1);
            assert_ne!(changed.hash_of_bits(), hash, "{row}, {column}");
        }
        let mut swapped = matrix.clone();
        swapped.row_mut(0).swap(1, 2);
        assert_ne!(swapped.hash_of_bits(), hash);
    }
}
