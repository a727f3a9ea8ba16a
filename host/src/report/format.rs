//! The format of figures for people.

use comfy_table::{Table, presets};

/// The text, or a dash for what was not measured.
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_string())
}

/// `93.2 %`.
pub fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

/// The shortest and the longest time.
pub fn spread((min, max): (f64, f64)) -> String {
    format!("{} .. {}", duration(min), duration(max))
}

/// A table that looks the same on a terminal and in a file, and is valid Markdown.
pub fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table
}

/// Seconds in a suitable unit, to four digits.
pub fn duration(seconds: f64) -> String {
    scaled(
        seconds,
        &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
    )
}

/// Operations a second in a suitable unit, to four digits.
pub fn speed(flops_per_second: f64) -> String {
    scaled(
        flops_per_second,
        &[(1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s")],
    )
}

/// `value` in the first unit in which it is at least 1, else in the last.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let unit = units
        .iter()
        .find(|(size, _)| value >= *size)
        .or(units.last());
    let (size, name) = unit.copied().unwrap_or((1.0, ""));
    let value = value / size;
    let digits = match value {
        100.0.. => 1,
        10.0..100.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$} {name}")
}
