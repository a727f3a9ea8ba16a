//! Matrices in the GPU's memory, surrounded by poison that shows whether a kernel wrote where it must not: packed, as the
//! caller has them, or pitched, as the driver likes them.

use cust::memory::{CopyDestination, DeviceBuffer, DevicePointer};

use super::cuda::{CudaDevice, during};
use super::error::{DeviceError, Trespass};
use super::guard::{self, GUARD};
use super::pitch::Rows;
use crate::blas::Transpose;
use crate::element::Element;
use crate::problem::{Matrix, Placement};

/// A matrix in the GPU's memory.
#[derive(Clone, Copy)]
pub(crate) struct Operand<T: Element> {
    /// Its first element.
    pub pointer: DevicePointer<T>,
    /// Elements from the first to the last.
    pub extent: usize,
    /// Elements from the start of a row to the start of the next.
    pub leading: usize,
}

impl<T: Element> Operand<T> {
    /// `matrix`, its buffer copied to `start`.
    pub fn at(start: DevicePointer<T>, matrix: &Matrix<T>) -> Self {
        Operand {
            pointer: start.wrapping_add(matrix.placement().offset),
            extent: matrix.extent(),
            leading: matrix.leading(),
        }
    }

    /// What begins at `row` and `column` of a matrix, or of one that is stored as its transpose.
    pub fn starting_at(&self, row: usize, column: usize, transpose: Transpose) -> Self {
        let (row, column) = match transpose {
            Transpose::No => (row, column),
            Transpose::Yes => (column, row),
        };
        let skipped = row * self.leading + column;
        Operand {
            pointer: self.pointer.wrapping_add(skipped),
            extent: self.extent.saturating_sub(skipped),
            leading: self.leading,
        }
    }
}

/// The three matrices of a problem.
#[derive(Clone, Copy)]
pub(crate) struct Operands<T: Element> {
    pub a: Operand<T>,
    pub b: Operand<T>,
    pub c: Operand<T>,
}

/// The outcome of a check: an outer error where the device failed, an inner one where the kernel did.
pub(crate) type Checked<R> = Result<Result<R, Trespass>, DeviceError>;

/// A copy of a matrix in the GPU's memory.
pub(crate) trait Uploaded<T: Element>: Sized {
    /// Copies `matrix` to the GPU.
    fn upload(device: &CudaDevice, matrix: &Matrix<T>) -> Result<Self, DeviceError>;

    /// The copy of `matrix`, for a kernel.
    fn operand(&self, matrix: &Matrix<T>) -> Operand<T>;

    /// Checks that a kernel left this copy of `matrix`, and all around it, as it was.
    fn check_unchanged(&self, name: char, matrix: &Matrix<T>) -> Checked<()>;

    /// What a kernel made of this copy of `matrix`; all around it must be as it was.
    fn result(&self, name: char, matrix: &Matrix<T>) -> Checked<Matrix<T>>;
}

/// A copy of a matrix's buffer in the GPU's memory, between guard bands.
pub(crate) struct Guarded<T: Element> {
    storage: DeviceBuffer<T>,
    /// Elements between the bands.
    length: usize,
}

impl<T: Element> Uploaded<T> for Guarded<T> {
    fn upload(device: &CudaDevice, matrix: &Matrix<T>) -> Result<Self, DeviceError> {
        let buffer = matrix.buffer();
        let length = buffer.len();
        let storage = device.allocate(length + 2 * GUARD)?;
        let copied = |range, elements: &[T]| {
            storage
                .index(range)
                .copy_from(elements)
                .map_err(during("Copying to the GPU"))
        };
        let band = [T::POISON; GUARD];
        copied(0..GUARD, &band)?;
        copied(GUARD..GUARD + length, buffer)?;
        copied(GUARD + length..2 * GUARD + length, &band)?;
        Ok(Guarded { storage, length })
    }

    fn operand(&self, matrix: &Matrix<T>) -> Operand<T> {
        Operand::at(self.storage.as_device_ptr().wrapping_add(GUARD), matrix)
    }

    fn check_unchanged(&self, name: char, matrix: &Matrix<T>) -> Checked<()> {
        // Piece by piece: a matrix may be larger than what is left of the host's memory.
        const PIECE: usize = 1 << 24;
        for (index, before) in matrix.buffer().chunks(PIECE).enumerate() {
            let after = self.read(GUARD + index * PIECE, before.len())?;
            if let Err(what) = guard::check_input(name, before, &after, index * PIECE) {
                return Ok(Err(what));
            }
        }
        self.check_bands(name)
    }

    fn result(&self, name: char, matrix: &Matrix<T>) -> Checked<Matrix<T>> {
        let buffer = self.read(GUARD, self.length)?;
        if let Err(what) = guard::check_padding(matrix, &buffer) {
            return Ok(Err(what));
        }
        Ok(self.check_bands(name)?.map(|()| matrix.with_buffer(buffer)))
    }
}

impl<T: Element> Guarded<T> {
    /// `length` elements from `start` of the storage on.
    fn read(&self, start: usize, length: usize) -> Result<Vec<T>, DeviceError> {
        let mut elements = vec![T::default(); length];
        self.storage
            .index(start..start + length)
            .copy_to(&mut elements[..])
            .map_err(during("Copying from the GPU"))?;
        Ok(elements)
    }

    /// Checks the bands of `name`.
    pub fn check_bands(&self, name: char) -> Checked<()> {
        let before = self.read(0, GUARD)?;
        let after = self.read(GUARD + self.length, GUARD)?;
        Ok(guard::check_bands(name, &before, &after))
    }
}

/// A copy of a matrix whose rows lie as far apart as the driver says is best, with a row of poison before and after.
pub(crate) struct Pitched<T: Element> {
    rows: Rows<T>,
    /// What the memory held at first, up to the last row of poison.
    image: Matrix<T>,
}

impl<T: Element> Uploaded<T> for Pitched<T> {
    fn upload(device: &CudaDevice, matrix: &Matrix<T>) -> Result<Self, DeviceError> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let memory = Rows::allocate(device, rows + 2, columns.max(1))?;
        let pitch = memory.pitch();
        memory.fill(T::POISON)?;
        memory.write(1, matrix)?;
        let behind_poison = Placement {
            offset: pitch,
            leading: pitch,
        };
        Ok(Pitched {
            rows: memory,
            image: matrix.moved_to(behind_poison).map_err(DeviceError::Host)?,
        })
    }

    fn operand(&self, _: &Matrix<T>) -> Operand<T> {
        Operand::at(self.rows.start(), &self.image)
    }

    fn check_unchanged(&self, name: char, _: &Matrix<T>) -> Checked<()> {
        let now = self.rows.read()?;
        let (image, after) = now.split_at(self.image.buffer().len());
        let checked = guard::check_input(name, self.image.buffer(), image, 0);
        Ok(checked.and_then(|()| guard::check_bands(name, &[], after)))
    }

    fn result(&self, name: char, matrix: &Matrix<T>) -> Checked<Matrix<T>> {
        let now = self.rows.read()?;
        let (image, after) = now.split_at(self.image.buffer().len());
        let checked = guard::check_padding(&self.image, image)
            .and_then(|()| guard::check_bands(name, &[], after));
        if let Err(what) = checked {
            return Ok(Err(what));
        }
        let mut result = matrix.clone();
        self.rows.read_into(1, &mut result)?;
        Ok(Ok(result))
    }
}
