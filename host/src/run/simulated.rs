//! Memory of the simulated GPU: aligned as the driver aligns it, between guard bands.

use super::error::Trespass;
use super::guard::{self, GUARD};
use super::layout::Placed;
use crate::data::{Matrix, Number};

/// Bytes that every buffer starts at a multiple of, as the driver's allocations do: kernels
/// choose by alignment.
pub const ALIGNMENT: usize = 256;

/// A copy of a matrix's buffer, aligned, between guard bands.
pub(super) struct Guarded<T> {
    storage: Vec<T>,
    /// Where the buffer starts in `storage`.
    start: usize,
    /// Elements of the buffer.
    length: usize,
    /// Where the matrix starts in the buffer.
    offset: usize,
    leading: usize,
}

impl<T: Number> Guarded<T> {
    /// A copy of a matrix's buffer.
    pub fn new(matrix: &Matrix<T>) -> Self {
        let mut guarded = Guarded::poison(matrix.buffer().len());
        guarded.storage[guarded.start..][..guarded.length].copy_from_slice(matrix.buffer());
        Guarded {
            offset: matrix.placement().offset,
            leading: matrix.leading(),
            ..guarded
        }
    }

    /// Elements that have not been written yet.
    pub fn poison(length: usize) -> Self {
        let slack = ALIGNMENT / size_of::<T>();
        let storage = vec![T::POISON; length + 2 * GUARD + slack];
        let start = GUARD + storage[GUARD..].as_ptr().align_offset(ALIGNMENT).min(slack);
        Guarded {
            storage,
            start,
            length,
            offset: 0,
            leading: 0,
        }
    }

    pub fn buffer(&self) -> &[T] {
        &self.storage[self.start..self.start + self.length]
    }

    /// Checks the guard bands.
    pub fn check(&self, name: char) -> Result<(), Trespass> {
        guard::check_bands(
            name,
            &self.storage[..self.start],
            &self.storage[self.start + self.length..],
        )
    }

    /// The matrix, for a launch.
    pub fn placed(&mut self) -> Placed {
        Placed {
            start: self.storage[self.start + self.offset..].as_mut_ptr().cast(),
            leading: self.leading,
        }
    }
}
