//! Matrix products on NVIDIA GPUs with kernels written in Rust; without a GPU, the same kernels
//! run through OpenCL or on a simulator.
//!
//! [`gemm`](fn@gemm) multiplies row-major matrices of `f32`, `f64`, `i32`, [`Bf16`] or [`F16`], the
//! last two also into a C of `f32`, and of `i8` into one of `i32`, in a device's memory: any shape,
//! leading dimensions, alignment and transposes, with the kernel that was measured, or is
//! predicted, to be the fastest. [`gemm_strided_batched`] computes many products of one shape,
//! [`gemm_grouped`] those of groups of rows, each with a B of its own (a mixture of experts), and
//! [`gemm_gated`] two products of an A of which a gate makes one matrix (SwiGLU).
//!
//! ```
//! use gpu_gemm::{Context, Device, DeviceChoice, gemm};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open(DeviceChoice::Auto)?.device; // a GPU, else the simulator
//! let context = Context::new(&device, 0)?;
//! let a = context.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2 x 2
//! let b = context.upload(&[5.0f32, 6.0, 7.0, 8.0])?;
//! let mut c = context.upload(&[0.0f32; 4])?;
//! // SAFETY: the buffers live until `download` has waited for the product, and nothing else
//! // touches them.
//! unsafe { gemm(&context, 1.0, &a, 2, &b, 2, 0.0, &mut c, 2, 2, 2, 2)? };
//! assert_eq!(context.download(&c)?, [19.0, 22.0, 43.0, 50.0]);
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!  Call ----> Chooser ----> Plan ----> [Launch] ----> Backend
//!  shape and   tuned, or     one or     data: entry    CudaStream: the driver
//!  layouts     predicted     two        point, grid,   OpenClDevice: OpenCL
//!              by a model    panels     arguments      Simulator: coroutines on the CPU
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | `gemm`, `several` | [`gemm`](fn@gemm) and its variants, on one device and on several |
//! | `context` | a device, a stream and a workspace to multiply with |
//! | `matrix`, `product` | their arguments: checks, and a value for all of them |
//! | [`call`] | the operands, and their layout in memory |
//! | [`choose`] | the choice of the fastest kernel for a call |
//! | [`plan`] | the launches of a call: operand copies, the kernel, a fix-up |
//! | [`split`] | the work of each of several devices |
//! | [`launch`], `argument_block` | a launch as data, and the arguments of its kernel |
//! | `backend`, `buffer` | the operations of a device, and its memory |
//! | [`device`] | where launches run: a GPU, an OpenCL device, the simulator, or several |
//! | [`gpu`] | the properties of GPUs |

mod argument_block;
mod backend;
mod buffer;
pub mod call;
pub mod choose;
mod context;
pub mod device;
mod error;
mod gemm;
pub mod gpu;
pub mod launch;
mod matrix;
pub mod plan;
mod product;
mod several;
pub mod split;
#[cfg(test)]
mod tests;
#[doc(hidden)]
pub mod text;

pub use cuda_std::simulator;
pub use cust;
pub use gpu_kernels::spec::{DataType, ElementType, Variant};
pub use gpu_kernels::{self, KERNELS};

pub use backend::{Allocated, Backend, Capacity, Mark, Space, Way, run};
pub use buffer::Buffer;
pub use call::{Batch, Call, Factor, MatrixLayout, Nested, Operand, Shape, Transpose};
pub use choose::{Choice, Chooser};
pub use context::{Context, WORKSPACE};
#[cfg(feature = "opencl")]
pub use device::OpenClDevice;
pub use device::{CudaDevice, CudaStream, Device, DeviceChoice, Devices, Opened, Simulator};
pub use error::DeviceError;
pub use float8::{self, F8E4M3 as E4m3};
pub use gemm::{
    gemm, gemm_fused, gemm_gated, gemm_grouped, gemm_grouped_along_k, gemm_strided_batched,
};
pub use gpu::DeviceFacts;
pub use half::{self, bf16 as Bf16, f16 as F16};
pub use launch::{Argument, Bindings, Element, Launch, Memory, MultipliesInto, Plain, Scalar};
pub use matrix::{GemmError, Input, Output};
pub use plan::{Decomposition, Plan, PlanError};
pub use product::{Fusion, Product, Stored};
pub use split::Split;
