//! The report for people, and as CSV.

use std::fmt;
use std::io::{self, Write};

use gpu_gemm::text::plural;
use host::report::{Format, duration, new_table, or_dash, percent, speed};
use serde::Serialize;

use crate::clock::Times;
use crate::record::{Record, Report, Scaling};

/// Ranks that get a line of their own; of more only the slowest times are shown.
const RANKS_SHOWN: usize = 16;

impl Report {
    /// Writes the report.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Table => write_table(self, out),
            Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(self)?),
            Format::Csv => write_csv(self, out),
        }
    }
}

fn write_table(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "mpi     {}", report.mpi)?;
    writeln!(
        out,
        "ranks   {} on {}",
        report.ranks,
        plural(report.hosts.len(), "host")
    )?;
    writeln!(out, "device  {}", report.device)?;
    writeln!(out, "why     {}", report.reason)?;
    if let Some(first) = report.records.first() {
        let Record {
            dtype,
            alpha,
            beta,
            seed,
            data,
            kernel,
            ..
        } = first;
        let panels = report.records.iter().map(|record| record.panel);
        let (least, most) = panels.fold((first.panel, first.panel), |(least, most), panel| {
            (least.min(panel), most.max(panel))
        });
        let panels = match least == most {
            true => least.to_string(),
            false => format!("{least} to {most}"),
        };
        writeln!(
            out,
            "product of {dtype} by {kernel} ({} a rank), alpha {alpha}, beta {beta}, seed {seed}, \
             data {data}, panels of {panels}",
            plural(first.threads, "thread")
        )?;
    }
    let columns: [Column; 6] = [
        ("time", |record| or_dash(record.time_median_s.map(duration))),
        ("speed", |record| or_dash(record.flops_per_s.map(speed))),
        ("speed-up", |record| or_dash(record.speedup.map(ratio))),
        ("efficiency", |record| {
            or_dash(record.efficiency.map(percent))
        }),
        ("sent", |record| bytes(record.sent_bytes)),
        ("result", |record| verdict(record).to_string()),
    ];
    let table = table_of(report.records.iter(), &columns);
    writeln!(out, "\n{table}")?;
    write_resident(report, out)?;
    for record in &report.records {
        write_record(record, out)?;
    }
    if let Some(path) = &report.output {
        writeln!(out, "\nC is in {path}")?;
    }
    Ok(())
}

/// The same without what is distributed and collected.
fn write_resident(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let timed = report.records.iter();
    let timed: Vec<&Record> = timed
        .filter(|record| record.resident_median_s.is_some())
        .collect();
    if timed.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nResident, with A and B where the layout needs them and C where it is computed (compute \
         and wait, of the rank that takes the longest):\n"
    )?;
    let columns: [Column; 5] = [
        ("time", |record| {
            or_dash(record.resident_median_s.map(duration))
        }),
        ("the model", |record| {
            or_dash(
                record
                    .predicted
                    .map(|predicted| duration(predicted.resident())),
            )
        }),
        ("speed", |record| {
            or_dash(record.resident_flops_per_s.map(speed))
        }),
        ("speed-up", |record| {
            or_dash(record.resident_speedup.map(ratio))
        }),
        ("efficiency", |record| {
            or_dash(record.resident_efficiency.map(percent))
        }),
    ];
    let table = table_of(timed.into_iter(), &columns);
    writeln!(out, "{table}")
}

/// A column: its header, and what it says of a record.
type Column = (&'static str, fn(&Record) -> String);

/// A row a record: what it is of, and these columns.
fn table_of<'r>(
    records: impl Iterator<Item = &'r Record>,
    columns: &[Column],
) -> impl fmt::Display {
    let of: [Column; 3] = [
        ("layout", |record| record.layout.clone()),
        ("shape", shape),
        ("ranks", ranks),
    ];
    let columns = || of.iter().chain(columns);
    let mut table = new_table();
    table.set_header(columns().map(|(header, _)| *header));
    for record in records {
        table.add_row(columns().map(|(_, cell)| cell(record)));
    }
    table
}

/// Such as 1.95, of a speed-up.
fn ratio(speedup: f64) -> String {
    format!("{speedup:.2}")
}

