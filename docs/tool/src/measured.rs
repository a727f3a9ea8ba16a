//! The measurements that the book and the README show: what `rust-gemm bench --json` wrote, on one
//! GPU.

use gpu_kernels::spec::Kernel;
use host::bench::Results;

use crate::ladder::of_floats;
use crate::repository::{at_root, read};

/// Where kernels were measured at M = N = K, and the cuBLAS that they are compared with there.
/// Those that are absent have not been measured yet.
const FILES: [(&str, &str); 5] = [
    (LADDER, "cublas-fp32"),
    ("results/h200-fp64.json", "cublas-fp64"),
    ("results/h100-tf32.json", "cublas-tf32"),
    ("results/h200-split.json", "cublas-fp32"),
    ("results/h200-tf32.json", "cublas-tf32"),
];

const LADDER: &str = "results/h200.json";

/// What was measured on one GPU.
pub struct Measured {
    pub results: Results,
    /// The yardstick: `cublas-fp32`, for example.
    pub cublas: &'static str,
}

impl Measured {
    /// The GPU, without its maker and its memory: `H200`.
    pub fn gpu(&self) -> &str {
        let device = &self.results.machine.device;
        let mut words = device.split(' ').filter(|word| *word != "NVIDIA");
        words.next().unwrap_or(device)
    }
}

/// Where a kernel was measured; for one that was not, the ladder's file.
///
/// # Errors
///
/// As [`h200`].
pub fn of_kernel(kernel: &Kernel) -> Result<Measured, String> {
    let names: Vec<&str> = of_floats(kernel).map(|one| one.name).collect();
    of_any(&names)
}

/// Where the first of these names was measured: of variants, or of cuBLAS.
///
/// # Errors
///
/// As [`h200`].
pub fn of_any(names: &[&str]) -> Result<Measured, String> {
    for (file, cublas) in FILES.into_iter().filter(|(file, _)| at_root(file).exists()) {
        let results = proven(file)?;
        let is_there = |name: &&str| {
            let mut sizes = results.sizes.iter();
            sizes.any(|size| size.record(name).is_some() || *name == cublas)
        };
        if names.iter().any(is_there) {
            return Ok(Measured { results, cublas });
        }
    }
    let [(_, cublas), ..] = FILES;
    let results = h200()?;
    Ok(Measured { results, cublas })
}

/// The ladder at M = N = K, on an H200.
///
/// # Errors
///
/// The file is missing, `rust-gemm bench` did not write it, or a kernel in it was not proven right.
pub fn h200() -> Result<Results, String> {
    proven(LADDER)
}

/// `auto` at the shapes that programs multiply, on an H200.
///
/// # Errors
///
/// As [`h200`].
pub fn h200_shapes() -> Result<Results, String> {
    proven("results/h200-shapes.json")
}

/// The same in bf16, on an H200.
///
/// # Errors
///
/// As [`h200`].
pub fn bf16_shapes() -> Result<Results, String> {
    proven("results/h200-bf16-shapes.json")
}

/// The same on an H100.
///
/// # Errors
///
/// As [`h200`].
pub fn h100_shapes() -> Result<Results, String> {
    proven("results/h100-shapes.json")
}

/// Results in a file.
///
/// # Errors
///
/// As [`h200`].
pub fn proven(file: &str) -> Result<Results, String> {
    let results: Results = serde_json::from_str(&read(&at_root(file))?)
        .map_err(|error| format!("{file} holds no results: {error}"))?;
    match results.all_proven() {
        true => Ok(results),
        false => Err(format!("{file}: a kernel was not proven right")),
    }
}
