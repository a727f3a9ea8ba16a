//! How long it takes to check and time products of odd shapes, stage by stage, from what
//! `rust-gemm bench` wrote to `results/`.

use host::bench::Size;

use crate::measured::proven;

/// `auto` at the shapes that programs multiply, beside four libraries, on an H200.
const FILE: &str = "results/h200-shapes.json";

/// A side that is this many times another makes a shape odd.
const LONG: usize = 1024;

/// The columns, and what is said to be done in the stages of each.
const COLUMNS: [(&str, &[&str]); 5] = [
    ("fill", &["reading or filling matrices"]),
    (
        "reference",
        &["computing a reference", "checking the reference"],
    ),
    ("run", &["running"]),
    ("compare", &["checking"]),
    ("time", &["timing"]),
];

/// A row for each shape.
///
/// # Errors
///
/// The results are not right.
pub fn table() -> Result<String, String> {
    let results = proven(FILE)?;
    let names: String = COLUMNS
        .iter()
        .map(|(name, _)| format!(" {name} |"))
        .collect();
    let mut table = format!(
        "\n| m × n × k |{names} in all |\n| --- |{} ---: |\n",
        " ---: |".repeat(COLUMNS.len())
    );
    for size in results.sizes.iter().filter(|size| is_odd(size)) {
        table += &row(size);
    }
    Ok(table + "\n")
}

/// Whether a side is no multiple of 8, or far longer than another.
fn is_odd(size: &Size) -> bool {
    let sides = [size.m, size.n, size.k];
    let longest = sides.into_iter().max().unwrap_or(0);
    let shortest = sides.into_iter().min().unwrap_or(0);
    sides.iter().any(|side| !side.is_multiple_of(8)) || longest >= LONG * shortest
}

fn row(size: &Size) -> String {
    let of = |stages: &[&str]| -> f64 {
        let own = size.stages.iter();
        let own = own.filter(|one| stages.contains(&one.stage.as_str()));
        own.map(|one| one.seconds).fold(0.0, |sum, one| sum + one)
    };
    let cells: String = COLUMNS
        .iter()
        .map(|(_, stages)| format!(" {:.2} s |", of(stages)))
        .collect();
    let all: f64 = size.stages.iter().map(|one| one.seconds).sum();
    format!(
        "| {} × {} × {} |{cells} {all:.2} s |\n",
        size.m, size.n, size.k
    )
}
