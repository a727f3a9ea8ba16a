//! The report for people: the device, the problem, a table of figures, and what was proven about
//! each result.

use std::io::{self, Write};

use gpu_gemm::text::plural;

use super::corner;
use super::format::{duration, new_table, or_dash, percent, speed, spread};
use super::record::{Record, Report};
use crate::measure::nvml::GpuState;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "device  {}", report.device)?;
    writeln!(out, "why     {}", report.reason)?;
    if let Some(first) = report.results.first() {
        let (shape, dtype, layout) = (first.shape(), &first.dtype, first.layout());
        let (alpha, beta, seed) = (first.alpha, first.beta, first.seed);
        let epilogue = first.epilogue_note();
        writeln!(
            out,
            "shape   {shape} (m x n x k) of {dtype}, alpha {alpha}, beta {beta}{epilogue}, seed {seed}{layout}"
        )?;
        if let Some(data) = &first.data {
            writeln!(out, "data    {data}")?;
        }
    }
    if let Some(cublas) = &report.cublas {
        writeln!(out, "cuBLAS  {cublas}")?;
    }
    if let Some(state) = report.gpu_state.as_ref().and_then(GpuState::description) {
        writeln!(out, "state   {state}")?;
    }
    let native = !report.results.is_empty() && report.results.iter().all(Record::is_native);
    let mut table = new_table();
    table.set_header([
        "kernel",
        if native { "threads" } else { "grid x block" },
        "time (median)",
        "from .. to",
        "runs",
        "speed",
        "of cuBLAS",
        "result",
    ]);
    for record in &report.results {
        table.add_row(row(record, launch(record), record.verdict()));
    }
    for yardstick in &report.yardsticks {
        table.add_row(row(yardstick, "-".to_string(), "-"));
    }
    writeln!(out, "\n{table}\n")?;
    for record in &report.results {
        let verdict = match record.proven {
            true if record.is_sampled() => "right in all samples",
            true => "proven right",
            false => "NOT PROVEN",
        };
        writeln!(out, "{}: {verdict}", record.kernel)?;
        if let Some(chosen) = &record.chosen {
            writeln!(out, "    chosen: {chosen}")?;
        }
        if let Some(note) = record.copies_note() {
            writeln!(out, "    {note}")?;
        }
        if record.is_one_after_the_other() {
            writeln!(out, "    launched once for each product of the batch")?;
        }
        if let Some(several) = &record.several {
            writeln!(out, "    {}", several.sentence())?;
        }
        for statement in record.verification.split("; ") {
            writeln!(out, "    {statement}")?;
        }
        if let Some(errors) = record.errors() {
            writeln!(out, "    errors: {errors}")?;
        }
        if let Some(rows) = &record.corner {
            corner::write(rows, out)?;
        }
    }
    for yardstick in &report.yardsticks {
        if let Some(errors) = yardstick.errors() {
            writeln!(out, "{}\n    errors: {errors}", yardstick.kernel)?;
        }
    }
    if let Some(path) = &report.output {
        writeln!(out, "C is in {path}")?;
    }
    Ok(())
}

fn row(record: &Record, launch: String, result: &str) -> [String; 8] {
    [
        record.kernel.clone(),
        launch,
        or_dash(record.time_median_s.map(duration)),
        or_dash(record.extremes().map(spread)),
        or_dash(record.runs.map(|runs| runs.to_string())),
        or_dash(record.flops_per_s.map(speed)),
        or_dash(record.ratio_to_cublas.map(percent)),
        result.to_string(),
    ]
}

/// The launches, or the threads of a CPU rung.
fn launch(record: &Record) -> String {
    let Record {
        grid_x,
        grid_y,
        block_x,
        block_y,
        ..
    } = record;
    let grid = match record.grid_z {
        Some(grid_z) => format!("{grid_x} x {grid_y} x {grid_z}"),
        None => format!("{grid_x} x {grid_y}"),
    };
    match record.launches {
        _ if record.is_native() => threads(record),
        0 => "nothing to launch".to_string(),
        1 => format!("{grid} x ({block_x} x {block_y})"),
        launches => format!("{grid} x ({block_x} x {block_y}) in {launches}"),
    }
}

/// The threads of a CPU rung.
fn threads(record: &Record) -> String {
    let threads = match record.threads {
        Some(threads) => plural(threads, "thread"),
        None => "its own threads".to_string(),
    };
    match &record.schedule {
        Some(schedule) => format!("{threads}, {schedule}"),
        None => threads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_the_unit_that_suits_them() {
        assert_eq!(duration(1.23456), "1.235 s");
        assert_eq!(duration(0.0123456), "12.35 ms");
        assert_eq!(duration(123.456e-6), "123.5 µs");
        assert_eq!(duration(1e-12), "0.001 ns");
        assert_eq!(speed(42.42e12), "42.42 TFLOP/s");
        assert_eq!(speed(999.96e9), "1000.0 GFLOP/s");
    }
}