fn shape(record: &Record) -> String {
    let Record { m, n, k, .. } = record;
    match record.scaling {
        Scaling::Strong => format!("{m} x {n} x {k}"),
        Scaling::Weak => format!("{m} x {n} x {k} (weak)"),
    }
}

fn ranks(record: &Record) -> String {
    match record.grid {
        Some(grid) if grid.ranks() == record.ranks => format!("{} ({grid})", record.ranks),
        Some(grid) => format!("{} ({grid} and a master)", record.ranks),
        None => record.ranks.to_string(),
    }
}

fn verdict(record: &Record) -> &'static str {
    match (record.proven, record.sent_as_the_formula_says()) {
        (false, _) => "NOT PROVEN",
        (true, false) => "right, but sends not what the formula says",
        (true, true) => "right",
    }
}

/// What is known of one layout: each phase of each rank beside the model, and what was sent.
fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{} of {} on {}: {}",
        record.layout,
        shape(record),
        plural(record.ranks, "rank"),
        verdict(record)
    )?;
    for statement in record.verification.split("; ") {
        writeln!(out, "    {statement}")?;
    }
    if let Some(rows) = &record.corner {
        for row in rows {
            let numbers: Vec<String> = row.iter().map(f64::to_string).collect();
            writeln!(out, "    {}", numbers.join(" "))?;
        }
    }
    if record.times_s.is_empty() {
        return Ok(());
    }
    let mut table = new_table();
    table.set_header([
        "rank",
        "block of C",
        "distribute",
        "compute",
        "wait",
        "idle",
        "collect",
        "sent",
        "formula",
        "messages",
    ]);
    let times = |times: Times| times.to_array().map(duration);
    for (rank, of_rank) in record.per_rank.iter().enumerate().take(RANKS_SHOWN) {
        let [distribute, compute, wait, idle, collect] = times(of_rank.times);
        let (sent, formula) = (of_rank.sent.total(), of_rank.formula.total());
        table.add_row([
            rank.to_string(),
            format!("{} x {}", of_rank.rows, of_rank.columns),
            distribute,
            compute,
            wait,
            idle,
            collect,
            sent.elements.to_string(),
            formula.elements.to_string(),
            sent.messages.to_string(),
        ]);
    }
    let mut add = |name: &str, of: Times| {
        let [distribute, compute, wait, idle, collect] = times(of);
        let dash = || "-".to_string();
        table.add_row([
            name.to_string(),
            dash(),
            distribute,
            compute,
            wait,
            idle,
            collect,
            dash(),
            dash(),
            dash(),
        ]);
    };
    add("slowest", record.slowest);
    if let Some(predicted) = record.predicted {
        add("model", predicted);
    }
    writeln!(out, "\n{table}")?;
    if let (Some(machine), Some(predicted), Some(median), Some(error)) = (
        &record.machine,
        record.predicted,
        record.time_median_s,
        record.model_error(),
    ) {
        let network = match record.ranks {
            1 => String::new(),
            _ => format!(
                "latency {}, {:.2} GB/s, ",
                duration(machine.latency_s),
                machine.bytes_per_s / 1e9
            ),
        };
        writeln!(
            out,
            "\n    model   {network}{} a rank: {} in all, {:.1} % {} than measured ({})",
            speed(machine.flops_per_s),
            duration(predicted.total()),
            100.0 * error.abs(),
            if error < 0.0 { "less" } else { "more" },
            duration(median),
        )?;
    }
    Ok(())
}

/// Bytes in the unit that suits them.
pub fn bytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        1e9.. => format!("{:.2} GB", bytes / 1e9),
        1e6.. => format!("{:.2} MB", bytes / 1e6),
        1e3.. => format!("{:.2} kB", bytes / 1e3),
        _ => format!("{bytes} B"),
    }
}

