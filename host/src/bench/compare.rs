//! `bench --compare FILE`: the median times beside those of an earlier `bench --json FILE`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::results::{Results, SCHEMA, Size};
use crate::output::clause;
use crate::report::{Record, duration, new_table};
use crate::statistics::quartiles;

/// An earlier benchmark, and the path as the user gave it.
pub struct Earlier {
    path: PathBuf,
    results: Results,
}

impl Earlier {
    /// Reads a file, or says in a sentence why `bench --json` of this version did not write it.
    pub fn read(path: &Path) -> Result<Earlier, String> {
        let advice = "--compare reads a file that `bench --json` wrote.";
        let refusal = |why: String| format!("`{}` {why}. {advice}", path.display());
        let text = std::fs::read(path);
        let text = text.map_err(|why| refusal(format!("cannot be read: {}", clause(&why))))?;
        let results: Results = serde_json::from_slice(&text)
            .map_err(|why| refusal(format!("is no benchmark: {why}")))?;
        let (path, schema) = (path.to_path_buf(), results.schema);
        match schema <= SCHEMA {
            true => Ok(Earlier { path, results }),
            false => Err(refusal(format!(
                "has the layout of a later version, {schema}"
            ))),
        }
    }

    /// Writes a row for everything that was timed in both.
    pub fn write(&self, now: &Results, out: &mut dyn Write) -> io::Result<()> {
        let mut table = new_table();
        table.set_header(["kernel", "shape", "earlier", "now", "speed-up"]);
        for (size, record) in timed(now) {
            let earlier = timed(&self.results).find(|earlier| work(earlier.1) == work(record));
            let Some((_, earlier)) = earlier else {
                continue;
            };
            let overlaps = if overlap(earlier, record) { " ~" } else { "" };
            table.add_row([
                record.kernel.clone(),
                size.title(),
                duration(earlier.seconds()),
                duration(record.seconds()),
                format!("x {:.3}{overlaps}", earlier.seconds() / record.seconds()),
            ]);
        }
        let (path, machine) = (self.path.display(), &self.results.machine.device);
        match table.is_empty() {
            true => writeln!(out, "\nNothing here was measured in `{path}`, too."),
            false => writeln!(
                out,
                "\ncompared with `{path}` ({machine}):\n\n{table}\n{LEGEND}"
            ),
        }
    }
}

const LEGEND: &str =
    "speed-up: of the median times; ~: may be noise, as the middle halves of the times overlap";

fn timed(results: &Results) -> impl Iterator<Item = (&Size, &Record)> {
    let of_size = |size| Size::contenders(size).map(move |(record, _)| (size, record));
    let all = results.sizes.iter().flat_map(of_size);
    all.filter(|(_, record)| record.time_median_s > Some(0.0))
}

/// Only times of the same work are compared.
fn work(record: &Record) -> impl PartialEq {
    let scalars = [record.alpha, record.beta];
    let names = [&record.kernel, &record.dtype].map(String::clone);
    let transposes = [record.transpose_a, record.transpose_b];
    let lengths = (record.leading_dimensions(), record.batch);
    (names, record.shape(), lengths, transposes, scalars)
}

/// Whether the interquartile ranges overlap; also if there are too few runs to tell.
fn overlap(earlier: &Record, now: &Record) -> bool {
    match [earlier, now].map(|record| quartiles(&record.times_s)) {
        [Some(earlier), Some(now)] => earlier[0] <= now[1] && now[0] <= earlier[1],
        _ => true,
    }
}
