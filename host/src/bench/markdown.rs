//! The results for documents.

use super::ladder::{STEP, Sort};
use super::results::{Results, Size};
use super::table::{outliers, size_table};
use crate::measure::cublas;

/// The entire document: the machine, the overview, and a table for each size.
pub fn document(results: &Results, sort: Sort) -> String {
    let mut text = format!(
        "# Benchmark\n\nOn {}. Speeds in TFLOP/s, and as a share of cuBLAS where that was measured.\n\n{}",
        results.machine.description(),
        overview(results)
    );
    for size in results.sizes.iter().filter(|size| !size.results.is_empty()) {
        text += &format!(
            "\n## {} (m x n x k){}\n\n{}\n",
            size.shape(),
            of_batch(size),
            size_table(results, size, sort)
        );
        if let Some(note) = outliers(size) {
            text += &format!("\n{note}\n");
        }
    }
    text + &format!("\n{STEP}\n")
}

/// The products, if there are several.
fn of_batch(size: &Size) -> String {
    match size.products() {
        1 => String::new(),
        products => format!(", a batch of {products}"),
    }
}

/// A row for each kernel, a column for each size: TFLOP/s, and the share of cuBLAS. What was not
/// proven right has no figure.
pub fn overview(results: &Results) -> String {
    let columns = |cell: &dyn Fn(usize) -> String| -> String {
        (0..results.sizes.len())
            .map(|index| format!(" {} |", cell(index)))
            .collect()
    };
    let head = columns(&|index| results.sizes[index].label());
    let mut table = format!("| kernel |{head}\n| --- |{}\n", columns(&|_| "---".into()));
    let dash = || "-".to_string();
    for kernel in results.kernels() {
        let cells = columns(&|index| {
            let record = results.sizes[index].record(kernel);
            let Some(speed) = record.and_then(|record| record.flops_per_s) else {
                return dash();
            };
            match record.and_then(|record| record.ratio_to_cublas) {
                Some(ratio) => format!("{} ({:.0} %)", tera(speed), ratio * 100.0),
                None => tera(speed),
            }
        });
        table += &format!("| `{kernel}` |{cells}\n");
    }
    for name in results.yardsticks() {
        let cells = columns(&|index| {
            let yardstick = results.sizes[index].yardstick(name);
            yardstick.map_or_else(dash, |yardstick| tera(yardstick.flops_per_s))
        });
        table += &format!("| {} |{cells}\n", cublas::title(name));
    }
    table
}

/// In units of 10^12, with as many digits as a simulator's speed needs.
pub(super) fn tera(flops_per_s: f64) -> String {
    let tera = flops_per_s / 1e12;
    match tera {
        0.1.. => format!("{tera:.1}"),
        _ => format!("{tera:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use expect_test::expect_file;

    #[test]
    fn the_document_is_as_in_its_golden_file() {
        let text = document(&sample(), Sort::Ladder);
        expect_file!["golden/document.md"].assert_eq(&text);
    }

    #[test]
    fn many_outliers_are_noted_below_the_table_of_their_size() {
        let mut results = sample();
        let record = &mut results.sizes[0].results[1];
        record.outliers = Some(5);
        record.time_max_s = record.time_median_s.map(|median| 2.0 * median);
        let text = document(&results, Sort::Ladder);
        let (at_first, at_last) = text.split_once("\n## 4096").unwrap();
        let note = "|\n\nnote: many outliers: tiled-32 (5 of 20 runs). ";
        assert!(at_first.contains(note), "{text}");
        assert!(!at_last.contains("note: "), "{text}");
    }
}
