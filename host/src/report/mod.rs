//! What is known of a run, as records, and the formats that write them.
//!
//! The three formats write the same records; the names of [`Record`]'s fields are the keys of JSON and the columns of CSV,
//! and stay what they are.

mod corner;
mod csv;
mod json;
mod table;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

pub use corner::Corner;
pub use table::{duration, list, list_cpu, new_table, speed, spread};

/// How to write a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// One object; see the documentation of `Report` and `Record`.
    Json,
    /// A line a kernel, after a line of column names.
    Csv,
}

/// Everything about one call of the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The version of this layout: 1. Fields may be added to it; none changes or goes.
    pub schema: u32,
    /// `cuda` or `simulator`; `cpu` if there are only CPU rungs.
    pub backend: &'static str,
    /// The device's name and size.
    pub device: String,
    /// Why this device.
    pub reason: String,
    /// The cuBLAS that was measured, with its version and path.
    pub cublas: Option<String>,
    /// The file that C was written to, if that was asked for and C is proven right.
    pub output: Option<String>,
    /// One for each kernel, in the order asked for.
    pub results: Vec<Record>,
    /// What the kernels took turns with.
    pub yardsticks: Vec<Yardstick>,
}

/// The times of something that is not ours, on the same problem, in the same process, run in turn with the kernels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Yardstick {
    /// `cublas-fp32` (no tensor cores: the one that kernels are compared with) or `cublas-tf32`.
    pub name: String,
    /// Timed runs.
    pub runs: usize,
    pub time_median_s: f64,
    pub time_min_s: Option<f64>,
    pub time_max_s: Option<f64>,
    /// `2 * m * n * k` over the median time.
    pub flops_per_s: f64,
}

/// One kernel's result. Times are in seconds. What was not measured or does not apply is null (empty in CSV).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The kernel's variant or the CPU rung, such as `tiled-32` or `cpu-ikj`.
    pub kernel: String,
    /// The element type, such as `f32`.
    pub dtype: String,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub alpha: f64,
    pub beta: f64,
    pub seed: u64,
    /// `cuda`, `simulator` or `cpu`.
    pub backend: String,
    /// Blocks along x (columns of C) of a launch; 0 if there was nothing to launch, as for CPU rungs.
    pub grid_x: u32,
    /// Blocks along y (rows of C) of all launches together.
    pub grid_y: u64,
    /// Threads of a block along x.
    pub block_x: u32,
    /// Threads of a block along y.
    pub block_y: u32,
    /// Launches that the result took: more than 1 if a grid cannot have `grid_y` blocks along y.
    pub launches: usize,
    /// Whether the result passed every gate.
    pub proven: bool,
    /// What was shown, or what was wrong: a sentence.
    pub verification: String,
    /// The error of the element that is furthest off in units of rounding, and the bound proven for it.
    pub largest_error: Option<f64>,
    pub error_bound: Option<f64>,
    /// Timed runs, runs before them, and launches whose mean is one run's time.
    pub runs: Option<usize>,
    pub warmup: Option<u32>,
    pub launches_per_run: Option<u32>,
    pub time_median_s: Option<f64>,
    pub time_min_s: Option<f64>,
    pub time_max_s: Option<f64>,
    /// `2 * m * n * k` over the median time.
    pub flops_per_s: Option<f64>,
    /// cuBLAS's median time on the same problem, in the same process.
    pub cublas_time_median_s: Option<f64>,
    /// cuBLAS's median time over the kernel's: above 1 the kernel is faster.
    pub ratio_to_cublas: Option<f64>,
    /// Threads that a CPU rung ran on; null for a library that keeps it to itself.
    pub threads: Option<usize>,
    /// How a CPU rung dealt out its work to them, if it did.
    pub schedule: Option<String>,
    /// For `auto`, what runs: the variant, and how it shares its work.
    pub chosen: Option<String>,
    /// What the matrices hold, if `--data` or files say so; else uniform numbers were proven and normal ones timed.
    pub data: Option<String>,
    /// The rows of the corner of C that `--show` asked for, if C is proven right; not there otherwise, and never in CSV.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corner: Option<Vec<Vec<f64>>>,
}

impl Report {
    /// Whether every kernel is proven right.
    pub fn all_proven(&self) -> bool {
        self.results.iter().all(|record| record.proven)
    }

    /// Writes the report.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Table => table::write(self, out),
            Format::Json => json::write(self, out),
            Format::Csv => csv::write(self, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report with a kernel that was measured and one that is wrong.
    fn report() -> Report {
        let right = Record {
            kernel: "double-buffer".into(),
            dtype: "f32".into(),
            m: 1024,
            n: 512,
            k: 256,
            alpha: 1.0,
            beta: 0.5,
            seed: 42,
            backend: "cuda".into(),
            grid_x: 4,
            grid_y: 8,
            block_x: 16,
            block_y: 16,
            launches: 1,
            proven: true,
            verification: "exact: all equal; proven: all within".into(),
            largest_error: Some(1.5e-6),
            error_bound: Some(3e-5),
            runs: Some(20),
            warmup: Some(3),
            launches_per_run: Some(2),
            time_median_s: Some(12.5e-6),
            time_min_s: Some(12e-6),
            time_max_s: Some(14e-6),
            flops_per_s: Some(21.474e12),
            cublas_time_median_s: Some(10e-6),
            ratio_to_cublas: Some(0.8),
            threads: None,
            schedule: None,
            chosen: None,
            data: None,
            corner: None,
        };
        let wrong = Record {
            kernel: "naive".into(),
            proven: false,
            verification: "C[1][2] is NaN, but must be 3.".into(),
            largest_error: None,
            error_bound: None,
            runs: None,
            warmup: None,
            launches_per_run: None,
            time_median_s: None,
            time_min_s: None,
            time_max_s: None,
            flops_per_s: None,
            cublas_time_median_s: None,
            ratio_to_cublas: None,
            ..right.clone()
        };
        let native = Record {
            kernel: "cpu-rows".into(),
            backend: "cpu".into(),
            grid_x: 0,
            grid_y: 0,
            block_x: 0,
            block_y: 0,
            launches: 0,
            threads: Some(2),
            schedule: Some("guided".into()),
            ..right.clone()
        };
        Report {
            schema: 1,
            backend: "cuda",
            device: "NVIDIA H200".into(),
            reason: "asked for with --device".into(),
            cublas: Some("12.9.1 from libcublas.so.12".into()),
            output: None,
            results: vec![right, wrong, native],
            yardsticks: vec![Yardstick {
                name: "cublas-fp32".into(),
                runs: 20,
                time_median_s: 10e-6,
                time_min_s: Some(9.5e-6),
                time_max_s: Some(11e-6),
                flops_per_s: 26.84e12,
            }],
        }
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        report().write(format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_wrong_kernel_is_not_all_proven() {
        assert!(!report().all_proven());
    }

    #[test]
    fn the_table_is_as_in_its_golden_file() {
        crate::golden::compare(
            "src/report/golden/report.txt",
            written(Format::Table).as_bytes(),
        );
    }

    #[test]
    fn the_json_is_as_in_its_golden_file() {
        crate::golden::compare(
            "src/report/golden/report.json",
            written(Format::Json).as_bytes(),
        );
    }

    #[test]
    fn the_csv_is_as_in_its_golden_file() {
        crate::golden::compare(
            "src/report/golden/report.csv",
            written(Format::Csv).as_bytes(),
        );
    }

    #[test]
    fn a_reader_that_goes_away_is_an_error_value() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for format in [Format::Table, Format::Json, Format::Csv] {
            let error = report().write(format, &mut Closed).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{format:?}");
        }
    }
}
