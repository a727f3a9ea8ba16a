//! The results for people: the machine, a table for each size, and what was wrong.

use std::io::{self, Write};

use super::ladder::{STEP, Sort, rows};
use super::results::{Results, Size};
use crate::measure::nvml::GpuState;
use crate::report::{Record, new_table, outlier_note};

/// Writes everything.
pub fn write(results: &Results, why: &str, sort: Sort, out: &mut dyn Write) -> io::Result<()> {
    write_head(results, why, out)?;
    for size in &results.sizes {
        write_size(results, size, sort, out)?;
    }
    write_foot(out)
}

/// Writes what is above the tables.
pub fn write_head(results: &Results, why: &str, out: &mut dyn Write) -> io::Result<()> {
    for machine in results.all_machines() {
        let label = machine.device_label.as_ref();
        let label = label.map_or_else(String::new, |label| format!("{label}: "));
        writeln!(out, "device  {label}{}", machine.description())?;
    }
    writeln!(out, "why     {why}")
}

/// Writes the table of one size, if it has results, and what was wrong.
pub fn write_size(
    results: &Results,
    size: &Size,
    sort: Sort,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(first) = size.results.first() else {
        return Ok(());
    };
    writeln!(
        out,
        "\n{} (m x n x k) of {}{}{}\n\n{}",
        size.shape(),
        first.dtype,
        factors(first),
        state(size),
        size_table(results, size, sort)
    )?;
    for record in size.results.iter().filter(|record| !record.proven) {
        writeln!(
            out,
            "{}: NOT PROVEN: {}",
            record.title(),
            record.verification
        )?;
    }
    for record in &size.results {
        if let Some(note) = record.copies_note() {
            writeln!(out, "{}: {note}", record.title())?;
        }
        if let Some(several) = &record.several {
            writeln!(out, "{}: {}", record.title(), several.sentence())?;
        }
    }
    if let Some(note) = outliers(size) {
        writeln!(out, "{note}")?;
    }
    Ok(())
}

/// A note on outliers at a size, if there are many.
pub(super) fn outliers(size: &Size) -> Option<String> {
    let contenders: Vec<Record> = size.contenders().map(|(record, _)| record).collect();
    outlier_note(&contenders)
}

/// Alpha and beta, and leading dimensions, unless they are as usual.
fn factors(record: &Record) -> String {
    let Record { alpha, beta, .. } = record;
    let factors = match (*alpha, *beta) {
        (1.0, 0.0) => String::new(),
        _ => format!(", alpha {alpha}, beta {beta}"),
    };
    factors + &record.layout()
}

/// What the GPU did, if that is known.
fn state(size: &Size) -> String {
    let state = size.gpu_state.as_ref().and_then(GpuState::description);
    state.map_or_else(String::new, |state| format!("; {state}"))
}

/// Writes what is below the tables.
pub fn write_foot(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{STEP}")
}

/// The table of one size. It is Markdown, too.
pub(super) fn size_table(results: &Results, size: &Size, sort: Sort) -> String {
    let mut table = new_table();
    let (header, rows) = rows(results, size, sort);
    table.set_header(header);
    table.add_rows(rows);
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::{sample, sample_of_two_devices};
    use expect_test::expect_file;

    #[test]
    fn the_table_of_two_devices_is_as_in_its_golden_file() {
        let mut out = Vec::new();
        let results = sample_of_two_devices();
        write(&results, "chosen with --device", Sort::Ladder, &mut out).unwrap();
        expect_file!["golden/devices.txt"].assert_eq(std::str::from_utf8(&out).unwrap());
    }

    #[test]
    fn the_table_is_as_in_its_golden_file() {
        let mut out = Vec::new();
        let mut results = sample();
        results.sizes[1].gpu_state = Some(GpuState {
            sm_clock_mhz: Some(1755),
            memory_clock_mhz: Some(3201),
            power_w: Some(689.6),
            temperature_c: Some(62),
            throttle_reasons: Some(vec!["sw_power_cap".into()]),
        });
        write(&results, "chosen with --device", Sort::Ladder, &mut out).unwrap();
        expect_file!["golden/table.txt"].assert_eq(std::str::from_utf8(&out).unwrap());
    }
}
