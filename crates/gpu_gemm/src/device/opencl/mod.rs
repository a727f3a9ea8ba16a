//! OpenCL devices: GPUs of any vendor, and CPUs through PoCL. The loader of OpenCL is found when
//! it is first called; nothing is linked.

mod device;
mod launch;
mod memory;
pub mod source;

pub use device::{OpenClDevice, OpenClProperties, probe};
