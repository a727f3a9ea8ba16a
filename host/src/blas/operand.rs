//! Matrices in a GPU's memory as a caller passes them, and what can be wrong with them.

use std::marker::PhantomData;

use cust::memory::{DeviceBuffer, DevicePointer, DeviceSlice};
use thiserror::Error;

use super::Transpose;
use crate::device::DeviceError;

/// A or B in a GPU's memory, row-major: a [`DeviceBuffer`], a [`DeviceSlice`] or a part of one, and whether it is multiplied as it is
/// stored or transposed.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    pub(super) pointer: DevicePointer<f32>,
    pub(super) length: usize,
    pub(super) transpose: Transpose,
    memory: PhantomData<&'a DeviceSlice<f32>>,
}

impl Operand<'_> {
    /// The matrix that begins with the first of `length` elements at `pointer`.
    pub fn at(pointer: DevicePointer<f32>, length: usize) -> Operand<'static> {
        Operand {
            pointer,
            length,
            transpose: Transpose::No,
            memory: PhantomData,
        }
    }

    /// The same matrix, multiplied as its transpose (twice: as it is).
    pub fn transposed(self) -> Self {
        self.with(self.transpose.other())
    }

    /// The same matrix, transposed or not.
    pub fn with(self, transpose: Transpose) -> Self {
        Operand { transpose, ..self }
    }
}

impl<'a> From<&'a DeviceSlice<f32>> for Operand<'a> {
    fn from(slice: &'a DeviceSlice<f32>) -> Self {
        Operand::at(slice.as_device_ptr(), slice.len())
    }
}

impl<'a> From<&'a DeviceBuffer<f32>> for Operand<'a> {
    fn from(buffer: &'a DeviceBuffer<f32>) -> Self {
        buffer.as_slice().into()
    }
}

/// C in a GPU's memory, row-major: a [`DeviceBuffer`], or a [`DeviceSlice`] of one.
#[derive(Debug)]
pub struct Target<'a> {
    pub(super) pointer: DevicePointer<f32>,
    pub(super) length: usize,
    memory: PhantomData<&'a mut DeviceSlice<f32>>,
}

impl Target<'_> {
    /// The matrix that begins with the first of `length` elements at `pointer`.
    pub fn at(pointer: DevicePointer<f32>, length: usize) -> Target<'static> {
        Target {
            pointer,
            length,
            memory: PhantomData,
        }
    }
}

impl<'a> From<&'a mut DeviceSlice<f32>> for Target<'a> {
    fn from(slice: &'a mut DeviceSlice<f32>) -> Self {
        Target::at(slice.as_device_ptr(), slice.len())
    }
}

impl<'a> From<&'a mut DeviceBuffer<f32>> for Target<'a> {
    fn from(buffer: &'a mut DeviceBuffer<f32>) -> Self {
        Target::at(buffer.as_device_ptr(), buffer.len())
    }
}

/// Why a product was not launched.
#[derive(Debug, Error)]
pub enum BlasError {
    #[error(
        "{name} is {leading}, shorter than the rows of {columns} elements that it must hold: {matrix} is stored as {rows} x {columns}."
    )]
    ShortLeadingDimension {
        name: &'static str,
        matrix: char,
        leading: usize,
        rows: usize,
        columns: usize,
    },
    #[error(
        "{matrix}, stored as {rows} x {columns} with {name} = {leading}, takes {needed} elements, but its memory has only {length}."
    )]
    ShortBuffer {
        name: &'static str,
        matrix: char,
        leading: usize,
        rows: usize,
        columns: usize,
        needed: usize,
        length: usize,
    },
    #[error(
        "{matrix}, stored as {rows} x {columns} with {name} = {leading}, has more elements than memory can be addressed by."
    )]
    Overflow {
        name: &'static str,
        matrix: char,
        leading: usize,
        rows: usize,
        columns: usize,
    },
    #[error(
        "A plan for this product takes {needed} bytes of workspace, and there are {available}."
    )]
    Workspace { needed: usize, available: usize },
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Checks that a matrix stored as `rows x columns` with a leading dimension fits into `length` elements, and returns the
/// elements from its first to its last: 0 if it has none.
pub(super) fn extent(
    matrix: char,
    name: &'static str,
    (rows, columns): (usize, usize),
    leading: usize,
    length: usize,
) -> Result<usize, BlasError> {
    // As in BLAS, also where there are no rows.
    if leading < columns.max(1) {
        return Err(BlasError::ShortLeadingDimension {
            name,
            matrix,
            leading,
            rows,
            columns,
        });
    }
    if rows == 0 || columns == 0 {
        return Ok(0);
    }
    let needed = (rows - 1)
        .checked_mul(leading)
        .and_then(|before| before.checked_add(columns))
        .filter(|needed| needed.checked_mul(size_of::<f32>()).is_some())
        .ok_or(BlasError::Overflow {
            name,
            matrix,
            leading,
            rows,
            columns,
        })?;
    if needed > length {
        return Err(BlasError::ShortBuffer {
            name,
            matrix,
            leading,
            rows,
            columns,
            needed,
            length,
        });
    }
    Ok(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(shape: (usize, usize), leading: usize, length: usize) -> String {
        match extent('A', "lda", shape, leading, length) {
            Ok(extent) => extent.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_matrix_needs_no_padding_after_its_last_row() {
        assert_eq!(message((3, 5), 8, 21), "21");
        assert_eq!(message((0, 5), 5, 0), "0");
        assert_eq!(message((3, 0), 1, 0), "0");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_sizes() {
        assert_eq!(
            message((3, 5), 4, 100),
            "lda is 4, shorter than the rows of 5 elements that it must hold: A is stored as 3 x 5."
        );
        assert_eq!(
            message((3, 5), 8, 20),
            "A, stored as 3 x 5 with lda = 8, takes 21 elements, but its memory has only 20."
        );
        assert_eq!(
            message((usize::MAX, 5), 8, 20),
            "A, stored as 18446744073709551615 x 5 with lda = 8, has more elements than memory can be addressed by."
        );
        assert!(message((3, 0), 0, 20).starts_with("lda is 0"));
    }
}
