//! Random Rust functions, run as Rust defines them and as the path from Rust to PTX has compiled
//! them.
//!
//! ```text
//!   templates.rs  calls of the standard library, as Rust with gaps
//!   generate.rs   a seed becomes functions: all widths, floats, casts, branches, loops, memory,
//!        |        and what a block of threads does together
//!        |
//!   prelude.rs    what they use: 16-bit floats; the other threads, or a model of them
//!   compile.rs    each batch is a crate: a library for the host, and PTX by `cuda_builder`
//!        |
//!   ptx/          runs the PTX on this CPU, by its specification      gpu.rs  runs it on a GPU
//!        |
//!   check.rs      compares, thread by thread
//!   reduce.rs     reduces a function that differs to the smallest one that still differs
//!   alone.rs      takes a kernel out of a module, with what it reaches
//!   pack.rs       writes PTX and expected results to one file, for a GPU machine without Rust
//! ```
//!
//! Errors of libNVVM show on a CPU, for all architectures; errors of `ptxas` show only on a GPU.

pub mod alone;
pub mod check;
pub mod compile;
pub mod generate;
pub mod gpu;
pub mod pack;
pub mod ptx;
pub mod reduce;
mod templates;
