//! The time that kernels take: warm-up, runs, median and spread.
//!
//! On a GPU and with OpenCL ([`gpu`]) several contenders alternate, on a GPU with cuBLAS and
//! cublasLt ([`cublas`]) among them; on several devices ([`several`]), on the simulator and on the
//! CPU, they run one after the other, timed by the wall clock. `gpu/sustained.rs` measures a GPU's
//! speed at its power limit.

pub mod cublas;
pub mod gpu;
pub mod limits;
pub mod nvml;
mod pace;
mod places;
pub mod several;
mod timing;

pub use pace::{ON_CPU, ON_SIMULATOR, by_clock};
pub use several::Origin;
pub use timing::{Effort, Timing};
