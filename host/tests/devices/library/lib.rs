//! A CUDA driver, a cuBLAS and an NVML without a GPU, for tests of their callers: the functions of
//! `libcuda.so.1`, `libcublas.so` and `libnvidia-ml.so.1` that the host and `gemm-mpi` call, in
//! one library. `main.rs`, one folder up, compiles it and runs the host on it;
//! `crates/distributed/tests/mpi/on_gpus.rs` does so with `gemm-mpi`.
//!
//! - Memory is the host's. An access outside of an allocation aborts, and so does everything else
//!   that this library does not know.
//! - A launch computes at once, and then its stream's clock advances by a fixed time: the times
//!   that events measure are known exactly. Times may be read only after a wait, as on a GPU.
//! - The environment variable `FAKE_GPU` sets the time of launches, the faults, and the file to
//!   which a line is written for each allocation, launch and event: see `SETTINGS`.
//!
//! | file | content |
//! | --- | --- |
//! | `gpu.rs` | the GPU: settings, memory, log |
//! | `streams.rs` | its streams and events |
//! | `gemm.rs` | the product, which kernels and cuBLAS share |
//! | `cuda.rs` | the driver's functions |
//! | `launch.rs` | its kernels |
//! | `cublas.rs` | cuBLAS's functions |
//! | `nvml.rs` | NVML's functions |

#![allow(non_snake_case)] // NVIDIA's names

mod cublas;
mod cuda;
mod gemm;
mod gpu;
mod launch;
mod nvml;
mod streams;
