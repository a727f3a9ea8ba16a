//! The README's tables: the ladder from the table of kernels, figures from what `rust-gemm bench`
//! wrote.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::Kernel;
use host::bench::{markdown, preset};

use crate::measured::h200;

/// A row for each kernel: its name, which links to its file, its idea, and what it runs on.
pub fn ladder() -> String {
    let mut table = "\n| kernel | the idea | runs on |\n| --- | --- | --- |\n".to_string();
    for kernel in KERNELS {
        let (name, source, idea) = (kernel.name, kernel.source, kernel.idea);
        let runs_on = runs_on(kernel);
        table += &format!("| [`{name}`]({source}) | {idea} | {runs_on} |\n");
    }
    table + "\n"
}

/// What multiplies, and the least compute capability that the kernel is for.
fn runs_on(kernel: &Kernel) -> String {
    let variants = || kernel.variants.iter();
    let unit = variants().next().map_or("", |variant| variant.unit.name());
    let least = variants().map(|variant| variant.least_capability).min();
    let least = least.unwrap_or_default();
    format!("{unit}, {}.{}", least / 10, least % 10)
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
