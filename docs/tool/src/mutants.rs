//! What became of the errors that `cargo run -p mutants` planted, from its record.

use crate::repository::at_root;

/// What the tool writes.
const RECORD: &str = "tests/mutants/record.csv";

/// Where errors are planted, and what a reader knows it by.
const PARTS: [(&str, &str); 4] = [
    ("gpu-kernels/src/", "kernels"),
    ("host/src/verify/", "verification"),
    ("host/src/prove/", "the gates of the proof"),
    ("host/src/measure/", "measurement"),
];

/// How many mutants there are, and how many of them the tests notice.
#[derive(Clone, Copy, Default)]
struct Score {
    mutants: usize,
    caught: usize,
}

impl Score {
    fn share(self) -> String {
        format!("{:.1} %", 100.0 * self.caught as f64 / self.mutants as f64)
    }
}

/// Of all mutants: how many there are (`all`), how many are `caught`, their `share`, or how many
/// `survive`.
///
/// # Errors
///
/// There is no such figure, or no record.
pub fn figure(what: &str) -> Result<String, String> {
    let parts = scores()?;
    let mut all = Score::default();
    for (_, score) in parts {
        all.mutants += score.mutants;
        all.caught += score.caught;
    }
    match what {
        "all" => Ok(all.mutants.to_string()),
        "caught" => Ok(all.caught.to_string()),
        "share" => Ok(all.share()),
        "survive" => Ok((all.mutants - all.caught).to_string()),
        _ => Err(format!("`mutants {what}` is no figure")),
    }
}

/// A table of mutants, by parts of the sources.
///
/// # Errors
///
/// There is no record.
pub fn table() -> Result<String, String> {
    let mut table =
        "\n| in | mutants | caught | share |\n| --- | ---: | ---: | ---: |\n".to_owned();
    for (name, score) in scores()? {
        let Score { mutants, caught } = score;
        table += &format!("| {name} | {mutants} | {caught} | {} |\n", score.share());
    }
    Ok(table)
}

fn scores() -> Result<[(&'static str, Score); 4], String> {
    let in_record = |error: csv::Error| format!("{RECORD}: {error}");
    let mut reader = csv::Reader::from_path(at_root(RECORD)).map_err(in_record)?;
    let mut scores = PARTS.map(|(_, name)| (name, Score::default()));
    for row in reader.deserialize() {
        let (file, _, _, mutants, caught): (String, String, String, usize, usize) =
            row.map_err(in_record)?;
        let part = PARTS
            .iter()
            .position(|(folder, _)| file.starts_with(folder));
        let part =
            part.ok_or_else(|| format!("{RECORD}: `{file}` is in no part of the sources"))?;
        scores[part].1.mutants += mutants;
        scores[part].1.caught += caught;
    }
    Ok(scores)
}
