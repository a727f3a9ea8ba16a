//! NVIDIA GPUs: the driver, a device with its kernels, launches on its streams, and copies from one
//! GPU to another, and between GPUs and memory of the host or of another process.

pub mod capture;
pub(crate) mod current;
mod device;
pub mod driver;
mod extended;
mod launch;
pub mod ptx;
pub mod rectangle;
pub(crate) mod staged;
pub mod status;
mod tensor_map;

pub use current::Entered;
pub use device::CudaDevice;
pub use launch::CudaStream;
pub use rectangle::Link;
pub use rectangle::Side;
pub use staged::{Stage, Staging, Transfer};
