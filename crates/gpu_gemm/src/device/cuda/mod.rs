//! NVIDIA GPUs: the driver, a device with its kernels, launches on its streams, and copies from one
//! GPU to another.

mod device;
pub mod driver;
mod extended;
mod launch;
pub mod ptx;
pub mod rectangle;
pub mod status;
mod tensor_map;

pub use device::CudaDevice;
pub use launch::CudaStream;
pub use rectangle::Link;
