//! Proves, measures and explains GEMM kernels, on a GPU or in the simulator, and GEMM functions
//! for the CPU. It is a library for tests, and the program that [`cli`] describes. [`gpu_gemm`]
//! chooses and launches the kernels.
//!
//! ```
//! use gpu_gemm::{Choice, Device, DeviceChoice, Shape, gpu_kernels};
//! use host::data::{Data, Problem, Storage};
//! use host::verify::{self, Coverage};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open(DeviceChoice::Simulator)?.device;
//! let variant = &gpu_kernels::naive::KERNEL.variants[0];
//! let shape = Shape::new(17, 33, 129);
//! let storage = Storage::padded([1, 2, 3], [3, 2, 1]);
//! let problem = Problem::<f32>::random(shape, storage, Data::Uniform, 42, 1.5, -0.5)?;
//! let run = host::run::run(&device, Choice::even(variant), &problem, &|| ())?;
//! let proof = verify::proven(&problem, &run.c, variant.tile, Data::Uniform, Coverage::Full)?;
//! assert!(proof.largest_error <= proof.bound);
//! # Ok(())
//! # }
//! ```

pub mod bench;
pub mod cli;
pub mod cpu;
pub mod data;
pub mod doctor;
pub mod epilogue;
pub mod explain;
pub mod interrupt;
pub mod listing;
pub mod measure;
pub mod memory;
pub mod npy;
pub mod output;
mod parallel;
#[cfg(test)]
mod planted;
pub mod plot;
pub mod progress;
pub mod prove;
pub mod report;
pub mod run;
pub mod rung;
pub mod select;
pub mod source;
pub mod statistics;
pub mod traffic;
pub mod tune;
pub mod verify;

#[doc(hidden)] // for `by_element`
pub use gpu_gemm::{Bf16, ElementType, F16};

/// As the command line and reports spell one of an option's values.
pub(crate) fn spelled(value: impl clap::ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}
