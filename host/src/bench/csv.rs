//! The results as lines of comma-separated values, one for each kernel or yardstick at each size.
//! The columns are the fields of JSON Lines, less the lists.

use super::lines::{About, lines};
use super::results::Results;
use crate::report;

/// The lines, after a line of column names.
///
/// # Errors
///
/// None that memory has room for.
pub(super) fn text(results: &Results) -> Result<String, csv::Error> {
    let lines: Vec<_> = results
        .sizes
        .iter()
        .flat_map(|size| lines(results, size))
        .collect();
    let lines = lines.iter().map(|(about, record)| (about, record));
    report::csv_lines(&About::FIELDS, lines)
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;
    use crate::bench::results::tests::sample;
    use serde_json::Value;

    /// Each line, as the fields of its columns.
    fn read(results: &Results) -> Vec<Vec<(String, String)>> {
        let text = text(results).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers().unwrap().clone();
        let line = |line: Result<csv::StringRecord, _>| {
            let line = line.unwrap();
            let fields = columns.iter().zip(&line);
            fields
                .map(|(column, field)| (column.to_string(), field.to_string()))
                .collect()
        };
        reader.records().map(line).collect()
    }

    #[test]
    fn there_is_a_line_for_each_kernel_and_yardstick_at_each_size() {
        let lines = read(&sample());
        assert_eq!(lines.len(), 2 * (5 + 2));
        let field = |line: usize, name: &str| {
            let mut fields = lines[line].iter();
            fields.find(|(column, _)| column == name).unwrap().1.clone()
        };
        assert_eq!(field(3, "kernel"), "conflict-free-sn8");
        assert_eq!(field(3, "proven"), "false");
        assert_eq!(field(3, "time_median_s"), "");
        assert_eq!(field(6, "kernel"), "cublas-tf32");
        assert_eq!(field(6, "is_yardstick"), "true");
        assert_eq!(field(12, "ratio_to_cublas").parse(), Ok(1.0));
        assert_eq!(field(12, "m"), "4096");
    }

    #[test]
    fn the_columns_are_the_keys_of_json_lines_less_the_lists() {
        let mut results = sample();
        let record = &mut results.sizes[0].results[0];
        record.times_s = vec![1.0, 2.0];
        record.corner = Some(vec![vec![1.0]]);
        results.sizes.truncate(1);
        let json = lines::text(&results, &results.sizes[0]).unwrap();
        for (json, csv) in json.lines().zip(read(&results)) {
            let json: Value = serde_json::from_str(json).unwrap();
            let json = json.as_object().unwrap();
            let keys = json.iter().filter(|(_, value)| !value.is_array());
            let mut keys: Vec<&String> = keys.map(|(key, _)| key).collect();
            let mut columns: Vec<&String> = csv.iter().map(|(column, _)| column).collect();
            keys.sort();
            columns.sort();
            assert_eq!(columns, keys);
            // And they say the same.
            for (column, field) in &csv {
                match &json[column] {
                    Value::Null => assert_eq!(field, "", "{column}"),
                    Value::String(text) => assert_eq!(field, text, "{column}"),
                    Value::Bool(is) => assert_eq!(field, &is.to_string(), "{column}"),
                    number => assert_eq!(field.parse().ok(), number.as_f64(), "{column}"),
                }
            }
        }
    }
}