/// A line of CSV: a record less its lists.
#[derive(Serialize)]
struct Line<'a> {
    layout: &'a str,
    kernel: &'a str,
    dtype: &'a str,
    m: usize,
    n: usize,
    k: usize,
    ranks: usize,
    grid_rows: usize,
    grid_columns: usize,
    scaling: Scaling,
    threads: usize,
    panel: usize,
    proven: bool,
    time_median_s: Option<f64>,
    flops_per_s: Option<f64>,
    speedup: Option<f64>,
    efficiency: Option<f64>,
    resident_median_s: Option<f64>,
    resident_flops_per_s: Option<f64>,
    resident_speedup: Option<f64>,
    resident_efficiency: Option<f64>,
    distribute_s: f64,
    compute_s: f64,
    wait_s: f64,
    idle_s: f64,
    collect_s: f64,
    predicted_s: Option<f64>,
    predicted_resident_s: Option<f64>,
    predicted_distribute_s: Option<f64>,
    predicted_compute_s: Option<f64>,
    predicted_wait_s: Option<f64>,
    predicted_collect_s: Option<f64>,
    sent_bytes: u64,
    formula_bytes: u64,
    verification: &'a str,
}

fn write_csv(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for record in &report.records {
        let predicted = |of: &dyn Fn(Times) -> f64| record.predicted.map(of);
        let line = Line {
            layout: &record.layout,
            kernel: &record.kernel,
            dtype: &record.dtype,
            m: record.m,
            n: record.n,
            k: record.k,
            ranks: record.ranks,
            grid_rows: record.grid.map_or(0, |grid| grid.rows),
            grid_columns: record.grid.map_or(0, |grid| grid.columns),
            scaling: record.scaling,
            threads: record.threads,
            panel: record.panel,
            proven: record.proven,
            time_median_s: record.time_median_s,
            flops_per_s: record.flops_per_s,
            speedup: record.speedup,
            efficiency: record.efficiency,
            resident_median_s: record.resident_median_s,
            resident_flops_per_s: record.resident_flops_per_s,
            resident_speedup: record.resident_speedup,
            resident_efficiency: record.resident_efficiency,
            distribute_s: record.slowest.distribute_s,
            compute_s: record.slowest.compute_s,
            wait_s: record.slowest.wait_s,
            idle_s: record.slowest.idle_s,
            collect_s: record.slowest.collect_s,
            predicted_s: predicted(&|times| times.total()),
            predicted_resident_s: predicted(&|times| times.resident()),
            predicted_distribute_s: predicted(&|times| times.distribute_s),
            predicted_compute_s: predicted(&|times| times.compute_s),
            predicted_wait_s: predicted(&|times| times.wait_s),
            predicted_collect_s: predicted(&|times| times.collect_s),
            sent_bytes: record.sent_bytes,
            formula_bytes: record.formula_bytes,
            verification: &record.verification,
        };
        writer.serialize(line).map_err(io::Error::other)?;
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_the_unit_that_suits_them() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(12_340), "12.34 kB");
        assert_eq!(bytes(16_777_216), "16.78 MB");
        assert_eq!(bytes(4_000_000_000), "4.00 GB");
    }

    #[test]
    fn what_is_sent_beside_the_formula_is_no_plain_verdict() {
        let mut record = Record {
            proven: true,
            per_rank: vec![Default::default()],
            ..Record::default()
        };
        assert_eq!(verdict(&record), "right");
        record.per_rank[0].sent.multiply.elements = 1;
        assert!(verdict(&record).contains("formula"));
        record.proven = false;
        assert_eq!(verdict(&record), "NOT PROVEN");
    }

    #[test]
    fn the_resident_table_has_compute_and_wait_and_their_speed_up() {
        let record = Record {
            layout: "summa".to_string(),
            ranks: 2,
            resident_median_s: Some(0.25),
            resident_speedup: Some(1.97),
            resident_efficiency: Some(0.985),
            predicted: Some(Times::from_array([1.0, 0.125, 0.0625, 1.0, 1.0])),
            ..Record::default()
        };
        let report = Report {
            records: vec![record],
            ..Report::default()
        };
        let mut out = Vec::new();
        report.write(Format::Table, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (_, resident) = text.split_once("Resident, with A and B").expect(&text);
        for part in ["250.0 ms", "187.5 ms", "1.97", "98.5 %"] {
            assert!(resident.contains(part), "no `{part}` in {resident}");
        }
    }

    #[test]
    fn csv_has_a_line_a_record_and_dashes_nothing() {
        let report = Report {
            records: vec![Record::default(); 2],
            ..Report::default()
        };
        let mut out = Vec::new();
        report.write(Format::Csv, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].starts_with("layout,kernel,dtype,m,n,k,ranks,"),
            "{text}"
        );
        assert_eq!(lines[1].split(',').count(), lines[0].split(',').count());
    }
}
