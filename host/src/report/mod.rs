//! The records of a run, and the formats that write them.
//!
//! Both formats write the same records. The names of [`Record`]'s fields are the keys of JSON, for
//! one call and for `bench`, and do not change.

mod corner;
mod format;
mod list;
mod record;
mod several;
mod table;
mod yardstick;

use std::io::{self, Write};

use clap::ValueEnum;

pub use corner::Corner;
pub use format::{duration, folded, new_table, or_dash, percent, speed, spread, table};
pub use list::{List, Listed};
pub use record::{Record, Report, Sustained, Yardstick};
pub use several::Several;

/// How to write a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One object; see the documentation of `Report` and `Record`
    Json,
}

impl Report {
    /// Writes the report.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Table => table::write(self, out),
            Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(self)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use crate::measure::nvml::GpuState;
    use expect_test::expect_file;

    /// A report with a kernel that was measured and one that is wrong.
    fn report() -> Report {
        let mut size = sample().sizes.remove(0);
        size.yardsticks[0].frobenius_error = Some(2.5e-7);
        size.yardsticks[0].largest_error_units = Some(5.0);
        let [right, .., wrong, _] = &size.results[..] else {
            panic!("not four results and one wrong");
        };
        let right = &Record {
            grid_x: 128,
            grid_y: 128,
            block_x: 16,
            block_y: 16,
            launches: 1,
            time_max_s: right.time_median_s.map(|median| 1.5 * median),
            times_s: vec![3.4e-3, 3.5e-3],
            frobenius_error: Some(1.25e-7),
            largest_error_units: Some(2.5),
            ..right.clone()
        };
        let native = Record {
            kernel: "cpu-rows".into(),
            backend: "cpu".into(),
            launches: 0,
            threads: Some(2),
            schedule: Some("guided".into()),
            ..right.clone()
        };
        let results = [right, wrong, &native];
        Report {
            schema: 4,
            backend: "cuda",
            device: "NVIDIA H200".into(),
            reason: "chosen with --device".into(),
            cublas: Some("12.9.1 from libcublas.so.12".into()),
            gpu_state: Some(GpuState {
                sm_clock_mhz: Some(1755),
                power_w: Some(312.5),
                ..GpuState::default()
            }),
            stages: Vec::new(),
            output: None,
            results: results.map(Record::clone).to_vec(),
            yardsticks: size.yardsticks,
        }
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        report().write(format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_format_is_as_in_its_golden_file() {
        expect_file!["golden/report.txt"].assert_eq(&written(Format::Table));
        expect_file!["golden/report.json"].assert_eq(&written(Format::Json));
    }
}
