//! The report for people.

use std::io::{self, Write};

use gpu_gemm::text::plural;
use host::report::{duration, new_table, or_dash, percent, speed};

use crate::clock::Times;
use crate::record::{Record, Report, Timing};

/// Ranks that get a line of their own; of more only the slowest times are shown.
const RANKS_SHOWN: usize = 16;

/// Writes the report as tables.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
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
        let (dtype, kernel, data) = (&first.dtype, &first.kernel, &first.data);
        let (alpha, beta, seed) = (first.alpha, first.beta, first.seed);
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
    let mut table = new_table();
    let of = ["layout", "shape", "ranks"];
    let speeds = ["speed", "speed-up", "efficiency"];
    table.set_header(
        of.into_iter()
            .chain(["time"])
            .chain(speeds)
            .chain(["sent", "result"]),
    );
    for record in &report.records {
        let mut row = first_cells(record);
        row.push(or_dash(record.whole.median_s.map(duration)));
        row.extend(speed_cells(&record.whole));
        row.extend([bytes(record.sent_bytes), verdict(record).to_string()]);
        table.add_row(row);
    }
    writeln!(out, "\n{table}")?;
    let mut table = new_table();
    table.set_header(of.into_iter().chain(["time", "the model"]).chain(speeds));
    let mut is_timed = false;
    for record in &report.records {
        let Some(median) = record.resident.median_s else {
            continue;
        };
        is_timed = true;
        let mut row = first_cells(record);
        let predicted = record.predicted.map(|times| duration(times.resident()));
        row.extend([duration(median), or_dash(predicted)]);
        row.extend(speed_cells(&record.resident));
        table.add_row(row);
    }
    if is_timed {
        writeln!(
            out,
            "\nResident, with A and B where the layout needs them and C where it is computed (compute \
             and wait, of the rank that takes the longest):\n\n{table}"
        )?;
    }
    for record in &report.records {
        write_record(record, out)?;
    }
    if let Some(path) = &report.output {
        writeln!(out, "\nC is in {path}")?;
    }
    Ok(())
}

/// What a row is of.
fn first_cells(record: &Record) -> Vec<String> {
    let Record { layout, ranks, .. } = record;
    let ranks = match record.grid {
        Some(grid) if grid.ranks() == *ranks => format!("{ranks} ({grid})"),
        Some(grid) => format!("{ranks} ({grid} and a master)"),
        None => ranks.to_string(),
    };
    vec![layout.clone(), record.shape().to_string(), ranks]
}

fn speed_cells(timing: &Timing) -> [String; 3] {
    [
        or_dash(timing.flops_per_s.map(speed)),
        or_dash(timing.speedup.map(|ratio| format!("{ratio:.2}"))),
        or_dash(timing.efficiency.map(percent)),
    ]
}

fn verdict(record: &Record) -> &'static str {
    match (record.passed, record.sent_as_the_formula_says()) {
        (false, _) => "FAILED",
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
        record.shape(),
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
    if record.whole.times_s.is_empty() {
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
    let mut add = |name: String, block: String, times: Times, sent: [String; 3]| {
        let times = times.to_array().map(duration);
        table.add_row([name, block].into_iter().chain(times).chain(sent));
    };
    for (rank, of_rank) in record.per_rank.iter().enumerate().take(RANKS_SHOWN) {
        let (sent, formula) = (of_rank.sent.total(), of_rank.formula.total());
        let block = format!("{} x {}", of_rank.rows, of_rank.columns);
        let sent = [sent.elements, formula.elements, sent.messages].map(|one| one.to_string());
        add(rank.to_string(), block, of_rank.times, sent);
    }
    let of_all = [
        ("slowest", Some(record.slowest)),
        ("model", record.predicted),
    ];
    for (name, times) in of_all {
        if let Some(times) = times {
            let dashes = [(); 3].map(|()| "-".to_string());
            add(name.to_string(), "-".to_string(), times, dashes);
        }
    }
    writeln!(out, "\n{table}")?;
    if let (Some(machine), Some(predicted), Some(median), Some(error)) = (
        &record.machine,
        record.predicted,
        record.whole.median_s,
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
            passed: true,
            per_rank: vec![Default::default()],
            ..Record::default()
        };
        assert_eq!(verdict(&record), "right");
        record.per_rank[0].sent.multiply.elements = 1;
        assert!(verdict(&record).contains("formula"));
        record.passed = false;
        assert_eq!(verdict(&record), "FAILED");
    }
}
