//! Matrices in the GPU's memory, surrounded by poison that shows whether a kernel wrote where it
//! must not: compact, as the caller has them, or pitched, as the driver prefers them.

use cust::memory::{CopyDestination, DeviceBuffer, DevicePointer};

use gpu_gemm::CudaDevice;
use gpu_gemm::device::cuda::status::during;

use super::error::{RunError, Trespass};
use super::guard::{self, GUARD};
use super::layout::Placed;
use super::pitch::Rows;
use crate::data::{Matrix, Number, Placement};

/// `matrix`, its buffer copied to `start`.
pub(crate) fn placed_at<T: Number>(start: DevicePointer<T>, matrix: &Matrix<T>) -> Placed {
    let first = start.wrapping_add(matrix.placement().offset);
    Placed {
        start: first.as_ptr().cast_mut().cast(),
        leading: matrix.leading(),
    }
}

/// The outcome of a check: an outer error where the device failed, an inner one where the kernel
/// did.
pub(crate) type Checked<R> = Result<Result<R, Trespass>, RunError>;

/// A copy of a matrix in the GPU's memory.
pub(crate) trait Uploaded<T: Number>: Sized {
    /// Copies `matrix` to the GPU.
    fn upload(device: &CudaDevice, matrix: &Matrix<T>) -> Result<Self, RunError>;

    /// The copy of `matrix`, for a kernel.
    fn placed(&self, matrix: &Matrix<T>) -> Placed;

    /// Checks that a kernel left this copy of `matrix`, and everything around it, unchanged.
    fn check_unchanged(&self, name: char, matrix: &Matrix<T>) -> Checked<()>;

    /// What a kernel made of this copy of `matrix`; everything around it must be unchanged.
    fn result(&self, name: char, matrix: &Matrix<T>) -> Checked<Matrix<T>>;
}

/// A copy of a matrix's buffer in the GPU's memory, between guard bands.
pub(crate) struct Guarded<T: Number> {
    storage: DeviceBuffer<T>,
    /// Elements between the bands.
    length: usize,
}

impl<T: Number> Uploaded<T> for Guarded<T> {
    fn upload(device: &CudaDevice, matrix: &Matrix<T>) -> Result<Self, RunError> {
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

    fn placed(&self, matrix: &Matrix<T>) -> Placed {
        placed_at(self.storage.as_device_ptr().wrapping_add(GUARD), matrix)
    }

    fn check_unchanged(&self, name: char, matrix: &Matrix<T>) -> Checked<()> {
        // Piece by piece: a matrix may be larger than the free part of the host's memory.
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

impl<T: Number> Guarded<T> {
    /// `length` elements from `start` of the storage on.
    fn read(&self, start: usize, length: usize) -> Result<Vec<T>, RunError> {
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

/// A copy of a matrix whose rows lie as far apart as the driver says is best, with a row of
/// poison before and after.
pub(crate) struct Pitched<T: Number> {
    rows: Rows<T>,
    /// What the memory held at first, up to the last row of poison.
    image: Matrix<T>,
}

impl<T: Number> Uploaded<T> for Pitched<T> {
    fn upload(device: &CudaDevice, matrix: &Matrix<T>) -> Result<Self, RunError> {
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
            image: matrix.moved_to(behind_poison)?,
        })
    }

    fn placed(&self, _: &Matrix<T>) -> Placed {
        placed_at(self.rows.start(), &self.image)
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
