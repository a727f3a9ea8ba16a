//! A product of row-major matrices as one of column-major matrices, which is what cuBLAS multiplies.

use std::ffi::{c_int, c_longlong};

use gpu_gemm::{Batch, Shape, Transpose};

use super::CublasError;
use crate::run::Placed;

/// `CUBLAS_OP_N`.
pub const NOT_TRANSPOSED: c_int = 0;
/// `CUBLAS_OP_T`.
pub const TRANSPOSED: c_int = 1;

/// The order of the operands, in which a row-major product is a column-major one.
///
/// A row-major matrix is its transpose's column-major form, and `C^T = B^T * A^T`: so B goes first,
/// and m and n change places. What is stored transposed by rows is stored transposed by columns,
/// too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnMajor {
    /// Rows and columns of the result, and the depth.
    pub sides: [c_int; 3],
    /// Of the first matrix and of the second.
    pub operations: [c_int; 2],
    /// Of the first matrix, the second and the result.
    pub leading: [c_int; 3],
    pub products: c_int,
    /// Elements from a product's matrices to the next product's, in that order.
    pub strides: [c_longlong; 3],
}

impl ColumnMajor {
    /// # Errors
    ///
    /// A number is larger than cuBLAS's types.
    pub fn new(
        shape: Shape,
        [transpose_a, transpose_b]: [Transpose; 2],
        [a, b, c]: &[Placed; 3],
        batch: Batch,
    ) -> Result<ColumnMajor, CublasError> {
        let int = |value: usize| c_int::try_from(value).map_err(|_| CublasError::TooLarge);
        let wide = |stride| c_longlong::try_from(stride).map_err(|_| CublasError::TooLarge);
        let operation = |transpose| match transpose {
            Transpose::No => NOT_TRANSPOSED,
            Transpose::Yes => TRANSPOSED,
        };
        let leading = |placed: &Placed| int(placed.leading.max(1));
        let [stride_a, stride_b, stride_c] = batch.strides;
        Ok(ColumnMajor {
            sides: [int(shape.n)?, int(shape.m)?, int(shape.k)?],
            operations: [operation(transpose_b), operation(transpose_a)],
            leading: [leading(b)?, leading(a)?, leading(c)?],
            products: int(batch.count)?,
            strides: [wide(stride_b)?, wide(stride_a)?, wide(stride_c)?],
        })
    }

    /// Rows and columns of the first matrix, the second and the result, as stored.
    pub fn stored(&self) -> [[c_int; 2]; 3] {
        let [m, n, k] = self.sides;
        let stored = |operation, [rows, columns]: [c_int; 2]| match operation {
            NOT_TRANSPOSED => [rows, columns],
            _ => [columns, rows],
        };
        let [first, second] = self.operations;
        [stored(first, [m, k]), stored(second, [k, n]), [m, n]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Layout, Matrix, Problem};
    use crate::run;
    use crate::verify::{self, Coverage};
    use gpu_gemm::gpu_kernels::spec::Tile;

    /// What cuBLAS documents of a column-major product, on memory of the host.
    ///
    /// # Safety
    ///
    /// The matrices are as large as the numbers say.
    unsafe fn multiply(
        product: &ColumnMajor,
        alpha: f32,
        [first, second]: [*const f32; 2],
        beta: f32,
        result: *mut f32,
    ) {
        let [m, n, k] = product.sides.map(|side| side as usize);
        for ([rows, _], leading) in product.stored().into_iter().zip(product.leading) {
            assert!(leading >= rows);
        }
        let [ld_first, ld_second, ld_result] = product.leading.map(|leading| leading as usize);
        let at = |operation, row: usize, column: usize, leading: usize| match operation {
            TRANSPOSED => column + row * leading,
            _ => row + column * leading,
        };
        let [op_first, op_second] = product.operations;
        for index in 0..product.products as usize {
            let [from, by, to] = product.strides.map(|stride| stride as usize * index);
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                // SAFETY: the caller vouches for it.
                unsafe {
                    let term = |l| {
                        *first.add(from + at(op_first, row, l, ld_first))
                            * *second.add(by + at(op_second, l, column, ld_second))
                    };
                    let c = result.add(to + row + column * ld_result);
                    *c = alpha * (0..k).map(term).sum::<f32>() + beta * *c;
                }
            }
        }
    }

    /// Multiplies in all layouts, with `padding` elements between the rows of A, B and C.
    fn check(batch: usize, shape: Shape, padding: [usize; 3]) {
        for transposes in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            let layout = Layout::padded(shape, padding, [0; 3]);
            let data = Data::SmallIntegers { largest: 4 };
            let scalars = (2.0, -1.0);
            let problem = Problem {
                transposes: transposes.map(|index| Transpose::ALL[index]),
                ..Problem::<f32>::random_batch(batch, shape, layout, data, 1, scalars).unwrap()
            };
            let mut computed = problem.c.clone();
            let stored = problem.stored().unwrap();
            let read = |matrix: &Matrix<f32>| Placed {
                start: matrix.row(0).as_ptr().cast_mut().cast(),
                leading: matrix.leading(),
            };
            let c = Placed {
                start: computed.row_mut(0).as_mut_ptr().cast(),
                leading: layout.c.leading,
            };
            let matrices = [read(&stored.a), read(&stored.b), c];
            let of_call = run::product(&problem, matrices).batch;
            let product = ColumnMajor::new(shape, problem.transposes, &matrices, of_call).unwrap();
            let [a, b, c] = matrices.map(|placed| placed.start.cast::<f32>());
            // SAFETY: the matrices are those of the problem.
            unsafe { multiply(&product, 2.0, [b.cast_const(), a.cast_const()], -1.0, c) };
            let tile = Tile { m: 1, n: 1, k: 1 };
            verify::each_product(&problem, &computed, |_, problem, c| {
                verify::exact(problem, c, tile, Coverage::Full)
            })
            .unwrap();
        }
    }

    #[test]
    fn a_column_major_product_is_the_row_major_one() {
        check(1, Shape::new(3, 5, 7), [2, 3, 1]);
        // Columns, one element after the other.
        check(1, Shape::new(3, 1, 7), [0; 3]);
        check(1, Shape::new(3, 5, 1), [0; 3]);
        check(4, Shape::new(3, 5, 7), [2, 3, 1]);
    }

    #[test]
    fn numbers_that_cublas_cannot_hold_are_an_error() {
        let placed = Placed {
            start: std::ptr::null_mut(),
            leading: 1,
        };
        let of = |[m, n, k]: [usize; 3], count, stride| {
            let batch = Batch {
                count,
                strides: [stride; 3],
            };
            ColumnMajor::new(Shape::new(m, n, k), [Transpose::No; 2], &[placed; 3], batch)
        };
        assert!(of([1; 3], i32::MAX as usize, i64::MAX as usize).is_ok());
        for sides in [[1 << 31, 1, 1], [1, 1 << 31, 1], [1, 1, 1 << 31]] {
            assert!(matches!(of(sides, 1, 1), Err(CublasError::TooLarge)));
        }
        assert!(matches!(of([1; 3], 1 << 31, 1), Err(CublasError::TooLarge)));
        assert!(matches!(of([1; 3], 1, 1 << 63), Err(CublasError::TooLarge)));
    }
}
