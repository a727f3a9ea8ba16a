//! One product of matrices on many ranks, over MPI: five layouts, what each sends, what it should
//! take and what it takes.
//!
//! The program is `gemm-mpi`:
//!
//! ```sh
//! cargo build --release -p distributed
//! mpirun -n 4 target/release/gemm-mpi --layout summa --size 2048
//! ```
//!
//! | part | what it does |
//! | --- | --- |
//! | [`share_out`] | who gets what: pure functions of shape and rank count |
//! | [`layout`] | a file for each layout: its formulas, its cost, its messages |
//! | [`comm`] | the only place that knows MPI and sends elements, so the only one that counts them |
//! | [`local`] | the product of one rank: a CPU rung, or a device in whose memory C stays |
//! | [`model`], [`predict`] | the textbook's cost of a layout, from three constants, and for more ranks |
//! | [`constants`] | measures these |
//! | [`evaluate`] | checks and times layouts on some ranks |
//! | [`record`], [`plots`] | what was found, as tables, JSON and plots |
//! | [`clock`], [`volume`] | where the time of a rank goes, and how much is sent |
//! | [`aligned`] | memory that starts where vectors should |
//! | [`faults`] | a rank that fails ends the job |
//! | [`program`] | the command line |

pub mod aligned;
mod arguments;
pub mod clock;
pub mod comm;
pub mod constants;
pub mod evaluate;
pub mod faults;
pub mod layout;
pub mod local;
pub mod model;
pub mod plots;
pub mod predict;
pub mod program;
pub mod record;
pub mod share_out;
mod table;
pub mod volume;

use std::collections::TryReserveError;

use comm::Transmissible;
use gpu_gemm::{Bf16, DataType, F16, MultipliesInto};
use verification::cpu::{Functions, Team, view::View, view::ViewMut};

/// A number that ranks multiply and send to each other.
///
/// Ranks add up products in [`Element::Sum`], and send C in it. So each layout may add to C as
/// often as it likes, and an element of 16 bits is rounded once, by rank 0, from all of its sum.
pub trait Element:
    verification::data::Number
    + Transmissible
    + MultipliesInto<<Self as Element>::Sum, Scalar = <Self as Element>::Sum>
{
    /// The type of sums: the same, but f32 for elements of 16 bits.
    type Sum: Element<Sum = Self::Sum>;

    /// The types of what ranks multiply, elements into sums.
    const PRODUCT: DataType = <Self as MultipliesInto<Self::Sum>>::DATA_TYPE;

    /// The function of a CPU rung, if it multiplies this type into such sums.
    fn multiply_natively(functions: &Functions) -> Option<MultiplyNatively<Self>>;

    /// Each sum rounded to an element; in the same memory where that is the same type.
    fn rounded(sums: Vec<Self::Sum>) -> Result<Vec<Self>, TryReserveError>;

    /// The same number, as a sum.
    fn as_sum(self) -> Self::Sum;
}

/// A CPU rung's `C += A * B`, by a team of threads.
pub type MultiplyNatively<T> =
    fn(View<'_, T>, View<'_, T>, ViewMut<'_, <T as Element>::Sum>, &Team);

/// Those whose sums are of the same type.
macro_rules! sums_of_the_same_type {
    ($($number:ident),*) => {
        $(impl Element for $number {
            type Sum = $number;

            fn multiply_natively(functions: &Functions) -> Option<MultiplyNatively<$number>> {
                functions.of::<$number>()
            }

            fn rounded(sums: Vec<$number>) -> Result<Vec<$number>, TryReserveError> {
                Ok(sums)
            }

            fn as_sum(self) -> $number {
                self
            }
        })*
    };
}

/// Those of 16 bits, whose sums are f32. No CPU rung multiplies them.
macro_rules! sums_of_f32 {
    ($($number:ident),*) => {
        $(impl Element for $number {
            type Sum = f32;

            fn multiply_natively(_: &Functions) -> Option<MultiplyNatively<$number>> {
                None
            }

            fn rounded(sums: Vec<f32>) -> Result<Vec<$number>, TryReserveError> {
                let mut rounded = Vec::new();
                rounded.try_reserve_exact(sums.len())?;
                rounded.extend(sums.into_iter().map($number::from_f32));
                Ok(rounded)
            }

            fn as_sum(self) -> f32 {
                self.to_f32()
            }
        })*
    };
}

sums_of_the_same_type!(f32, f64, i32);
sums_of_f32!(Bf16, F16);
