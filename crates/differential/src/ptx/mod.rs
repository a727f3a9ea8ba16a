//! PTX, run on a CPU by its specification, so that what libNVVM writes can be compared with what
//! Rust means without a GPU.
//!
//! One block, and only what the tests' functions become: no atomics, and nothing that only a part
//! of a warp does together. What is not known is an error, never a guess. Instructions whose last
//! bits the specification leaves open (`rcp.approx`, `div.approx`) are a parameter: see
//! [`Approximate`].

mod execute;
mod parse;
mod thread;
mod together;
mod value;

pub use execute::{Approximate, run, run_words};
pub use parse::Module;
