//! Figures of kernels that read A and B in several layouts, beside cuBLAS: of elements of 16 bits,
//! and of f32 rounded to tf32, from what `rust-gemm bench` wrote to `results/`.

use host::bench::{Results, Size};
use host::report::Record;

use crate::measured::proven;
use crate::repository::at_root;

/// The files of a kernel's table, each with one layout, in one process with cuBLAS, on an H200.
/// `warp-specialized` has the table without a name. Others may be absent, until they are measured.
const TABLES: [(&str, &[&str]); 4] = [
    (
        "",
        &[
            "results/h200-bf16.json",
            "results/h200-bf16-nn.json",
            "results/h200-f16.json",
        ],
    ),
    (
        "auto",
        &[
            "results/h200-auto-bf16.json",
            "results/h200-auto-bf16-nn.json",
            "results/h200-auto-f16.json",
        ],
    ),
    (
        "warpgroup",
        &[
            "results/h200-warpgroup-bf16.json",
            "results/h200-warpgroup-bf16-nt.json",
            "results/h200-warpgroup-bf16-tn.json",
            "results/h200-warpgroup-bf16-tt.json",
            "results/h200-warpgroup-f16.json",
        ],
    ),
    (
        "warp-specialized-tf32",
        &[
            "results/h200-tf32.json",
            "results/h200-tf32-nt.json",
            "results/h200-tf32-tn.json",
            "results/h200-tf32-tt.json",
        ],
    ),
];

/// What f32 is compared with where it is rounded.
const TF32: &str = "cublas-tf32";

/// A row for each type, layout and size; no table as long as nothing was measured.
///
/// # Errors
///
/// There is no such table, or the results are not right.
pub fn table(name: &str) -> Result<String, String> {
    let (_, files) = TABLES
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| format!("there is no table `halves {name}`"))?;
    let files: Vec<&str> = files
        .iter()
        .copied()
        .filter(|file| name.is_empty() || at_root(file).exists())
        .collect();
    if files.is_empty() {
        return Ok("\n".to_string());
    }
    let mut sizes = Vec::new();
    for file in files {
        let results: Results = proven(file)?;
        sizes.extend(results.sizes.into_iter().map(|size| (file, size)));
    }
    let mut records = sizes.iter().flat_map(|(_, size)| &size.results);
    let has_a = records.any(|record| record.transpose_a);
    let (head, line) = match has_a {
        true => (" A is stored |", " --- |"),
        false => ("", ""),
    };
    let mut table = format!(
        "\n| elements |{head} B is stored | m = n = k | TFLOP/s | cuBLAS | ratio |\n\
         | --- |{line} --- | ---: | ---: | ---: | ---: |\n"
    );
    for (file, size) in &sizes {
        table += &row(size, has_a).ok_or_else(|| format!("{file}: a row without cuBLAS"))?;
    }
    Ok(table + "\n")
}

fn row(size: &Size, has_a: bool) -> Option<String> {
    // Of `auto`, the kernel that it chose is beside it.
    let record = size.results.first()?;
    let Record {
        dtype,
        transpose_a,
        transpose_b,
        m,
        ..
    } = record;
    let mut yardsticks = size.yardsticks.iter();
    let tf32 = yardsticks.find(|yardstick| yardstick.name == TF32);
    let (elements, cublas) = match tf32 {
        Some(tf32) => ("tf32", tf32.time_median_s),
        None => (dtype.as_str(), record.cublas_time_median_s?),
    };
    let ours = record.time_median_s?;
    let tflops = |seconds: f64| 2.0 * (*m as f64).powi(3) / seconds / 1e12;
    let stored = |is_transposed: bool, as_is: &str, transposed: &str| match is_transposed {
        true => format!(" {transposed} |"),
        false => format!(" {as_is} |"),
    };
    let a = match has_a {
        true => stored(*transpose_a, "m x k", "k x m"),
        false => String::new(),
    };
    Some(format!(
        "| {elements} |{a}{} {m} | {:.0} | {:.0} | {:.2} |\n",
        stored(*transpose_b, "k x n", "n x k"),
        tflops(ours),
        tflops(cublas),
        cublas / ours
    ))
}
