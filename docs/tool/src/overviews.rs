//! Tables of all kernels: the ladder from the table of kernels, figures from what `rust-gemm bench`
//! wrote.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::Kernel;
use host::bench::{Results, Size, markdown, preset};

use crate::figures::MAIN_SIZE;
use crate::ladder::of_floats;
use crate::measured::h200;

/// A row for each kernel: its name, which links to its chapter, its idea, and what it runs on.
pub fn ladder() -> String {
    let mut table = "\n| kernel | the idea | runs on |\n| --- | --- | --- |\n".to_string();
    for kernel in KERNELS {
        let (name, idea) = (kernel.name, kernel.idea);
        let runs_on = runs_on(kernel);
        table += &format!("| [`{name}`]({name}.md) | {idea} | {runs_on} |\n");
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

/// The kernels that are faster than all before them, at whatever size each is the fastest. The
/// others are asides: other ways to round, other layouts, other shapes.
pub fn climbing(results: &Results) -> Vec<&'static Kernel> {
    let mut highest = 0.0;
    let is_higher = |kernel: &&&Kernel| {
        let speeds = results
            .sizes
            .iter()
            .filter_map(|size| fastest(size, kernel));
        let own = speeds.fold(0.0, f64::max);
        let climbs = own > highest;
        highest = own.max(highest);
        climbs
    };
    KERNELS.iter().filter(is_higher).copied().collect()
}

/// The speed of a kernel's fastest variant, in flop/s.
fn fastest(size: &Size, kernel: &Kernel) -> Option<f64> {
    let of = |name: &str| size.record(name)?.flops_per_s;
    of_floats(kernel)
        .filter_map(|variant| of(variant.name))
        .reduce(f64::max)
}

/// A row for each kernel that is faster than all before it: its file, its idea and its speed.
///
/// # Errors
///
/// There are no results.
pub fn steps() -> Result<String, String> {
    let results = h200()?;
    let mut sizes = results.sizes.iter();
    let size = sizes.find(|size| size.m == MAIN_SIZE);
    let (size, cublas) = size
        .and_then(|size| Some((size, size.cublas()?.flops_per_s)))
        .ok_or_else(|| format!("cuBLAS was not measured at {MAIN_SIZE}"))?;
    let mut table =
        "\n| kernel | the idea | TFLOP/s | of cuBLAS |\n| --- | --- | ---: | ---: |\n".to_string();
    for kernel in climbing(&results) {
        let (name, source, idea) = (kernel.name, kernel.source, kernel.idea);
        let speed = fastest(size, kernel)
            .ok_or_else(|| format!("`{name}` was not measured at {MAIN_SIZE}"))?;
        table += &format!(
            "| [`{name}`]({source}) | {idea} | {:.1} | {:.0} % |\n",
            speed / 1e12,
            100.0 * speed / cublas
        );
    }
    Ok(table + "\n")
}

/// TFLOP/s of each variant at each size, and as a percentage of cuBLAS.
///
/// # Errors
///
/// There are no results.
pub fn overview() -> Result<String, String> {
    // A speed and its percentage stay on one line.
    let table = markdown::overview(&h200()?);
    let table = table.replace(" (", "\u{a0}(").replace(" %)", "\u{a0}%)");
    Ok(format!("\n{table}\n"))
}

/// The rows of the report that the ladder follows, beside its own.
///
/// # Errors
///
/// There are no results.
pub fn report() -> Result<String, String> {
    Ok(format!("\n{}\n", preset::table(&h200()?)))
}
