//! The comparison for people.

use std::io::{self, Write};

use gpu_gemm::Shape;

use super::{Compared, Earlier, Work, missing};
use crate::bench::results::{Provenance, Results, label};
use crate::report::{duration, new_table, or_dash};

const HEADER: [&str; 7] = [
    "kernel", "shape", "earlier", "now", "change", "p", "verdict",
];

/// The largest number of names in a line.
const MOST_NAMED: usize = 6;

/// Writes the changes, the contenders of one benchmark only, and the machines' differences.
pub fn write(earlier: &Earlier, results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let path = earlier.path.display();
    write!(out, "\ncompared with `{path}`")?;
    if let Some(provenance) = &earlier.results.provenance {
        write!(out, ", {}", described(provenance))?;
    }
    writeln!(out)?;
    let of_machine = differences(&earlier.results, results);
    for difference in &of_machine {
        writeln!(out, "note: {difference}")?;
    }
    match results.comparison.is_empty() {
        true => writeln!(out, "Nothing was measured in both.")?,
        false => writeln!(out, "\n{}\n{LEGEND}", table(&results.comparison))?,
    }
    if let Some(why) = unknown(&results.comparison) {
        writeln!(out, "{why}")?;
    }
    for (whose, names) in [
        (format!("`{path}`"), missing(&earlier.results, results)),
        (
            "this benchmark".to_string(),
            missing(results, &earlier.results),
        ),
    ] {
        if !names.is_empty() {
            writeln!(out, "only in {whose}: {}", shortened(&names))?;
        }
    }
    Ok(())
}

/// The meaning of the columns.
const LEGEND: &str =
    "change: of the median time; p: of the two-sided Mann-Whitney test; no change: within noise";

/// If verdicts are unknown, the reasons and the remedy.
fn unknown(comparison: &[Compared]) -> Option<String> {
    let mut reasons: Vec<&str> = comparison
        .iter()
        .filter_map(|one| one.reason.as_deref())
        .collect();
    reasons.sort();
    reasons.dedup();
    (!reasons.is_empty()).then(|| {
        let reasons = reasons.join(", ");
        format!("unknown: {reasons}; measure both with --runs 10 or more")
    })
}

/// A row for each kernel and shape. It is Markdown, too.
fn table(comparison: &[Compared]) -> String {
    let mut table = new_table();
    table.set_header(HEADER);
    table.add_rows(comparison.iter().map(row));
    table.to_string()
}

fn row(compared: &Compared) -> [String; HEADER.len()] {
    [
        compared.work.kernel.clone(),
        compared.title(),
        duration(compared.earlier_time_median_s),
        duration(compared.time_median_s),
        compared.percent(),
        or_dash(compared.p_value.map(probability)),
        compared.verdict.name().to_string(),
    ]
}

fn probability(p_value: f64) -> String {
    match p_value < 0.001 {
        true => "< 0.001".to_string(),
        false => format!("{p_value:.3}"),
    }
}

impl Compared {
    /// The shape's name, or its dimensions.
    fn title(&self) -> String {
        let Work { m, n, k, .. } = self.work;
        let shape = Shape { m, n, k };
        self.name.clone().unwrap_or_else(|| label(shape))
    }

    fn percent(&self) -> String {
        format!("{:+.1} %", self.change * 100.0)
    }

    /// For a sentence, such as `naive at 1024 (+12.3 %)`.
    pub fn phrase(&self) -> String {
        format!(
            "{} at {} ({})",
            self.work.kernel,
            self.title(),
            self.percent()
        )
    }
}

fn described(provenance: &Provenance) -> String {
    let commit = provenance.commit.as_ref();
    let commit = commit.map_or_else(String::new, |commit| format!(", commit {commit}"));
    let (day, version) = (provenance.day(), &provenance.version);
    format!("measured on {day} by version {version}{commit}")
}

/// Where the matrices were before a product on several devices.
fn start(results: &Results) -> Option<&str> {
    let mut records = results.sizes.iter().flat_map(|size| &size.results);
    records.find_map(|record| Some(record.several.as_ref()?.start.as_str()))
}

/// The differences between the machines, and between their runs.
fn differences(earlier: &Results, now: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    let [before, after] = [earlier, now].map(start);
    if before != after {
        let [before, after] = [before, after].map(|start| start.unwrap_or("one device"));
        notes.push(format!(
            "matrices started at {before}, and start at {after}."
        ));
    }
    let (earlier, now) = (&earlier.machine, &now.machine);
    if (&earlier.backend, &earlier.device) != (&now.backend, &now.device) {
        notes.push(format!(
            "that was measured on {} ({}), this on {} ({}): a change may be due to the machine.",
            earlier.device, earlier.backend, now.device, now.backend
        ));
    }
    for (what, earlier, now) in [
        ("driver", &earlier.driver, &now.driver),
        ("cuBLAS", &earlier.cublas, &now.cublas),
    ] {
        if let (Some(earlier), Some(now)) = (earlier, now)
            && earlier != now
        {
            notes.push(format!("{what} was {earlier}, and is {now}."));
        }
    }
    notes
}

/// A line of names, cut after the first few.
fn shortened(names: &[String]) -> String {
    let shown = names.len().min(MOST_NAMED);
    let text = names[..shown].join(", ");
    match names.len() - shown {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare;
    use super::super::tests::timed;
    use super::*;
    use expect_test::expect_file;
    use std::path::PathBuf;

    fn text(earlier: Results, mut now: Results) -> String {
        now.comparison = compare(&earlier, &now);
        let path = PathBuf::from("before.json");
        let earlier = Earlier {
            path,
            results: earlier,
        };
        let mut out = Vec::new();
        write(&earlier, &now, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const RUNS: [f64; 5] = [3.3e-3, 3.4e-3, 3.5e-3, 3.6e-3, 3.7e-3];

    #[test]
    fn the_comparison_is_as_in_its_golden_file() {
        let mut earlier = timed(&RUNS);
        earlier.provenance = Some(Provenance {
            date: "2026-11-23T08:05:00Z".into(),
            version: "0.1.0".into(),
            commit: Some("4e93ff5-dirty".into()),
            host: "here".into(),
            command: Vec::new(),
        });
        earlier.machine.device = "NVIDIA H100".into();
        earlier.machine.driver = Some("570.1".into());
        earlier.sizes[0].results[1].kernel = "pitched".into();
        let mut now = timed(&RUNS.map(|time| time * 0.8));
        now.sizes[1].name = Some("qkv-1".into());
        let text = text(earlier, now);
        expect_file!["../golden/comparison.txt"].assert_eq(&text);
        for line in text.lines().filter(|line| line.starts_with('|')) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn where_nothing_is_in_both_that_is_said() {
        let mut earlier = timed(&RUNS);
        for size in &mut earlier.sizes {
            size.n += 1;
            let records = size.results.iter_mut().chain(&mut size.yardsticks);
            records.for_each(|record| record.n += 1);
        }
        let text = text(earlier, timed(&RUNS));
        assert!(text.contains("\nNothing was measured in both.\n"), "{text}");
        assert!(!text.contains(LEGEND) && !text.contains("note: "), "{text}");
        assert!(text.contains(" and 6 more\n"), "{text}");
    }
}
