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

/// The shortest and the longest time, both in the unit of the longest.
pub fn spread((min, max): (f64, f64)) -> String {
    let (unit, name) = unit(max, &SECONDS);
    format!("{} .. {} {name}", rounded(min / unit), rounded(max / unit))
}

/// The longest line for people.
const WIDTH: usize = 80;

/// A line, cut between words where it is too long, unless it is a row of a table. The lines after
/// the first begin below its text, which may follow a label and two blanks.
pub fn folded(line: &str) -> String {
    const LONGEST_LABEL: usize = 20;
    let length = |text: &str| text.chars().count();
    if length(line) <= WIDTH || line.starts_with('|') {
        return line.to_string();
    }
    let label = line.find("  ").filter(|end| *end <= LONGEST_LABEL);
    let text = line[label.unwrap_or(0)..].trim_start();
    let start = &line[..line.len() - text.len()];
    let indent = match label {
        Some(1..) => length(start),
        _ => length(start) + 2,
    };
    let mut words = text.split(' ');
    let mut lines = vec![format!("{start}{}", words.next().unwrap_or_default())];
    for word in words {
        match lines.last_mut() {
            Some(last) if length(last) + 1 + length(word) <= WIDTH => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(format!("{:indent$}{word}", "")),
        }
    }
    lines.join("\n")
}

/// A table of these columns, without those that hold nothing but dashes.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> Table {
    let has_values = |column: &usize| rows.iter().any(|row| row[*column] != "-");
    let columns: Vec<usize> = (0..header.len()).filter(has_values).collect();
    let mut table = new_table();
    table.set_header(columns.iter().map(|column| header[*column]));
    table.add_rows(
        rows.iter()
            .map(|row| columns.iter().map(|column| &row[*column])),
    );
    table
}

/// A table that looks the same on a terminal and in a file, and is valid Markdown.
pub fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table
}

/// Seconds in a suitable unit, to four digits.
pub fn duration(seconds: f64) -> String {
    scaled(seconds, &SECONDS)
}

const SECONDS: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];

/// Operations a second in a suitable unit, to four digits.
pub fn speed(flops_per_second: f64) -> String {
    scaled(
        flops_per_second,
        &[(1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s")],
    )
}

fn scaled(value: f64, units: &[(f64, &'static str)]) -> String {
    let (size, name) = unit(value, units);
    format!("{} {name}", rounded(value / size))
}

/// The first unit in which `value` is at least 1, else the last.
fn unit(value: f64, units: &[(f64, &'static str)]) -> (f64, &'static str) {
    let unit = units
        .iter()
        .find(|(size, _)| value >= *size)
        .or(units.last());
    unit.copied().unwrap_or((1.0, ""))
}

/// To four digits.
fn rounded(value: f64) -> String {
    let digits = match value {
        100.0.. => 1,
        10.0..100.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_the_unit_that_suits_them() {
        assert_eq!(duration(1.23456), "1.235 s");
        assert_eq!(duration(0.0123456), "12.35 ms");
        assert_eq!(duration(123.456e-6), "123.5 µs");
        assert_eq!(duration(1e-12), "0.001 ns");
        assert_eq!(speed(42.42e12), "42.42 TFLOP/s");
        assert_eq!(speed(999.96e9), "1000.0 GFLOP/s");
        assert_eq!(spread((342e-6, 3.6984e-3)), "0.342 .. 3.698 ms");
    }

    #[test]
    fn long_lines_are_cut_between_words_and_go_on_below_their_text() {
        let words = "word ".repeat(20);
        let words = words.trim_end();
        for (start, indent) in [("", 2), ("why     ", 8), ("    exact: ", 6), ("step: ", 2)] {
            let text = folded(&format!("{start}{words}"));
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 2, "{text}");
            assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
            assert!(lines[0].starts_with(&format!("{start}word word")), "{text}");
            let next = format!("{:indent$}word", "");
            assert!(lines[1].starts_with(&next), "{text}");
            let joined = format!("{} {}", lines[0], lines[1].trim_start());
            assert_eq!(joined, format!("{start}{words}"));
        }
        let row = format!("| {words} |");
        assert_eq!(folded(&row), row);
        let word = "a".repeat(100);
        assert_eq!(folded(&word), word);
    }

    #[test]
    fn columns_without_a_value_are_left_out() {
        let rows = [["a", "-", "1"], ["b", "-", "-"]].map(|row| row.map(String::from).to_vec());
        let table = table(&["name", "none", "some"], &rows).to_string();
        assert_eq!(table.lines().next(), Some("| name | some |"));
        assert_eq!(table.lines().last(), Some("| b    | -    |"));
    }
}
