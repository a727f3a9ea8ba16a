//! A product of row-major matrices, expressed with column-major matrices as cuBLAS requires.

use std::ffi::{c_int, c_longlong};

use gpu_gemm::{Product, Shape, Stored, Transpose};

use super::CublasError;

/// `CUBLAS_OP_N`.
pub const NOT_TRANSPOSED: c_int = 0;
/// `CUBLAS_OP_T`.
pub const TRANSPOSED: c_int = 1;

/// The arguments that express a row-major product as a column-major one.
///
/// A row-major matrix is, in column-major order, its transpose, and `C^T = B^T * A^T`: so B comes
/// first, and m and n are swapped. An operand that is stored transposed needs the same operation
/// in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnMajor {
    /// Rows and columns of the result, and k.
    pub sides: [c_int; 3],
    /// The operations on the first matrix and on the second.
    pub operations: [c_int; 2],
    /// The leading dimensions of the first matrix, the second and the result.
    pub leading: [c_int; 3],
    pub products: c_int,
    /// Elements from one product's matrices to the next product's, in the same order.
    pub strides: [c_longlong; 3],
}

impl ColumnMajor {
    /// # Errors
    ///
    /// A number does not fit cuBLAS's types.
    pub fn new(product: &Product) -> Result<ColumnMajor, CublasError> {
        let int = |value: usize| c_int::try_from(value).map_err(|_| CublasError::TooLarge);
        let wide = |stride| c_longlong::try_from(stride).map_err(|_| CublasError::TooLarge);
        let operation = |stored: Stored| match stored.transpose {
            Transpose::No => NOT_TRANSPOSED,
            Transpose::Yes => TRANSPOSED,
        };
        let leading = |stored: Stored| int(stored.layout.leading.max(1));
        let Product { a, b, c, .. } = *product;
        let (Shape { m, n, k }, batch) = (product.shape(), product.batch());
        let [stride_a, stride_b, stride_c] = batch.strides;
        Ok(ColumnMajor {
            sides: [int(n)?, int(m)?, int(k)?],
            operations: [operation(b), operation(a)],
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
