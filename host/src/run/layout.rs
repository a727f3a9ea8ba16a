//! A problem as the library sees it: where its matrices lie, and what is done with them.

use std::time::Duration;

use gpu_gemm::{Batch, Buffer, ElementType, Product, Shape, Stored, Transpose};

use crate::data::{Layout, Matrix, Number, Placement, Problem, ProblemError};

/// The result of a kernel.
#[derive(Debug)]
pub struct Run<T> {
    /// C as the kernel left it.
    pub c: Matrix<T>,
    /// From the first launch's start to the last one's end.
    pub time: Duration,
}

/// A matrix in a device's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    /// Its first element.
    pub start: *mut u8,
    /// Elements from the start of a row to the start of the next.
    pub leading: usize,
}

impl Placed {
    /// `matrix`, its buffer copied to element `first` of a device's.
    pub(crate) fn of<T: Number>(buffer: &Buffer<T>, first: usize, matrix: &Matrix<T>) -> Placed {
        let offset = first + matrix.placement().offset;
        Placed {
            start: buffer.start().wrapping_add(offset).cast(),
            leading: matrix.leading(),
        }
    }
}

/// The product of `problem`, its matrices A, B and C, as kernels get them, placed so.
pub(crate) fn product<T: Number>(problem: &Problem<T>, [a, b, c]: [Placed; 3]) -> Product {
    let [transpose_a, transpose_b] = problem.transposes;
    let shape = problem.shape();
    let rows = [
        transpose_a.of((shape.m, shape.k)).0,
        transpose_b.of((shape.k, shape.n)).0,
        shape.m,
    ];
    let leading = [a.leading, b.leading, c.leading];
    let stored = |placed: Placed, transpose| Stored {
        start: placed.start,
        leading: placed.leading,
        transpose,
    };
    Product {
        data_type: problem.data_type(),
        shape: match problem.alpha == T::default() {
            true => Shape { k: 0, ..shape },
            false => shape,
        },
        alpha: problem.alpha.scalar(),
        beta: problem.beta.scalar(),
        a: stored(a, transpose_a),
        b: stored(b, transpose_b),
        c: stored(c, Transpose::No),
        batch: Batch {
            count: problem.batch,
            strides: [0, 1, 2].map(|index| rows[index] * leading[index]),
        },
    }
}

/// Bytes that the start of each row of a pitched matrix is a multiple of: what `cuMemAllocPitch`
/// takes on every GPU so far.
const PITCH_BYTES: usize = 512;

/// A copy of the problem whose rows begin at such multiples.
pub(crate) fn pitched<T: Number>(problem: &Problem<T>) -> Result<Problem<T>, ProblemError> {
    let shape = problem.shape();
    let [a, b] = problem.transposes;
    // Padding goes with a matrix when it is transposed.
    let pitch = |columns: usize, element: ElementType| {
        columns.next_multiple_of(PITCH_BYTES / element.bytes()) - columns
    };
    let padding = [
        pitch(a.of((shape.m, shape.k)).1, problem.inputs),
        pitch(b.of((shape.k, shape.n)).1, problem.inputs),
        pitch(shape.n, T::TYPE),
    ];
    problem.moved_to(Layout::padded(shape, padding, [0; 3]))
}

/// A copy of a matrix, as kernels get it, whose rows begin at such multiples.
pub(super) fn pitched_matrix<T: Number>(matrix: &Matrix<T>) -> Result<Matrix<T>, ProblemError> {
    matrix.moved_to(Placement {
        offset: 0,
        leading: (matrix.columns()).next_multiple_of(PITCH_BYTES / size_of::<T>()),
    })
}

/// A result of such a copy, or of the problem itself, as its own `c` lies.
pub(super) fn as_given<T: Number>(c: &Matrix<T>, result: Matrix<T>) -> Matrix<T> {
    if result.placement() == c.placement() {
        return result;
    }
    let mut given = c.clone();
    given.set_rows(0, &result);
    given
}
