//! The README's tables: the ladder from the table of kernels, figures from what `rust-gemm bench`
//! wrote.

use gpu_kernels::KERNELS;
use host::bench::{markdown, preset};

use crate::measured::h200;

/// A row for each kernel: its name, which links to its file, and its idea.
pub fn ladder() -> String {
    let mut table = "\n| kernel | the idea |\n| --- | --- |\n".to_string();
    for kernel in KERNELS {
        let (name, source, idea) = (kernel.name, kernel.source, kernel.idea);
        table += &format!("| [`{name}`]({source}) | {idea} |\n");
    }
    table + "\n"
}

/// TFLOP/s of each variant at each size, and as a percentage of cuBLAS.
///
/// # Errors
///
/// There are no results.
pub fn overview() -> Result<String, String> {
    Ok(format!("\n{}\n", markdown::overview(&h200()?)))
}

/// The rows of the report that the ladder follows, beside its own.
///
/// # Errors
///
/// There are no results.
pub fn report() -> Result<String, String> {
    Ok(format!("\n{}\n", preset::table(&h200()?)))
}
