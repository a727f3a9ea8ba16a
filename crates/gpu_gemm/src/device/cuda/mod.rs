//! NVIDIA GPUs: the driver, a device with its kernels, and launches on its streams.

mod device;
pub mod driver;
mod extended;
mod launch;
pub mod ptx;
pub mod status;
mod tensor_map;

pub use device::CudaDevice;
pub use launch::CudaStream;
