//! Makes a problem, runs a kernel or a function of the CPU on it, and judges the result.
//!
//! ```
//! use gpu_gemm::{Choice, Device, DeviceChoice, Shape, gpu_kernels};
//! use verification::data::{Data, Problem, Storage};
//! use verification::verify::{self, Coverage};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open(DeviceChoice::Simulator)?.device;
//! let variant = &gpu_kernels::naive::KERNEL.variants[0];
//! let shape = Shape::new(17, 33, 129);
//! let storage = Storage::padded([1, 2, 3], [3, 2, 1]);
//! let problem = Problem::<f32>::random(shape, storage, Data::Uniform, 42, 1.5, -0.5)?;
//! let run = verification::run::run(&device, Choice::even(variant), &problem, &|| ())?;
//! let verdict = verify::within_bound(&problem, &run.c, variant.tile, Data::Uniform, Coverage::Full)?;
//! assert!(verdict.largest_error <= verdict.bound);
//! # Ok(())
//! # }
//! ```
//!
//! It is a crate of its own because it is the part of the program that computes: in a dev build it
//! is optimised, and the rest of the program is not.

pub mod cpu;
pub mod data;
pub mod epilogue;
#[cfg(not(test))] // tests compile what they call
#[doc(hidden)]
pub mod instances;
pub mod parallel;
#[doc(hidden)] // for tests
pub mod planted;
pub mod run;
pub mod verify;

#[doc(hidden)] // for `by_element`
pub use gpu_gemm::{Bf16, E4m3, ElementType, F16};

/// As the command line and reports spell one of an option's values.
pub fn spelled(value: impl clap::ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}
