//! The measurements that the book and the README show: what `rust-gemm bench --json` wrote, on one GPU.

use host::bench::Results;

use crate::repository::{at_root, read};

/// The ladder at M = N = K, on an H200.
///
/// # Errors
///
/// The file is missing, `rust-gemm bench` did not write it, its figures do not agree with each other,
/// or a kernel in it was not proven right.
pub fn h200() -> Result<Results, String> {
    proven("results/h200.json")
}

/// `auto` at the shapes that programs multiply, on an H200.
///
/// # Errors
///
/// As [`h200`].
pub fn h200_shapes() -> Result<Results, String> {
    proven("results/h200-shapes.json")
}

/// Results in a file.
///
/// # Errors
///
/// As [`h200`].
pub fn proven(file: &str) -> Result<Results, String> {
    let results: Results = serde_json::from_str(&read(&at_root(file))?)
        .map_err(|error| format!("{file} holds no results: {error}"))?;
    let agreed = results.check_figures();
    agreed.map_err(|error| format!("{file}: {error}"))?;
    match results.all_proven() {
        true => Ok(results),
        false => Err(format!("{file}: a kernel was not proven right")),
    }
}
