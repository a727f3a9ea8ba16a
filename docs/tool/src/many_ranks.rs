//! Figures and plots of `gemm-mpi`, from what it wrote to `results/mpi-2-cores.json`, and from its
//! model.

use distributed::clock::Times;
use distributed::layout::layouts;
use distributed::model::{Bytes, Case};
use distributed::plots;
use distributed::predict::{CLUSTER, Question};
use distributed::record::{Record, Report};
use gpu_gemm::{DataType, Shape};
use host::report::duration;

use crate::parts::unbroken;
use crate::repository::{at_root, read};

/// What `gemm-mpi --layout all --scaling 1,2 --json` wrote.
const RESULTS: &str = "results/mpi-2-cores.json";

fn results() -> Result<Report, String> {
    let text = read(&at_root(RESULTS))?;
    let mut report = Report::read(&text).map_err(|error| format!("{RESULTS}: {error}"))?;
    for record in &mut report.records {
        record.predicted = predicted_by_today(record);
    }
    Ok(report)
}

/// What the model says of a record: the file was written with an earlier one, and has the constants
/// that were measured.
fn predicted_by_today(record: &Record) -> Option<Times> {
    let mut all = layouts::<f32>().into_iter();
    let layout = all.find(|layout| layout.name() == record.layout)?;
    let case = Case {
        shape: Shape::new(record.m, record.n, record.k),
        ranks: record.ranks,
        panel: record.panel,
        gathers: record.gathered,
    };
    Some(layout.cost(&case, &record.machine?, Bytes::of::<f32>()))
}

/// A figure of a layout on so many ranks: `scatter-rows 2 time`, `compute`, `waits` (to distribute
/// and wait), `collect`; `speed-up`, `compute-ratio` (of the slowest rank's product on one rank to
/// that here) or `off` (by how much the model's time is longer). Or of all: `conditions`, or
/// `farthest`, the largest of these.
///
/// # Errors
///
/// There is no such figure.
pub fn figure(arguments: &str) -> Result<String, String> {
    let report = results()?;
    let words: Vec<&str> = arguments.split(' ').collect();
    let (layout, ranks, what) = match words[..] {
        ["conditions"] => return Ok(conditions(&report)),
        ["farthest"] => {
            let off = report.records.iter().filter_map(Record::model_error);
            let farthest = off.map(f64::abs).fold(0.0, f64::max);
            return Ok(unbroken(&format!("{:.0} %", 100.0 * farthest)));
        }
        [layout, ranks, what] => (layout, ranks.parse().unwrap_or(0), what),
        _ => return Err(format!("`ranks {arguments}` is no figure")),
    };
    let measured = |ranks| {
        let record = report.record(layout, ranks);
        record.ok_or_else(|| format!("`{layout}` was not measured on {ranks} ranks"))
    };
    let record = measured(ranks)?;
    let missing = || format!("`ranks {arguments}` was not measured");
    let times = record.slowest;
    let found = match what {
        "time" => duration(record.time_median_s.ok_or_else(missing)?),
        "compute" => duration(times.compute_s),
        "waits" => duration(waits(times)),
        "collect" => duration(times.collect_s),
        "speed-up" => format!("{:.2}", record.speedup.ok_or_else(missing)?),
        "compute-ratio" => {
            let alone = measured(1)?.slowest.compute_s;
            format!("{:.2}", alone / times.compute_s)
        }
        "off" => format!(
            "{:+.0} %",
            100.0 * record.model_error().ok_or_else(missing)?
        ),
        _ => return Err(format!("`{what}` is no figure")),
    };
    Ok(unbroken(&found))
}

/// Until operands are there, before the product and during it.
fn waits(times: Times) -> f64 {
    times.distribute_s + times.wait_s
}

/// On what, when and how often it was measured.
fn conditions(report: &Report) -> String {
    let date = report.provenance.as_ref().map_or("", |one| one.day());
    let runs = report.records.iter().map(|record| record.times_s.len());
    format!(
        "{}, {}, {date}, medians of {} runs",
        report.device,
        report.mpi,
        runs.min().unwrap_or(0)
    )
}

/// A row for each layout and number of ranks.
///
/// # Errors
///
/// There are no results.
pub fn table() -> Result<String, String> {
    let report = results()?;
    let mut table =
        "\n| layout | ranks | time | the model | slowest product | distribute and wait | \
                     collect | sent |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_string();
    for record in &report.records {
        let Times {
            compute_s,
            collect_s,
            ..
        } = record.slowest;
        let [time, predicted] = [
            record.time_median_s,
            record.predicted.map(|predicted| predicted.total()),
        ]
        .map(|seconds| seconds.map_or("-".to_string(), duration));
        table += &format!(
            "| `{}` | {} | {time} | {predicted} | {} | {} | {} | {:.1} MB |\n",
            record.layout,
            record.ranks,
            duration(compute_s),
            duration(waits(record.slowest)),
            duration(collect_s),
            record.sent_bytes as f64 / 1e6,
        );
    }
    Ok(table + "\n")
}

/// Where the time of each layout goes.
///
/// # Errors
///
/// There are no results.
pub fn split() -> Result<String, String> {
    plots::split(&results()?).ok_or_else(|| format!("{RESULTS} has no times"))
}

/// Speed-up against one rank.
///
/// # Errors
///
/// There are no results.
pub fn strong() -> Result<String, String> {
    plots::strong(&results()?).ok_or_else(|| format!("{RESULTS} has one number of ranks"))
}

/// What the model says of the cluster that the chapter describes.
///
/// # Errors
///
/// None.
pub fn predicted() -> Result<String, String> {
    Ok(plots::extrapolation(&Question {
        shape: Shape::cube(1 << 16),
        data_type: DataType::F32,
        panel: 256,
        machine: CLUSTER,
        memory_bytes: 16.0 * f64::from(1 << 30),
    }))
}
