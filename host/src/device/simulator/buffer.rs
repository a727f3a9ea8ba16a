//! Memory of the simulated GPU: aligned as the driver aligns it, between guard bands.

use crate::device::error::Trespass;
use crate::device::guard::{self, GUARD};
use crate::element::Element;
use crate::problem::Matrix;

/// Bytes that every buffer starts at a multiple of, as the driver's allocations do: kernels choose by alignment.
pub const ALIGNMENT: usize = 256;

/// A copy of a matrix's buffer, aligned, between guard bands.
pub(super) struct Guarded<T> {
    storage: Vec<T>,
    /// Where the buffer starts in `storage`.
    start: usize,
    /// Elements of the buffer.
    length: usize,
    /// Where the matrix starts in the buffer, and its extent from there.
    offset: usize,
    extent: usize,
    pub leading: usize,
}

impl<T: Element> Guarded<T> {
    /// A copy of a matrix's buffer.
    pub fn new(matrix: &Matrix<T>) -> Self {
        let mut guarded = Guarded::poison(matrix.buffer().len());
        guarded.storage[guarded.start..][..guarded.length].copy_from_slice(matrix.buffer());
        Guarded {
            offset: matrix.placement().offset,
            extent: matrix.extent(),
            leading: matrix.leading(),
            ..guarded
        }
    }

    /// Elements that nobody has written yet.
    pub fn poison(length: usize) -> Self {
        let slack = ALIGNMENT / size_of::<T>();
        let storage = vec![T::POISON; length + 2 * GUARD + slack];
        let start = GUARD + storage[GUARD..].as_ptr().align_offset(ALIGNMENT).min(slack);
        Guarded {
            storage,
            start,
            length,
            offset: 0,
            extent: length,
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

    /// From the first element of the matrix to the last.
    pub fn elements(&self) -> &[T] {
        self.rows_from(0)
    }

    /// From the first element of `row` to the last element of the matrix; empty for an empty matrix.
    pub fn rows_from(&self, row: usize) -> &[T] {
        let skipped = (row * self.leading).min(self.extent);
        let first = self.start + self.offset;
        &self.storage[first + skipped..first + self.extent]
    }

    pub fn elements_pointer(&mut self) -> *mut T {
        self.storage[self.start + self.offset..].as_mut_ptr()
    }
}

/// A pointer that the threads of a launch share, as they do on a GPU.
#[derive(Clone, Copy)]
pub(super) struct SharedPointer<T>(pub *mut T);

// SAFETY: it only carries an address; the kernels that write through it promise to write disjoint elements.
unsafe impl<T: Send> Sync for SharedPointer<T> {}

impl<T> SharedPointer<T> {
    pub fn get(&self) -> *mut T {
        self.0
    }
}
