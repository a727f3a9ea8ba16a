//! The report for people: the device, the problem, a table of figures, and what was checked about
//! each result.

use std::io::{self, Write};

use gpu_gemm::text::plural;

use super::corner;
use super::format::{duration, folded, or_dash, percent, speed, spread, table};
use super::record::{Record, Report};
use crate::measure::nvml::GpuState;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut line = |text: String| writeln!(out, "{}", folded(&text));
    line(format!("device  {}", report.device))?;
    line(format!("why     {}", report.reason))?;
    if let Some(first) = report.results.first() {
        let (shape, dtype, layout) = (first.shape(), &first.dtype, first.layout());
        let (alpha, beta, seed) = (first.alpha, first.beta, first.seed);
        let epilogue = first.epilogue_note();
        line(format!(
            "shape   {shape} (m x n x k) of {dtype}, alpha {alpha}, beta {beta}{epilogue}, seed {seed}{layout}"
        ))?;
        if let Some(data) = &first.data {
            line(format!("data    {data}"))?;
        }
    }
    if let Some(cublas) = &report.cublas {
        line(format!("cuBLAS  {cublas}"))?;
    }
    if let Some(state) = report.gpu_state.as_ref().and_then(GpuState::description) {
        line(format!("state   {state}"))?;
    }
    let results = report.results.iter();
    let mut rows: Vec<Vec<String>> = results.map(|of| row(of, of.verdict())).collect();
    rows.extend(report.yardsticks.iter().map(|of| row(of, "-")));
    let header = ["kernel", "median", "speed", "of cuBLAS", "result"];
    writeln!(out, "\n{}\n", table(&header, &rows))?;
    for record in &report.results {
        let mut line = |text: String| writeln!(out, "{}", folded(&text));
        let verdict = match record.passed {
            true if record.is_sampled() => "right in all samples",
            true => "passed",
            false => "FAILED",
        };
        line(format!("{}: {verdict}", record.kernel))?;
        if let Some(chosen) = &record.chosen {
            line(format!("    chosen: {chosen}"))?;
        }
        if let Some(note) = record.copies_note() {
            line(format!("    {note}"))?;
        }
        if record.is_one_after_the_other() {
            line("    launched once for each product of the batch".to_string())?;
        }
        if let Some(several) = &record.several {
            line(format!("    {}", several.sentence()))?;
        }
        for statement in record.verification.split("; ") {
            line(format!("    {statement}"))?;
        }
        if let Some(errors) = record.errors() {
            line(format!("    errors: {errors}"))?;
        }
        if let Some(errors) = record.quantisation() {
            line(format!("    quantising costs: {errors}"))?;
        }
        let launched = [Some(launch(record)), runs(record)];
        let launched: Vec<String> = launched.into_iter().flatten().collect();
        line(format!("    {}", launched.join("; ")))?;
        if let Some(rows) = &record.corner {
            corner::write(rows, out)?;
        }
    }
    for yardstick in &report.yardsticks {
        writeln!(out, "{}", yardstick.kernel)?;
        if let Some(errors) = yardstick.errors() {
            writeln!(out, "    errors: {errors}")?;
        }
        if let Some(runs) = runs(yardstick) {
            writeln!(out, "    {runs}")?;
        }
    }
    if let Some(path) = &report.output {
        writeln!(out, "C is in {path}")?;
    }
    Ok(())
}

fn row(record: &Record, result: &str) -> Vec<String> {
    vec![
        record.kernel.clone(),
        or_dash(record.time_median_s.map(duration)),
        or_dash(record.flops_per_s.map(speed)),
        or_dash(record.ratio_to_cublas.map(percent)),
        result.to_string(),
    ]
}

/// The number of runs and their spread, if there were any.
fn runs(record: &Record) -> Option<String> {
    let runs = plural(record.runs?, "run");
    Some(match record.extremes() {
        Some(extremes) => format!("{runs}: {}", spread(extremes)),
        None => runs,
    })
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
        1 => format!("grid {grid}, block {block_x} x {block_y}"),
        launches => format!("grid {grid}, block {block_x} x {block_y}, in {launches} launches"),
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
