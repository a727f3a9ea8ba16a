//! Rows and columns of a matrix, each folded to one value, on all cores.

use crate::data::{Matrix, Number};
use crate::parallel;

/// The largest `value` in each row, at least `least`.
pub(super) fn largest_in_rows<T: Number>(
    matrix: &Matrix<T>,
    least: f64,
    value: impl Fn(T) -> f64 + Sync,
) -> Vec<f64> {
    parallel::map(matrix.rows(), |row| {
        let values = matrix.row(row).iter().map(|element| value(*element));
        values.fold(least, f64::max)
    })
}

/// The largest `value` in each column, at least `least`.
pub(super) fn largest_in_columns<T: Number>(
    matrix: &Matrix<T>,
    least: f64,
    value: impl Fn(T) -> f64 + Sync,
) -> Vec<f64> {
    let larger = |largest: f64, _, element| largest.max(value(element));
    fold_columns(matrix, least, larger, f64::max)
}

/// Folds each column from `start` by `add`, which also gets the row, in bands of rows that `merge`
/// combines: merging `start` must change nothing.
pub(super) fn fold_columns<T: Number, R: Copy + Send + Sync>(
    matrix: &Matrix<T>,
    start: R,
    add: impl Fn(R, usize, T) -> R + Sync,
    merge: impl Fn(R, R) -> R,
) -> Vec<R> {
    const BANDS: usize = 64;
    let height = matrix.rows().div_ceil(BANDS).max(1);
    let bands = parallel::map(matrix.rows().div_ceil(height), |band| {
        let mut folded = vec![start; matrix.columns()];
        for row in band * height..matrix.rows().min((band + 1) * height) {
            for (folded, element) in folded.iter_mut().zip(matrix.row(row)) {
                *folded = add(*folded, row, *element);
            }
        }
        folded
    });
    let mut all = vec![start; matrix.columns()];
    for band in bands {
        for (all, band) in all.iter_mut().zip(band) {
            *all = merge(*all, band);
        }
    }
    all
}

/// The magnitude of an integer, and infinity for anything else.
pub(super) fn integer_magnitude<T: Number>(element: T) -> f64 {
    let integer = element.to_integer();
    integer.map_or(f64::INFINITY, |integer| integer.unsigned_abs() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_a_row_or_a_column_is_found_wherever_it_is() {
        let size = 300;
        let element = |row: usize, col: usize| match (row + 7) % size == col {
            true => -2.0f32,
            false => 1.0,
        };
        let matrix = Matrix::from_elements(size, size, element).unwrap();
        let magnitude = |element: f32| f64::from(element.abs());
        assert_eq!(largest_in_rows(&matrix, 0.0, magnitude), vec![2.0; size]);
        assert_eq!(largest_in_columns(&matrix, 0.0, magnitude), vec![2.0; size]);
        assert_eq!(largest_in_rows(&matrix, 3.0, magnitude), vec![3.0; size]);
        let numbered = fold_columns(
            &matrix,
            0,
            |sum, row, _| sum + row,
            |one, other| one + other,
        );
        assert_eq!(numbered, vec![size * (size - 1) / 2; size]);
    }
}
