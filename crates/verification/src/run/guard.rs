//! Guard bands: poison before and after every buffer that a kernel gets, checked bit for bit
//! afterwards.
//!
//! ```text
//!     | guard | offset | row 0 | padding | row 1 | padding | ... | guard |
//!             ^ the matrix's buffer                              ^ its end
//! ```

use gpu_gemm::{Backend, Buffer, DeviceError};

use super::error::Trespass;
use crate::data::{Matrix, Number};

/// Elements of a guard band: a multiple of every vector access's width, and wider than a row of
/// the widest tile.
pub const GUARD: usize = 1024;

/// `buffer` between two guard bands.
pub fn surround<T: Number>(buffer: &[T]) -> Vec<T> {
    let mut guarded = Vec::with_capacity(buffer.len() + 2 * GUARD);
    guarded.resize(GUARD, T::POISON);
    guarded.extend_from_slice(buffer);
    guarded.resize(buffer.len() + 2 * GUARD, T::POISON);
    guarded
}

/// Checks the two guard bands of a buffer of matrix `name`. The error names the written element
/// that is nearest to the buffer.
pub fn check_bands<T: Number>(name: char, before: &[T], after: &[T]) -> Result<(), Trespass> {
    let written = |element: &T| element.bits() != T::POISON.bits();
    let past = after.iter().position(written).map(usize::cast_signed);
    let ahead = || {
        before
            .iter()
            .rev()
            .position(written)
            .map(|at| -1 - at.cast_signed())
    };
    past.or_else(ahead).map_or(Ok(()), |distance| {
        let matrix = name;
        Err(Trespass::Guard { matrix, distance })
    })
}

/// Checks that matrix `name`, read back from `start` of its buffer on, is unchanged. The error
/// names the first element that was written.
pub fn check_input<T: Number>(
    name: char,
    before: &[T],
    after: &[T],
    start: usize,
) -> Result<(), Trespass> {
    let mut pairs = before.iter().zip(after);
    let written = pairs.position(|(before, after)| before.bits() != after.bits());
    written.map_or(Ok(()), |index| {
        let (matrix, index) = (name, start + index);
        Err(Trespass::Input { matrix, index })
    })
}

/// Checks that the padding in C's buffer is unchanged. The error names the first element that was
/// written.
pub fn check_padding<T: Number>(before: &Matrix<T>, after: &[T]) -> Result<(), Trespass> {
    let written = before.first_padding_difference(after);
    written.map_or(Ok(()), |index| Err(Trespass::Padding { index }))
}

/// The outcome of a check: the outer error is the device's, the inner one the kernel's.
pub(super) type Checked<R> = Result<Result<R, Trespass>, DeviceError>;

/// A copy of a matrix's buffer in the memory of a device, between guard bands.
pub(super) struct Guarded<T: Number> {
    storage: Buffer<T>,
    /// The number of elements between the bands.
    length: usize,
}

impl<T: Number> Guarded<T> {
    pub fn upload(backend: &dyn Backend, matrix: &Matrix<T>) -> Result<Self, DeviceError> {
        let buffer = matrix.buffer();
        let length = buffer.len();
        let mut storage = Buffer::new(backend, length + 2 * GUARD)?;
        let band = [T::POISON; GUARD];
        storage.write(backend, 0, &band)?;
        storage.write(backend, GUARD, buffer)?;
        storage.write(backend, GUARD + length, &band)?;
        Ok(Guarded { storage, length })
    }

    /// Copies `matrix` here again, after a kernel wrote between the bands.
    pub fn restore(
        &mut self,
        backend: &dyn Backend,
        matrix: &Matrix<T>,
    ) -> Result<(), DeviceError> {
        self.storage.write(backend, GUARD, matrix.buffer())
    }

    /// A copy in new memory, bands included.
    pub fn duplicate(&self, backend: &dyn Backend) -> Result<Self, DeviceError> {
        Ok(Guarded {
            storage: self.storage.duplicate(backend)?,
            ..*self
        })
    }

    /// The address of the first element of this copy of `matrix`, for a kernel.
    pub fn start(&self, matrix: &Matrix<T>) -> *mut u8 {
        let first = GUARD + matrix.placement().offset;
        self.storage.start().wrapping_add(first).cast()
    }

    /// Checks that a kernel left this copy of `matrix`, and the bands, unchanged.
    pub fn check_unchanged(
        &self,
        backend: &dyn Backend,
        name: char,
        matrix: &Matrix<T>,
    ) -> Checked<()> {
        // In pieces: a matrix may be larger than the host's free memory.
        const PIECE: usize = 1 << 24;
        for (index, before) in matrix.buffer().chunks(PIECE).enumerate() {
            let first = index * PIECE;
            let after = self.storage.read(backend, GUARD + first, before.len())?;
            if let Err(what) = check_input(name, before, &after, first) {
                return Ok(Err(what));
            }
        }
        self.check_bands(backend, name)
    }

    /// Reads back this copy of `matrix` after a kernel; everything around it must be unchanged.
    pub fn result(
        &self,
        backend: &dyn Backend,
        name: char,
        matrix: &Matrix<T>,
    ) -> Checked<Matrix<T>> {
        let buffer = self.storage.read(backend, GUARD, self.length)?;
        if let Err(what) = check_padding(matrix, &buffer) {
            return Ok(Err(what));
        }
        let bands = self.check_bands(backend, name)?;
        Ok(bands.map(|()| matrix.with_buffer(buffer)))
    }

    /// Checks the bands of `name`.
    pub fn check_bands(&self, backend: &dyn Backend, name: char) -> Checked<()> {
        let before = self.storage.read(backend, 0, GUARD)?;
        let after = self.storage.read(backend, GUARD + self.length, GUARD)?;
        Ok(check_bands(name, &before, &after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_next_to_the_buffer_is_found_on_either_side() {
        for (at, value, distance) in [
            (GUARD, 7.0, None),
            (GUARD - 1, 7.0, Some(-1)),
            (GUARD + 3, 7.0, Some(0)),
            (0, f32::NAN, Some(-(GUARD as isize))),
        ] {
            let mut guarded = surround(&[1.0f32, 2.0, 3.0]);
            guarded[at] = value;
            let found = check_bands('A', &guarded[..GUARD], &guarded[GUARD + 3..]);
            let matrix = 'A';
            let trespass = distance.map(|distance| Trespass::Guard { matrix, distance });
            assert_eq!(found.err(), trespass);
        }
    }

    #[test]
    fn an_input_that_changed_sign_of_zero_is_found() {
        let (matrix, index) = ('B', 11);
        let found = check_input('B', &[1.0f32, 0.0], &[1.0, -0.0], 10);
        assert_eq!(found, Err(Trespass::Input { matrix, index }));
        assert_eq!(check_input('B', &[f32::NAN], &[f32::NAN], 0), Ok(()));
    }
}
