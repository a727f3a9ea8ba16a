//! Kernels beside cuBLAS over many shapes: a row for each, and a summary.

use std::io::{self, Write};

use super::results::{Results, Size, Summary};
use crate::measure::cublas::lt_mark;
use crate::report::{Record, duration, or_dash, speed, table};
use gpu_gemm::text::plural;

impl Summary {
    /// The summary of one kernel, if there is anything to summarise.
    fn of(results: &Results, kernel: &str) -> Option<Summary> {
        let ratios: Vec<(&Size, f64)> = results
            .sizes
            .iter()
            .filter_map(|size| Some((size, size.record(kernel)?.ratio_to_cublas?)))
            .collect();
        let (size, worst) = ratios
            .iter()
            .min_by(|one, other| one.1.total_cmp(&other.1))?;
        let logarithms: f64 = ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
        Some(Summary {
            kernel: kernel.to_string(),
            shapes: ratios.len(),
            geometric_mean: (logarithms / ratios.len() as f64).exp(),
            worst: *worst,
            worst_shape: size.title(),
            at_least_as_fast: ratios.iter().filter(|(_, ratio)| *ratio >= 1.0).count(),
        })
    }

    fn sentence(&self) -> String {
        format!(
            "{}: {:.3} x cuBLAS in geometric mean over {}, at least as fast on {}; at worst {:.3} x, on {}",
            self.kernel,
            self.geometric_mean,
            plural(self.shapes, "shape"),
            self.at_least_as_fast,
            self.worst,
            self.worst_shape
        )
    }
}

/// The summary of each kernel that was measured beside cuBLAS.
pub fn summaries(results: &Results) -> Vec<Summary> {
    let kernels = results.kernels().into_iter();
    let summaries = kernels.filter_map(|kernel| Summary::of(results, kernel));
    summaries.collect()
}

/// The columns. That of cuBLAS has the faster library.
const HEADER: [&str; 9] = [
    "shape",
    "from",
    "m x n x k",
    "kernel",
    "median",
    "speed",
    "cuBLAS",
    "x cuBLAS",
    "result",
];

/// Writes everything.
pub fn write(results: &Results, why: &str, out: &mut dyn Write) -> io::Result<()> {
    results.write_device(why, out)?;
    writeln!(out, "\n{}", table_of(results))?;
    for size in &results.sizes {
        for record in size.results.iter().filter(|record| !record.passed) {
            writeln!(
                out,
                "{} at {}: FAILED: {}",
                record.kernel,
                size.title(),
                record.verification
            )?;
        }
    }
    writeln!(out, "\n{}", closing(results))
}

/// A row for each kernel at each shape. It is Markdown, too.
fn table_of(results: &Results) -> String {
    let sizes = results.sizes.iter();
    let rows: Vec<Vec<String>> = sizes
        .flat_map(|size| size.results.iter().map(move |record| row(size, record)))
        .collect();
    table(&HEADER, &rows).to_string()
}

fn row(size: &Size, record: &Record) -> Vec<String> {
    let kernel = match &record.chosen {
        Some(chosen) => format!("{}: {chosen}", record.kernel),
        None => record.kernel.clone(),
    };
    let compared_with = record.compared_with.as_deref().unwrap_or_default();
    vec![
        or_dash(size.name.clone()),
        or_dash(size.origin.clone()),
        size.shape().to_string(),
        kernel,
        or_dash(record.time_median_s.map(duration)),
        or_dash(record.flops_per_s.map(speed)),
        or_dash(
            record
                .cublas_time_median_s
                .map(|time| duration(time) + lt_mark(compared_with)),
        ),
        or_dash(record.ratio_to_cublas.map(|ratio| format!("{ratio:.3}"))),
        record.verdict().to_string(),
    ]
}

fn closing(results: &Results) -> String {
    let sentences: Vec<String> = summaries(results).iter().map(Summary::sentence).collect();
    match sentences.is_empty() {
        true => "Nothing was measured beside cuBLAS.".to_string(),
        false => format!(
            "(Lt): the time of cublasLt, which was the faster\n\n{}",
            sentences.join("\n\n")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use expect_test::expect_file;

    #[test]
    fn the_table_is_as_in_its_golden_file() {
        let mut results = sample();
        for (size, name) in results.sizes.iter_mut().zip(["small", "large"]) {
            size.name = Some(name.into());
            size.origin = Some("odd".into());
            for record in &mut size.results {
                if record.kernel == "double-buffer-k8" {
                    record.kernel = "auto".into();
                    record.chosen = Some("double-buffer-k8".into());
                }
            }
        }
        results.sizes[0].results[4].ratio_to_cublas = Some(1.25);
        results.sizes[1].results[4].ratio_to_cublas = Some(0.8);
        results.sizes[1].results[4].compared_with = Some("cublaslt-fp32".into());
        let mut out = Vec::new();
        write(&results, "chosen with --device", &mut out).unwrap();
        expect_file!["golden/ratios.txt"].assert_eq(std::str::from_utf8(&out).unwrap());
    }
}
