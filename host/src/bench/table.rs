//! The results for people: the machine, a table for each size, and the errors.

use std::io::{self, Write};

use super::ladder::{STEP, has_steps, rows};
use super::results::{Results, Size};
use super::{Earlier, Preset, preset, ratios};
use crate::measure::nvml::GpuState;
use crate::report::{Record, Several, folded, table};

/// The tables of sizes, written as the sizes are finished.
pub struct Tables<'a> {
    /// The number of tables already written.
    count: usize,
    /// Why this device was chosen.
    why: &'a str,
    preset: Option<Preset>,
}

impl<'a> Tables<'a> {
    pub fn new(why: &'a str, preset: Option<Preset>) -> Tables<'a> {
        let count = 0;
        Tables { count, why, preset }
    }

    /// Writes the new tables, with the device above the first.
    pub fn write_new(&mut self, results: &Results, out: &mut dyn Write) -> io::Result<()> {
        if results.kernels().is_empty() {
            return Ok(());
        }
        if self.count == 0 {
            results.write_device(self.why, out)?;
        }
        for size in &results.sizes[self.count..] {
            write_size(results, size, out)?;
        }
        self.count = results.sizes.len();
        Ok(())
    }

    /// Writes the rest of the tables, and the note below the last.
    pub fn write_last(&mut self, results: &Results, out: &mut dyn Write) -> io::Result<()> {
        self.write_new(results, out)?;
        match results.sizes.iter().any(has_steps) {
            true => writeln!(out, "\n{}", folded(STEP)),
            false => Ok(()),
        }
    }
}

/// The whole report for people. It is Markdown, too.
pub fn report(
    results: &Results,
    preset: Option<Preset>,
    why: &str,
    earlier: Option<&Earlier>,
) -> String {
    let mut text = Vec::new();
    let mut tables = Tables::new(why, preset);
    // Writing to memory does not fail.
    let _: io::Result<()> = write_end(&mut tables, results, earlier, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Completes the report after the tables, if anything was measured.
pub fn write_end(
    tables: &mut Tables<'_>,
    results: &Results,
    earlier: Option<&Earlier>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if results.kernels().is_empty() {
        return Ok(());
    }
    match tables.preset {
        Some(Preset::Report) if results.all_passed() => {
            let machine = results.machine.description();
            write!(out, "{machine}\n\n{}", preset::table(results))?;
        }
        Some(Preset::Shapes) => ratios::write(results, tables.why, out)?,
        None | Some(Preset::Report) => tables.write_last(results, out)?,
    }
    match earlier {
        Some(earlier) => earlier.write(results, out),
        None => Ok(()),
    }
}

/// Writes the table of one size, if it has results, and its errors.
fn write_size(results: &Results, size: &Size, out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = size.results.first() else {
        return Ok(());
    };
    let (shape, dtype, factors, state) = (size.shape(), &first.dtype, factors(first), state(size));
    let table = size_table(results, size);
    writeln!(
        out,
        "\n{shape} (m x n x k) of {dtype}{factors}{state}\n\n{table}"
    )?;
    for record in size.results.iter().filter(|record| !record.passed) {
        let (kernel, why) = (&record.kernel, &record.verification);
        writeln!(out, "{kernel}: FAILED: {why}")?;
    }
    for record in &size.results {
        let several = record.several.as_ref().map(Several::sentence);
        for text in record.copies_note().into_iter().chain(several) {
            writeln!(out, "{}: {text}", record.kernel)?;
        }
    }
    Ok(())
}

/// Alpha, beta, the epilogue and leading dimensions, unless they have their defaults.
fn factors(record: &Record) -> String {
    let Record { alpha, beta, .. } = record;
    let factors = match (*alpha, *beta) {
        (1.0, 0.0) => String::new(),
        _ => format!(", alpha {alpha}, beta {beta}"),
    };
    factors + &record.epilogue_note() + &record.layout()
}

/// The state of the GPU during the runs, if it is known.
fn state(size: &Size) -> String {
    let state = size.gpu_state.as_ref().and_then(GpuState::description);
    state.map_or_else(String::new, |state| format!("; {state}"))
}

/// The table of one size. It is Markdown, too.
pub(super) fn size_table(results: &Results, size: &Size) -> String {
    let (header, rows) = rows(results, size);
    table(&header, &rows).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use expect_test::expect_file;

    fn written(results: &Results) -> String {
        let (mut tables, mut out) = (Tables::new("chosen with --device", None), Vec::new());
        tables.write_last(results, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_tables_are_as_in_their_golden_file() {
        let mut results = sample();
        results.sizes[1].gpu_state = Some(GpuState {
            sm_clock_mhz: Some(1755),
            memory_clock_mhz: Some(3201),
            power_w: Some(689.6),
            temperature_c: Some(62),
            throttle_reasons: Some(vec!["sw_power_cap".into()]),
        });
        expect_file!["golden/table.txt"].assert_eq(&written(&results));
    }
}
