//! Figures of `gemm-mpi`, from its file `results/mpi-2-cores.json`.

use host::bench::Provenance;
use host::report::duration;
use serde::Deserialize;

use crate::parts::unbroken;
use crate::repository::{at_root, read};

/// The output of `gemm-mpi --layout all --scaling 1,2 --json`.
const RESULTS: &str = "results/mpi-2-cores.json";

#[derive(Deserialize)]
struct Report {
    provenance: Provenance,
    mpi: String,
    device: String,
    records: Vec<Record>,
}

#[derive(Deserialize)]
struct Record {
    layout: String,
    ranks: usize,
    #[serde(alias = "proven")] // its name up to version 4
    passed: bool,
    whole: Timing,
    slowest: Times,
    predicted: Times,
    sent_bytes: u64,
    formula_bytes: u64,
}

#[derive(Deserialize)]
struct Timing {
    times_s: Vec<f64>,
    median_s: f64,
    speedup: f64,
}

#[derive(Deserialize)]
struct Times {
    distribute_s: f64,
    compute_s: f64,
    wait_s: f64,
    idle_s: f64,
    collect_s: f64,
}

impl Times {
    fn total(&self) -> f64 {
        self.waits() + self.compute_s + self.idle_s + self.collect_s
    }

    /// Until operands are there, before the product and during it.
    fn waits(&self) -> f64 {
        self.distribute_s + self.wait_s
    }
}

fn results() -> Result<Report, String> {
    let text = read(&at_root(RESULTS))?;
    let report: Report =
        serde_json::from_str(&text).map_err(|error| format!("{RESULTS}: {error}"))?;
    let is_right = |one: &Record| one.passed && one.sent_bytes == one.formula_bytes;
    match report.records.iter().all(is_right) {
        true => Ok(report),
        false => Err(format!("{RESULTS}: a layout did not pass")),
    }
}

/// A figure of a layout on a number of ranks: `scatter-rows 2 speed-up`; `waits`, to distribute and
/// beside the product; or `compute-ratio`, of the slowest rank's product on one rank to that here.
/// For all layouts: `conditions`, or `farthest`, the largest error of the model.
pub fn figure(arguments: &str) -> Result<String, String> {
    let report = results()?;
    let of = |layout: &str, ranks: usize| {
        let mut records = report.records.iter();
        let record = records.find(|one| one.layout == layout && one.ranks == ranks);
        record.ok_or_else(|| format!("`{layout}` was not measured on {ranks} ranks"))
    };
    let words: Vec<&str> = arguments.split(' ').collect();
    match words[..] {
        ["conditions"] => {
            let runs = report.records.iter().map(|one| one.whole.times_s.len());
            Ok(format!(
                "{}, {}, {}, medians of {} runs",
                report.device,
                report.mpi,
                report.provenance.day(),
                runs.min().unwrap_or(0)
            ))
        }
        ["farthest"] => {
            let records = report.records.iter();
            let off = records.map(|one| (one.predicted.total() / one.whole.median_s - 1.0).abs());
            let farthest = off.fold(0.0, f64::max);
            Ok(unbroken(&format!("{:.0} %", 100.0 * farthest)))
        }
        [layout, ranks, what] => {
            let record = of(layout, ranks.parse().unwrap_or(0))?;
            match what {
                "speed-up" => Ok(format!("{:.2}", record.whole.speedup)),
                "waits" => Ok(unbroken(&duration(record.slowest.waits()))),
                "compute-ratio" => {
                    let alone = of(layout, 1)?.slowest.compute_s;
                    Ok(format!("{:.2}", alone / record.slowest.compute_s))
                }
                _ => Err(format!("`{what}` is no figure")),
            }
        }
        _ => Err(format!("`ranks {arguments}` is no figure")),
    }
}

/// A row for each layout and number of ranks.
pub fn table() -> Result<String, String> {
    let mut table =
        "\n| layout | ranks | time | the model | slowest product | distribute and wait | \
                     collect | sent |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_string();
    for record in &results()?.records {
        let slowest = &record.slowest;
        table += &format!(
            "| `{}` | {} | {} | {} | {} | {} | {} | {:.1} MB |\n",
            record.layout,
            record.ranks,
            duration(record.whole.median_s),
            duration(record.predicted.total()),
            duration(slowest.compute_s),
            duration(slowest.waits()),
            duration(slowest.collect_s),
            record.sent_bytes as f64 / 1e6,
        );
    }
    Ok(table + "\n")
}
