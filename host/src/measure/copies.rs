//! Copies of a problem's matrices in a device's memory: as many as together exceed its cache.

use std::any::Any;
use std::cell::RefCell;

use gpu_gemm::{Backend, Buffer, DeviceError};

use crate::data::{Matrix, Number, Problem, by_inputs};
use crate::run::{Placed, RunError};

/// What decides how many copies there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes of the cache that all launches share.
    pub cache: usize,
    /// Bytes of memory that are free.
    pub free: usize,
    /// Copies at most.
    pub most: usize,
}

impl Room {
    /// Enough copies for twice the bytes of the cache, if a quarter of the free memory holds them:
    /// launches read `read` bytes of a copy that takes `allocated`.
    pub fn copies(self, read: usize, allocated: usize) -> usize {
        let enough = (2 * self.cache).div_ceil(read.max(1)) + 1;
        enough
            .min(self.free / 4 / allocated.max(1))
            .clamp(1, self.most)
    }
}

/// Copies of a problem's matrices.
pub(super) struct Copies<T: Number> {
    placed: Vec<[Placed; 3]>,
    /// C of each.
    c: RefCell<Vec<Buffer<T>>>,
    /// A and B, in elements of their own.
    _inputs: Box<dyn Any>,
}

impl<T: Number> Copies<T> {
    pub fn new(
        backend: &dyn Backend,
        problem: &Problem<T>,
        count: usize,
    ) -> Result<Self, RunError> {
        by_inputs!(problem, copies_as::<_, T>(backend, problem, count))
    }

    /// Where A, B and C of each are.
    pub fn placed(&self) -> &[[Placed; 3]] {
        &self.placed
    }

    /// Makes C of the copies with this number what it is in the problem, `c`.
    pub fn write_c(
        &self,
        backend: &dyn Backend,
        number: usize,
        c: &Matrix<T>,
    ) -> Result<(), DeviceError> {
        self.c.borrow_mut()[number].write(backend, 0, c.buffer())
    }

    /// That C as it is now, placed as `like`.
    pub fn read_c(
        &self,
        backend: &dyn Backend,
        number: usize,
        like: &Matrix<T>,
    ) -> Result<Matrix<T>, DeviceError> {
        let elements = self.c.borrow()[number].read(backend, 0, like.buffer().len())?;
        Ok(like.with_buffer(elements))
    }
}

fn copies_as<Input: Number, T: Number>(
    backend: &dyn Backend,
    problem: &Problem<T>,
    count: usize,
) -> Result<Copies<T>, RunError> {
    let stored = problem.stored_as::<Input>()?;
    let (mut inputs, mut all_c, mut placed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let first: Option<&[Buffer<Input>; 2]> = inputs.first();
        let a = copied(backend, &stored.a, first.map(|[a, _]| a))?;
        let b = copied(backend, &stored.b, first.map(|[_, b]| b))?;
        let c = copied(backend, stored.c, all_c.first())?;
        placed.push([
            Placed::of(&a, 0, &stored.a),
            Placed::of(&b, 0, &stored.b),
            Placed::of(&c, 0, stored.c),
        ]);
        inputs.push([a, b]);
        all_c.push(c);
    }
    Ok(Copies {
        placed,
        c: RefCell::new(all_c),
        _inputs: Box::new(inputs),
    })
}

/// A copy of a matrix's buffer in the device's memory: of the first such copy, if there is one.
fn copied<T: Number>(
    backend: &dyn Backend,
    matrix: &Matrix<T>,
    first: Option<&Buffer<T>>,
) -> Result<Buffer<T>, DeviceError> {
    if let Some(first) = first {
        return first.duplicate(backend);
    }
    let mut buffer = Buffer::new(backend, matrix.buffer().len())?;
    buffer.write(backend, 0, matrix.buffer())?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_exceed_the_cache_and_fit_into_memory() {
        let (kib, mib) = (1 << 10, 1 << 20);
        let copies = |cache, free, read, allocated| {
            let most = 1024;
            Room { cache, free, most }.copies(read, allocated)
        };
        assert_eq!(copies(50 * mib, 1 << 36, 48 * mib, 48 * mib), 4);
        assert_eq!(copies(50 * mib, 1 << 36, 1 << 34, 1 << 34), 1);
        // Half a MiB of columns that take 64 MiB each: memory decides.
        assert_eq!(copies(50 * mib, 1 << 30, 512 * kib, 64 * mib), 4);
        // Bytes, of which the cache or the memory decides.
        assert_eq!(copies(100, 1 << 30, 1, 1), 201);
        assert_eq!(copies(100, 400, 1, 1), 100);
        assert_eq!(copies(mib, 1 << 30, 1, 1), 1024);
    }
}
