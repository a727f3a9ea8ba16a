//! Copies of a problem's matrices in the GPU's memory: as many as together exceed its L2, in the
//! allocations that the contenders take.

use cust::error::CudaResult;
use cust::memory::{CopyDestination, DeviceBuffer};
use gpu_gemm::CudaDevice;
use gpu_gemm::device::cuda::status::during;
use gpu_gemm::gpu_kernels::spec::Allocation;

use crate::data::{Matrix, Number, Problem, Stored};
use crate::run::{Placed, Rows, RunError, placed_at};

/// Copies of the matrices at most.
const MOST_COPIES: usize = 1024;

/// Copies of a problem's matrices in the GPU's memory, in the allocations that the contenders
/// take.
pub(super) struct Copies<Input: Number, T: Number> {
    as_given: Vec<[Placed; 3]>,
    pitched: Vec<[Placed; 3]>,
    /// What those point into: A and B, and C.
    buffers: Vec<([DeviceBuffer<Input>; 2], DeviceBuffer<T>)>,
    rows: Vec<([Rows<Input>; 2], Rows<T>)>,
}

impl<Input: Number, T: Number> Copies<Input, T> {
    /// As many as together are twice the L2, in a quarter of the free memory; at least one of each
    /// of these allocations.
    pub fn new(
        device: &CudaDevice,
        allocations: &[Allocation],
        problem: &Problem<T>,
    ) -> Result<Self, RunError> {
        let is_taken = |allocation| allocations.contains(&allocation);
        let allocated = match is_taken(Allocation::Pitched) {
            true => pitched_bytes(problem),
            false => problem.bytes(),
        };
        let (free, _) = device.memory()?;
        let l2_bytes = device.properties().l2_bytes;
        let count = number_of_copies(l2_bytes, free, problem.bytes(), allocated);
        let mut copies = Copies {
            as_given: Vec::new(),
            pitched: Vec::new(),
            buffers: Vec::new(),
            rows: Vec::new(),
        };
        let stored = problem.stored_as::<Input>()?;
        if is_taken(Allocation::AsGiven) {
            copies.add_as_given(device, &stored, count)?;
        }
        if is_taken(Allocation::Pitched) {
            copies.add_pitched(device, &stored, count)?;
        }
        Ok(copies)
    }

    pub fn matrices(&self, allocation: Allocation) -> &[[Placed; 3]] {
        match allocation {
            Allocation::AsGiven => &self.as_given,
            Allocation::Pitched => &self.pitched,
        }
    }

    /// Makes C of the copies with this number what it is in the problem, `c`.
    pub fn write_c(
        &self,
        allocation: Allocation,
        number: usize,
        c: &Matrix<T>,
    ) -> Result<(), RunError> {
        match allocation {
            Allocation::AsGiven => {
                let copied = upload(&self.buffers[number].1, c.buffer());
                Ok(copied.map_err(during("Copying C to the GPU"))?)
            }
            Allocation::Pitched => Ok(self.rows[number].1.write(0, c)?),
        }
    }

    /// That C as it is now, placed as `like`.
    pub fn read_c(
        &self,
        allocation: Allocation,
        number: usize,
        like: &Matrix<T>,
    ) -> Result<Matrix<T>, RunError> {
        match allocation {
            Allocation::AsGiven => {
                let mut elements = vec![T::default(); like.buffer().len()];
                let buffer = &self.buffers[number].1;
                let copied = buffer.index(0..elements.len()).copy_to(&mut elements[..]);
                copied.map_err(during("Copying C from the GPU"))?;
                Ok(like.with_buffer(elements))
            }
            Allocation::Pitched => {
                let mut c = like.clone();
                self.rows[number].1.read_into(0, &mut c)?;
                Ok(c)
            }
        }
    }

    fn add_as_given(
        &mut self,
        device: &CudaDevice,
        stored: &Stored<'_, T, Input>,
        count: usize,
    ) -> Result<(), RunError> {
        let buffers = &mut self.buffers;
        for _ in 0..count {
            let first = buffers.first();
            let a = copied(device, &stored.a, first.map(|([a, _], _)| a))?;
            let b = copied(device, &stored.b, first.map(|([_, b], _)| b))?;
            let c = copied(device, stored.c, first.map(|(_, c)| c))?;
            self.as_given.push([
                placed_at(a.as_device_ptr(), &stored.a),
                placed_at(b.as_device_ptr(), &stored.b),
                placed_at(c.as_device_ptr(), stored.c),
            ]);
            buffers.push(([a, b], c));
        }
        Ok(())
    }

