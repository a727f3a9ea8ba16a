//! Figures of elements of 16 bits beside cuBLAS, from what `rust-gemm bench --dtype bf16` and
//! `f16` wrote to `results/`.

use host::bench::{Results, Size};
use host::report::Record;

use crate::measured::proven;

/// Each in one process with cuBLAS, on an H200.
const FILES: [&str; 3] = [
    "results/h200-bf16.json",
    "results/h200-bf16-nn.json",
    "results/h200-f16.json",
];

/// A row for each type, layout and size.
///
/// # Errors
///
/// The results are not right.
pub fn table() -> Result<String, String> {
    let mut table = "\n| elements | B is stored | m = n = k | TFLOP/s | cuBLAS | ratio |\n\
         | --- | --- | ---: | ---: | ---: | ---: |\n"
        .to_string();
    for file in FILES {
        let results: Results = proven(file)?;
        for size in &results.sizes {
            table += &row(size).ok_or_else(|| format!("{file}: a row without cuBLAS"))?;
        }
    }
    Ok(table + "\n")
}

fn row(size: &Size) -> Option<String> {
    let [record] = &size.results[..] else {
        return None;
    };
    let Record {
        dtype,
        transpose_b,
        m,
        ..
    } = record;
    let (ours, cublas) = (record.time_median_s?, record.cublas_time_median_s?);
    let tflops = |seconds: f64| 2.0 * (*m as f64).powi(3) / seconds / 1e12;
    let stored = match transpose_b {
        true => "n x k",
        false => "k x n",
    };
    Some(format!(
        "| {dtype} | {stored} | {m} | {:.0} | {:.0} | {:.2} |\n",
        tflops(ours),
        tflops(cublas),
        cublas / ours
    ))
}
