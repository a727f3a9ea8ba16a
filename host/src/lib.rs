//! Checks, measures and explains GEMM kernels, on a GPU or in the simulator, and GEMM functions
//! for the CPU. It is a library for tests, and the program that [`cli`] describes. [`gpu_gemm`]
//! chooses and launches the kernels, [`verification`] makes problems and judges results.

pub mod bench;
pub mod check;
pub mod cli;
pub mod doctor;
pub mod explain;
pub mod interrupt;
pub mod listing;
pub mod measure;
pub mod memory;
pub mod npy;
pub mod output;
pub mod plot;
pub mod progress;
pub mod report;
pub mod rung;
pub mod select;
pub mod source;
pub mod statistics;
pub mod traffic;
pub mod tune;

use verification::{cpu, data, epilogue, parallel, run, spelled, verify};
