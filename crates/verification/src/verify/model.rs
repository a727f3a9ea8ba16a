//! How results round, on which bounds and alarms depend.

use gpu_gemm::gpu_kernels::spec::{ErrorScale, Rounding};
use gpu_gemm::{Bf16, E4m3, ElementType, F16, Shape};

use super::exact_data::{
    TF32_BITS, exact_data, exact_data_of_bits, precision, small_integers_with_headroom,
};
use super::strassen::Growth;
use crate::data::{Data, Number};

/// How the errors of a result are bounded. It depends on the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorModel {
    /// Each element relative to the terms of its own sum, added in any order.
    Elementwise,
    /// The same, for sums with compensation of rounding errors: the alarm does not grow with k.
    Compensated,
    /// The same, for elements that tensor cores read as TF32, rounded or truncated.
    Tf32,
    /// The same, for elements that the kernel rounds to TF32, to nearest.
    RoundedTf32,
    /// The same, for 16-bit elements that tensor cores multiply exactly and add up in f32; the
    /// result is rounded once.
    Truncated,
    /// The same, where partial sums may be rounded to 16 bits before they are added, as cuBLAS
    /// does by default.
    ReducedInHalves,
    /// Each element relative to the terms of its own sum and the largest elements of its row of A
    /// and column of B; elements are split into two of 16 bits, and tensor cores' sums promoted.
    Split,
    /// Each element relative to the terms of its own sum, for e4m3 that tensor cores multiply
    /// exactly and add up with 14 bits, as [`Rounding::Promoted`].
    Promoted {
        /// The number of products whose sum is added in f32.
        interval: usize,
    },
    /// Each element relative to the largest elements of A and B: Strassen's algorithm
    /// ([`super::strassen`]).
    Strassen {
        /// The size up to which a product is not halved.
        cutoff: usize,
    },
}

impl ErrorModel {
    /// [`ErrorModel::Promoted`] with one interval.
    pub const NOT_PROMOTED: ErrorModel = ErrorModel::Promoted {
        interval: usize::MAX,
    };

    /// The model of a GPU kernel. The bound holds for any order of summation, compensated or not;
    /// integers have none.
    pub fn of(rounding: Rounding) -> ErrorModel {
        match rounding {
            Rounding::Nearest | Rounding::Wrapping => ErrorModel::Elementwise,
            Rounding::Compensated => ErrorModel::Compensated,
            Rounding::Tf32 => ErrorModel::RoundedTf32,
            Rounding::Truncated => ErrorModel::Truncated,
            Rounding::Split => ErrorModel::Split,
            Rounding::Promoted => ErrorModel::Promoted { interval: 128 },
            Rounding::NotPromoted => ErrorModel::NOT_PROMOTED,
        }
    }

    /// The name of the quantity that errors are proportional to: as for kernels ([`ErrorScale`]),
    /// or `matrix` for the largest elements of A and B.
    pub fn scale(self) -> &'static str {
        match self {
            ErrorModel::Split => ErrorScale::RowsAndColumns.name(),
            ErrorModel::Strassen { .. } => "matrix",
            _ => ErrorScale::Terms.name(),
        }
    }

    /// Integers for which neither sums nor intermediate results round, if there are any
    /// ([`super::exact_data`]), with A and B in `inputs`.
    pub fn exact_data_of<T: Number>(self, inputs: ElementType, shape: Shape) -> Option<Data> {
        match self {
            _ if inputs == ElementType::I8 => {
                exact_data_of_bits::<T>(shape.k, precision::<i8>() - 1) // and the sign
            }
            // Splitting an element of 12 bits does not round, nor do the products of one such
            // factor and a small one, the only products in this data.
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
            ErrorModel::Promoted { interval } => {
                // No partial sum has more than 14 bits.
                match shape.k.min(interval) {
                    0..0x400 => exact_data_of_bits::<T>(shape.k, precision::<E4m3>()),
                    0x400..0x4000 => Some(Data::SmallIntegers { largest: 1 }),
                    _ => None,
                }
            }
            ErrorModel::Strassen { cutoff } => {
                let growth = Growth::new(shape, cutoff, 0.0);
                let headroom = growth.intermediate / (shape.k as f64).max(1.0);
                small_integers_with_headroom::<T>(shape.k, headroom)
            }
        }
    }
}