    fn add_pitched(
        &mut self,
        device: &CudaDevice,
        stored: &Stored<'_, T, Input>,
        count: usize,
    ) -> Result<(), RunError> {
        for _ in 0..count {
            let first = self.rows.first();
            let a = copied_rows(device, &stored.a, first.map(|([a, _], _)| a))?;
            let b = copied_rows(device, &stored.b, first.map(|([_, b], _)| b))?;
            let c = copied_rows(device, stored.c, first.map(|(_, c)| c))?;
            self.pitched.push([a.placed(), b.placed(), c.placed()]);
            self.rows.push(([a, b], c));
        }
        Ok(())
    }
}

/// As many copies as together have twice the bytes of the L2, in a quarter of the free memory.
pub(super) fn number_of_copies(
    l2_bytes: usize,
    free: usize,
    read: usize,
    allocated: usize,
) -> usize {
    let enough = (2 * l2_bytes).div_ceil(read.max(1)) + 1;
    enough
        .min(free / 4 / allocated.max(1))
        .clamp(1, MOST_COPIES)
}

/// The bytes of the matrices where each row begins at a multiple of 512 bytes, as drivers allocate
/// them: a single column takes 128 times its f32 elements.
fn pitched_bytes<T: Number>(problem: &Problem<T>) -> usize {
    let [a, b] = problem.transposes;
    let size = |matrix: &Matrix<T>| (matrix.rows(), matrix.columns());
    let stored = [
        (a.of(size(&problem.a)), problem.inputs),
        (b.of(size(&problem.b)), problem.inputs),
        (size(&problem.c), T::TYPE),
    ];
    stored
        .iter()
        .map(|((rows, columns), element)| {
            let row = (columns * element.bytes()).max(1);
            (rows + 2) * row.next_multiple_of(512)
        })
        .sum()
}

/// A copy of a matrix's buffer in the GPU's memory: of the first such copy, if there is one.
fn copied<T: Number>(
    device: &CudaDevice,
    matrix: &Matrix<T>,
    first: Option<&DeviceBuffer<T>>,
) -> Result<DeviceBuffer<T>, RunError> {
    let mut buffer = device.allocate(matrix.buffer().len().max(1))?;
    match first {
        None => upload(&buffer, matrix.buffer()),
        Some(first) => buffer.copy_from(first),
    }
    .map_err(during("Copying matrices to the GPU"))?;
    Ok(buffer)
}

/// The rows of a matrix in pitched memory: of the first such copy, if there is one.
fn copied_rows<T: Number>(
    device: &CudaDevice,
    matrix: &Matrix<T>,
    first: Option<&Rows<T>>,
) -> Result<Rows<T>, RunError> {
    let rows = Rows::allocate(device, matrix.rows().max(1), matrix.columns().max(1))?;
    match first {
        // The driver copies rows of a few bytes from the host one by one.
        Some(first) => rows.copy_from(first)?,
        None => rows.write(0, matrix)?,
    }
    Ok(rows)
}

fn upload<T: Number>(buffer: &DeviceBuffer<T>, elements: &[T]) -> CudaResult<()> {
    buffer.index(0..elements.len()).copy_from(elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Layout};
    use gpu_gemm::{Shape, Transpose};

    #[test]
    fn copies_exceed_the_l2_and_fit_into_memory() {
        let (kib, mib) = (1 << 10, 1 << 20);
        assert_eq!(number_of_copies(50 * mib, 1 << 36, 48 * mib, 48 * mib), 4);
        assert_eq!(number_of_copies(50 * mib, 1 << 36, 1 << 34, 1 << 34), 1);
        // Half a MiB of columns that take 64 MiB each: memory decides.
        assert_eq!(number_of_copies(50 * mib, 1 << 30, 512 * kib, 64 * mib), 4);
        // Bytes, of which the L2 or the memory decides.
        assert_eq!(number_of_copies(100, 1 << 30, 1, 1), 201);
        assert_eq!(number_of_copies(100, 400, 1, 1), 100);
        assert_eq!(number_of_copies(mib, 1 << 30, 1, 1), MOST_COPIES);
    }

    #[test]
    fn a_pitched_column_takes_a_row_of_memory_for_each_element() {
        let shape = Shape {
            m: 3,
            n: 1,
            k: 1000,
        };
        let layout = Layout::compact(shape);
        let problem = Problem::random(shape, layout, Data::Normal, 1, 1.0_f32, 0.0).unwrap();
        // A: 3 rows of 4000 bytes; B: 1000 of 4; C: 3 of 4; and two rows of poison each.
        assert_eq!(pitched_bytes(&problem), 5 * 4096 + 1002 * 512 + 5 * 512);
        // A: 1000 rows of 12 bytes; B: 1 of 4000.
        let transposed = Problem {
            transposes: [Transpose::Yes; 2],
            ..problem
        };
        assert_eq!(pitched_bytes(&transposed), 1002 * 512 + 3 * 4096 + 5 * 512);
    }
}
