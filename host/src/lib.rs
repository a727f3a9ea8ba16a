//! Launches, proves and measures GEMM kernels, on a GPU, on the simulator, or written for the CPU: as a library for tests, and as the program
//! that [`cli`] describes.
//!
//! ```
//! use host::device::{Device, DeviceChoice};
//! use host::problem::{Data, Layout, Problem, Shape};
//! use host::verify::{self, Coverage};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open(DeviceChoice::Simulator)?.device;
//! let variant = &host::gpu_kernels::naive::KERNEL.variants[0];
//! let shape = Shape { m: 17, n: 33, k: 129 };
//! let layout = Layout::padded(shape, [1, 2, 3], [3, 2, 1]);
//! let problem = Problem::<f32>::random(shape, layout, Data::Uniform, 42, 1.5, -0.5)?;
//! let run = device.run(variant, &problem)?;
//! let proof = verify::proven(&problem, &run.c, variant.tile, Data::Uniform, Coverage::Full)?;
//! assert!(proof.largest_error <= proof.bound);
//! # Ok(())
//! # }
//! ```

pub mod bench;
pub mod blas;
pub mod choose;
pub mod cli;
pub mod cpu;
pub mod device;
pub mod doctor;
pub mod element;
pub mod evaluate;
pub mod explain;
#[cfg(test)]
mod golden;
pub mod gpu;
pub mod interrupt;
pub mod listing;
pub mod matrix;
pub mod measure;
pub mod memory;
pub mod npy;
pub mod output;
pub mod problem;
pub mod progress;
pub mod report;
pub mod rung;
pub mod select;
pub mod source;
pub mod traffic;
pub mod verify;

pub use cuda_std::simulator;
pub use gpu_kernels;
