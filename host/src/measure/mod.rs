//! How long kernels take: warm-up, runs, median and spread.
//!
//! On a GPU and by OpenCL ([`gpu`]) several contenders alternate, on a GPU with cuBLAS
//! and cublasLt ([`cublas`]) among them; on several devices ([`several`]), on the simulator and on
//! the CPU, they run one after the other, timed by the wall clock. [`sustained`] has a GPU's speed
//! at its power limit.

pub mod cublas;
pub mod gpu;
mod library;
pub mod limits;
pub mod nvml;
mod places;
pub mod several;
pub mod sustained;
mod timing;
mod wall_clock;

pub use several::Origin;
pub use timing::{Effort, Timing};
pub use wall_clock::{most_cpu_runs, on_cpu, on_simulator};
