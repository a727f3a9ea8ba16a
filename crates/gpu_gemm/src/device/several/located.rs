//! Where a matrix lies, or a panel of one: in the memory of a device, and in that of the host.

use std::ops::Range;

use crate::call::Transpose;
use crate::device::cuda::staged::{Direction, Transfer};
use crate::launch::Element;
use crate::product::Stored;

/// A matrix, or a panel of one, in the memory of a device, as it is stored.
#[derive(Clone, Copy)]
pub(super) struct Located<T> {
    pub(super) device: usize,
    pub(super) start: *mut T,
    /// Rows and columns, as stored.
    pub(super) size: (usize, usize),
    pub(super) leading: usize,
}

impl<T: Element> Located<T> {
    pub(super) fn pitch(&self) -> usize {
        self.leading * size_of::<T>()
    }

    pub(super) fn bytes(&self) -> usize {
        self.size.0 * self.size.1 * size_of::<T>()
    }

    /// The same for a product.
    pub(super) fn stored(self, transpose: Transpose) -> Stored {
        Stored {
            start: self.start.cast(),
            leading: self.leading,
            transpose,
        }
    }

    /// The part that begins at this row and column, as stored.
    pub(super) fn part(self, (row, column): (usize, usize), size: (usize, usize)) -> Located<T> {
        Located {
            start: self.start.wrapping_add(row * self.leading + column),
            size,
            ..self
        }
    }
}

/// Rows in memory of the host: where the first begins, and the bytes from there to the next.
pub(super) type HostRows = (*mut u8, usize);

/// Where a part of a matrix of the host begins, with rows and columns as stored.
///
/// # Panics
///
/// If the matrix has not so many rows.
pub(super) fn source<T>(
    (elements, leading): (&[T], usize),
    first: (usize, usize),
    size: (usize, usize),
) -> HostRows {
    let start = match range(leading, first, size) {
        Some(range) => elements[range].as_ptr().cast_mut().cast(),
        None => std::ptr::null_mut(),
    };
    (start, leading * size_of::<T>())
}

/// The same of a matrix that is written.
pub(super) fn target<T>(
    (elements, leading): (&mut [T], usize),
    first: (usize, usize),
    size: (usize, usize),
) -> HostRows {
    let start = match range(leading, first, size) {
        Some(range) => elements[range].as_mut_ptr().cast(),
        None => std::ptr::null_mut(),
    };
    (start, leading * size_of::<T>())
}

/// The elements from the first of a part to its last; `None` if it has none.
fn range(
    leading: usize,
    (row, column): (usize, usize),
    (rows, columns): (usize, usize),
) -> Option<Range<usize>> {
    let first = row * leading + column;
    (rows > 0 && columns > 0).then(|| first..first + (rows - 1) * leading + columns)
}

/// A copy between memory of a GPU and of the host.
pub(super) fn transfer<T: Element>(
    device: Located<T>,
    host: HostRows,
    direction: Direction,
) -> Transfer {
    Transfer {
        direction,
        host,
        device: (device.start as u64, device.pitch()),
        width: device.size.1 * size_of::<T>(),
        height: device.size.0,
    }
}
