//! The measured table of the parallel-programming report that the ladder follows, beside the
//! same rungs measured here.
//!
//! Source: "Parallel Programming", final project report (Sun Yat-sen University, July 2024),
//! table 1 at the end of section 2.4: square matrices of 2048, CTAs of 16 x 16 threads, on an
//! NVIDIA GeForce RTX 4070.

use super::markdown::tera;
use super::results::{Results, Size};
use crate::report::or_dash;
use gpu_gemm::Shape;

/// A row of the report's table: its name for the kernel, seconds, TFLOP/s, percent of cuBLAS, and
/// the same kernel here, or `None` for cuBLAS itself.
type Row = (&'static str, f64, f64, f64, Option<&'static str>);

const THEIR_GPU: &str = "RTX 4070";

#[rustfmt::skip]
const TABLE: [Row; 10] = [
    ("CUBLAS",                0.001023, 16.792684, 100.00, None),
    ("naiveGEMM",             0.009086,  1.890818,  11.26, Some("naive")),
    ("blockGEMM_sn8",         0.001568, 10.956499,  65.25, Some("register-blocked-k8")),
    ("blockGEMM_sn16",        0.001625, 10.573978,  62.97, Some("register-blocked-k16")),
    ("vec_GEMM_sn8",          0.001234, 13.921037,  82.90, Some("vectorized-k8")),
    ("vec_GEMM_sn16",         0.001249, 13.750360,  81.88, Some("vectorized-k16")),
    ("conflictFreeGEMM_sn8",  0.001097, 15.658899,  93.25, Some("conflict-free-k8")),
    ("conflictFreeGEMM_sn16", 0.001043, 16.466607,  98.06, Some("conflict-free-k16")),
    ("doubleBufferGEMM_sn8",  0.000980, 17.538562, 104.44, Some("double-buffer-k8")),
    ("doubleBufferGEMM_sn16", 0.000943, 18.214506, 108.47, Some("double-buffer-k16")),
];

/// The shape that the report measured.
pub const SHAPE: Shape = Shape::cube(2048);

/// The kernels of the report's rows, in their order.
pub fn kernels() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter_map(|row| row.4)
}

/// The table, as Markdown: the report's figures, and those of `results` at the same shape. `-`
/// marks what was not measured.
pub fn table(results: &Results) -> String {
    let size = results.size(SHAPE);
    let device = &results.machine.device;
    let mut table = format!(
        "| the report's name | kernel here | {THEIR_GPU}: ms | TFLOP/s | of cuBLAS | {device}: ms | TFLOP/s | of cuBLAS |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for (theirs, seconds, tflops, percent, kernel) in TABLE {
        let [milliseconds, speed, share] = size
            .and_then(|size| measured(size, kernel))
            .map_or_else(|| ["-"; 3].map(String::from), figures);
        let kernel = match kernel {
            None => "cuBLAS fp32".to_string(),
            Some(name) => format!("`{name}`"),
        };
        table += &format!(
            "| {theirs} | {kernel} | {:.3} | {tflops:.1} | {percent:.0} % | {milliseconds} | {speed} | {share} |\n",
            seconds * 1e3
        );
    }
    table
}

/// Seconds, operations a second, and the share of cuBLAS if that was measured.
fn measured(size: &Size, kernel: Option<&str>) -> Option<(f64, f64, Option<f64>)> {
    let (record, share) = match kernel {
        Some(name) => {
            let record = size.record(name)?;
            (record, record.ratio_to_cublas)
        }
        None => (size.cublas()?, Some(1.0)),
    };
    let (seconds, flops_per_s) = record.time_median_s.zip(record.flops_per_s)?;
    Some((seconds, flops_per_s, share))
}

fn figures((seconds, flops_per_s, share): (f64, f64, Option<f64>)) -> [String; 3] {
    [
        format!("{:.3}", seconds * 1e3),
        tera(flops_per_s),
        or_dash(share.map(|share| format!("{:.0} %", share * 100.0))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use crate::select;
    use expect_test::expect_file;
    use gpu_gemm::DataType;

    #[test]
    fn every_row_has_a_kernel_of_the_ladder_with_as_many_threads_a_cta_as_the_reports() {
        let names: Vec<String> = kernels().map(String::from).collect();
        let variants = select::kernels(&names, DataType::F32).unwrap();
        assert_eq!(variants.len(), TABLE.len() - 1);
        for variant in variants {
            assert_eq!(variant.block.threads(), 16 * 16, "{}", variant.name);
        }
    }

    #[test]
    fn the_table_is_as_in_its_golden_file() {
        expect_file!["golden/report.md"].assert_eq(&table(&sample()));
    }
}
