//! The problems that are multiplied to check and to measure: numbers, matrices and products, valid
//! by construction.

mod error;
mod matrix;
mod number;
mod problem;
mod random;
mod scales;

pub use error::ProblemError;
pub use matrix::{Matrix, Placement};
pub use number::{Arithmetic, Number};
pub(crate) use problem::by_inputs;
pub use problem::{Groups, Problem, Storage};
pub use random::Data;
pub use scales::{Granularity, QuantisationError, Scales};
