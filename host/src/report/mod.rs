//! What is known about a run, as records, and the formats that write them.
//!
//! The three formats write the same records; the names of [`Record`]'s fields are the keys of
//! JSON and the columns of CSV, of one call and of `bench`, and do not change. CSV has no lists.

mod corner;
mod csv;
mod list;
mod outliers;
mod record;
mod several;
mod table;
mod yardstick;

use std::io::{self, Write};

use clap::ValueEnum;

pub use corner::Corner;
pub use csv::lines as csv_lines;
pub use list::{List, Listed};
pub use outliers::outlier_note;
pub use record::{Record, Report};
pub use several::Several;
pub use table::{duration, new_table, or_dash, percent, speed, spread};
pub use yardstick::{Sustained, Yardstick};

/// How to write a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One object; see the documentation of `Report` and `Record`
    Json,
    /// A line a kernel, after a line of column names
    Csv,
}

impl Report {
    /// Writes the report.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Table => table::write(self, out),
            Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(self)?),
            Format::Csv => csv::write(self, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::nvml::GpuState;
    use expect_test::expect_file;

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
            error_model: Some("elementwise".into()),
            frobenius_error: Some(1.25e-7),
            largest_error_units: Some(2.5),
            runs: Some(20),
            warmup: Some(3),
            launches_per_run: Some(2),
            time_median_s: Some(12.5e-6),
            time_min_s: Some(12e-6),
            time_max_s: Some(14e-6),
            time_mean_s: Some(12.75e-6),
            time_stddev_s: Some(0.5e-6),
            outliers: Some(3),
            times_s: vec![12e-6, 12.5e-6, 14e-6],
            flops_per_s: Some(21.474e12),
            compared_with: Some("cublas-fp32".into()),
            cublas_time_median_s: Some(10e-6),
            ratio_to_cublas: Some(0.8),
            ..Record::default()
        };
        let wrong = right.clone().wrong("naive");
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
            schema: 2,
            backend: "cuda",
            device: "NVIDIA H200".into(),
            reason: "chosen with --device".into(),
            cublas: Some("12.9.1 from libcublas.so.12".into()),
            gpu_state: Some(GpuState {
                sm_clock_mhz: Some(1755),
                power_w: Some(312.5),
                ..GpuState::default()
            }),
            output: None,
            results: vec![right, wrong, native],
            yardsticks: vec![Yardstick {
                name: "cublas-fp32".into(),
                runs: 20,
                time_median_s: 10e-6,
                time_min_s: Some(9.5e-6),
                time_max_s: Some(11e-6),
                time_mean_s: Some(10e-6),
                time_stddev_s: Some(0.4e-6),
                outliers: Some(0),
                times_s: vec![9.5e-6, 10e-6, 11e-6],
                frobenius_error: Some(2.5e-7),
                largest_error_units: Some(5.0),
                flops_per_s: 26.84e12,
                ..Yardstick::default()
            }],
        }
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        report().write(format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn neither_a_wrong_kernel_nor_none_is_all_proven() {
        let mut report = report();
        assert!(!report.all_proven());
        report.results.retain(|record| record.proven);
        assert!(report.all_proven());
        report.results.clear();
        assert!(!report.all_proven());
    }

    #[test]
    fn each_format_is_as_in_its_golden_file() {
        expect_file!["golden/report.txt"].assert_eq(&written(Format::Table));
        expect_file!["golden/report.json"].assert_eq(&written(Format::Json));
        expect_file!["golden/report.csv"].assert_eq(&written(Format::Csv));
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
