//! How results round: what bounds and alarms depend on.

use gpu_gemm::gpu_kernels::spec::{ErrorScale, Rounding};
use gpu_gemm::{Bf16, ElementType, F16, Shape};

use super::exact_data::{
    TF32_BITS, exact_data, exact_data_of_bits, precision, small_integers_with_headroom,
};
use super::strassen::Growth;
use crate::data::{Data, Number};

/// How the errors of a result are bounded, which depends on its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorModel {
    /// Each element against the terms of its own sum, in whatever order they are added.
    Elementwise,
    /// The same, for sums that carry along what rounding takes from them: the alarm does not
    /// grow with k.
    Compensated,
    /// The same, of elements that tensor cores read as TF32, rounded or cut off, and add up.
    Tf32,
    /// The same, of elements that the kernel rounds to TF32, to nearest.
    RoundedTf32,
    /// The same, of elements of 16 bits that tensor cores multiply as they are and add up in f32;
    /// the result is rounded once.
    Truncated,
    /// The same, where parts of a sum may be rounded to 16 bits before they are added, as cuBLAS does
    /// by default.
    ReducedInHalves,
    /// Each element against the terms of its own sum and the largest elements of its row of A and
    /// its column of B, which are split into two of 16 bits; tensor cores' sums are promoted.
    Split,
    /// Each element against the largest elements of A and B: Strassen's algorithm
    /// ([`super::strassen`]).
    Strassen {
        /// The size that is no longer halved.
        cutoff: usize,
    },
}

impl ErrorModel {
    /// The model of a GPU kernel. The bound holds whatever the order of summation, compensated
    /// or not; integers have none.
    pub fn of(rounding: Rounding) -> ErrorModel {
        match rounding {
            Rounding::Nearest | Rounding::Wrapping => ErrorModel::Elementwise,
            Rounding::Compensated => ErrorModel::Compensated,
            Rounding::Tf32 => ErrorModel::RoundedTf32,
            Rounding::Truncated => ErrorModel::Truncated,
            Rounding::Split => ErrorModel::Split,
        }
    }

    /// The quantity that errors are proportional to, in a word: that of kernels ([`ErrorScale`]),
    /// and `matrix` for the largest elements of A and B.
    pub fn scale(self) -> &'static str {
        match self {
            ErrorModel::Split => ErrorScale::RowsAndColumns.name(),
            ErrorModel::Strassen { .. } => "matrix",
            _ => ErrorScale::Terms.name(),
        }
    }

    /// Integers of which neither sums nor intermediate results round, if there are any
    /// ([`super::exact_data`]), where A and B are in `inputs`.
    pub fn exact_data_of<T: Number>(self, inputs: ElementType, shape: Shape) -> Option<Data> {
        match self {
            // Of a split element of 12 bits neither part rounds, nor do the products of one such
            // factor and a small one, which are all that there is in this data.
            ErrorModel::Elementwise | ErrorModel::Compensated | ErrorModel::Split => {
                exact_data::<T>(shape.k)
            }
            ErrorModel::Tf32 | ErrorModel::ReducedInHalves => None,
            ErrorModel::RoundedTf32 => exact_data_of_bits::<T>(shape.k, TF32_BITS),
            ErrorModel::Truncated => {
                let bits = match inputs {
                    ElementType::Bf16 => precision::<Bf16>(),
                    ElementType::F16 => precision::<F16>(),
                    _ => precision::<T>(),
                };
                exact_data_of_bits::<T>(shape.k, bits)
            }
            ErrorModel::Strassen { cutoff } => {
                let growth = Growth::new(shape, cutoff, 0.0);
                let headroom = growth.intermediate / (shape.k as f64).max(1.0);
                small_integers_with_headroom::<T>(shape.k, headroom)
            }
        }
    }
}
