//! The program's report on one kernel, for readers without a GPU, and the times of checks, from the
//! files that `rust-gemm bench` wrote to `results/`.

use host::bench::Size;
use host::progress::Stage;
use host::report::{Format, Report, Yardstick};

use crate::figures::{MAIN_SIZE, at};
use crate::measured::{h200, h200_shapes, passed};
use crate::parts::unbroken;

/// A report on a kernel at [`MAIN_SIZE`]. The lines `device` and `why` stay as they are on the
/// page: the results do not have all of them.
pub fn report(name: &str, old: &str) -> Result<String, String> {
    let results = h200()?;
    let size = at(&results, MAIN_SIZE).ok_or("there is no such size")?;
    let record = size.record(name);
    let mut record = record
        .ok_or_else(|| format!("`{name}` was not measured"))?
        .clone();
    // The second gate had that name in version 3 of the files.
    record.verification = record.verification.replace("proven: ", "bound: ");
    let kept = |start: &str| {
        let mut lines = old.lines();
        let text = lines.find_map(|line| line.trim_start().strip_prefix(start));
        let text = text.ok_or_else(|| format!("`sample {name}` has no line `{start}`"))?;
        // A long line goes on below its text.
        let more = lines.take_while(|line| line.starts_with("            "));
        let words: Vec<&str> = std::iter::once(text).chain(more).map(str::trim).collect();
        Ok::<String, String>(words.join(" "))
    };
    let is_same = |one: &&Yardstick| one.kernel.ends_with("-fp32");
    let same = size.yardsticks.iter().filter(is_same);
    let report = Report {
        device: kept("device ")?,
        reason: kept("why ")?,
        cublas: results.machine.cublas.clone(),
        gpu_state: size.gpu_state.clone(),
        results: vec![record],
        yardsticks: Yardstick::with_ratios(same.cloned().collect()),
        ..Report::default()
    };
    let mut text = Vec::new();
    let written = report.write(Format::Table, &mut text);
    written.map_err(|error| error.to_string())?;
    let mut block = "\n".to_string();
    for line in String::from_utf8_lossy(&text).lines() {
        block += format!("    {line}").trim_end();
        block += "\n";
    }
    Ok(block + "\n")
}

/// The columns of [`stages`], and the names that the results have for what they add up.
const STAGES: [(&str, &[&str]); 5] = [
    ("fill", &["reading or filling matrices"]),
    ("reference", &["computing a reference"]),
    ("run", &["running"]),
    ("compare", &["checking", "checking the reference"]),
    ("time", &["timing"]),
];

/// How long each stage of checking and timing `auto` took, for the shapes that took longest.
pub fn stages() -> Result<String, String> {
    const ROWS: usize = 8;
    let mut rows: Vec<(f64, String)> = Vec::new();
    for Size {
        m, n, k, stages, ..
    } in &h200_shapes()?.sizes
    {
        let mut row = format!("| {m} × {n} × {k} |");
        let mut in_all = 0.0;
        let mut counted = 0;
        for (_, names) in STAGES {
            let is_of = |one: &&Stage| names.contains(&one.stage.as_str());
            let of_column = || stages.iter().filter(is_of);
            let seconds = of_column().fold(0.0, |sum, one| sum + one.seconds);
            row += &format!(" {seconds:.2} s |");
            in_all += seconds;
            counted += of_column().count();
        }
        if counted != stages.len() {
            return Err(format!("{m} x {n} x {k}: a stage has another name"));
        }
        rows.push((in_all, format!("{row} {in_all:.2} s |\n")));
    }
    rows.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    rows.truncate(ROWS);
    let columns = STAGES.map(|(column, _)| column).join(" | ");
    let lines = " ---: |".repeat(STAGES.len() + 1);
    let rows: String = rows.into_iter().map(|(_, row)| row).collect();
    Ok(format!(
        "\n| m × n × k | {columns} | in all |\n| --- |{lines}\n{rows}\n"
    ))
}

/// How long all stages of checking and timing took in a file, together.
pub fn seconds(file: &str) -> Result<String, String> {
    let results = passed(&format!("results/{file}.json"))?;
    let stages = results.sizes.iter().flat_map(|size| &size.stages);
    let seconds: f64 = stages.map(|one| one.seconds).sum();
    match seconds > 0.0 {
        true => Ok(unbroken(&format!("{seconds:.1} s"))),
        false => Err(format!("{file} has no stages")),
    }
}
