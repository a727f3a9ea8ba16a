//! The results as lines, one for each kernel or yardstick at each size: of JSON, so that what is
//! finished can be read while the rest is measured, and of CSV, whose columns are the same fields
//! less the lists.

use serde::Serialize;

use super::results::{Results, Size};
use crate::report::{self, Record};

/// What is needed to understand a record alone.
#[derive(Serialize)]
struct About<'a> {
    schema: u32,
    device: &'a str,
    /// The shape's, if it has one.
    name: Option<&'a str>,
    /// Whether it is cuBLAS, which is not proven, and not a kernel.
    is_yardstick: bool,
}

/// The names of its fields, in their order.
const ABOUT: [&str; 4] = ["schema", "device", "name", "is_yardstick"];

/// A line.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    about: About<'a>,
    #[serde(flatten)]
    record: Record,
}

/// The kernels and yardsticks of one size.
fn lines<'a>(results: &'a Results, size: &'a Size) -> Vec<(About<'a>, Record)> {
    let line = |(record, is_yardstick): (Record, bool)| {
        let about = About {
            schema: results.schema,
            device: &results.machine_of(record.device_label.as_deref()).device,
            name: size.name.as_deref(),
            is_yardstick,
        };
        (about, record)
    };
    size.contenders().map(line).collect()
}

/// CSV of all sizes.
pub(super) fn csv(results: &Results) -> Result<String, csv::Error> {
    let sizes = results.sizes.iter();
    let lines: Vec<_> = sizes.flat_map(|size| lines(results, size)).collect();
    report::csv_lines(&ABOUT, lines.iter().map(|(about, record)| (about, record)))
}

/// JSON of one size.
pub(super) fn json(results: &Results, size: &Size) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for (about, record) in lines(results, size) {
        text += &serde_json::to_string(&Line { about, record })?;
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use serde_json::Value;

    #[test]
    fn a_line_is_an_object_with_the_fields_of_a_record() {
        let results = sample();
        let text = json(&results, &results.sizes[1]).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 5 + 2);
        for line in &lines {
            assert_eq!(line["schema"], 1);
            assert_eq!(line["device"], "NVIDIA H200");
            assert_eq!((&line["m"], &line["dtype"]), (&4096.into(), &"f32".into()));
        }
        assert_eq!(lines[1]["kernel"], "tiled-32");
        assert_eq!(lines[1]["is_yardstick"], false);
        let record: Record = serde_json::from_value(lines[1].clone()).unwrap();
        assert_eq!(record, results.sizes[1].results[1]);
        assert_eq!(lines[5]["kernel"], "cublas-fp32");
        assert_eq!(lines[5]["is_yardstick"], true);
    }

    /// Each line, as the fields of its columns.
    fn read(results: &Results) -> Vec<Vec<(String, String)>> {
        let text = csv(results).unwrap();
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
    fn the_columns_are_the_keys_of_json_lines_less_the_lists() {
        let mut results = sample();
        let record = &mut results.sizes[0].results[0];
        record.times_s = vec![1.0, 2.0];
        record.corner = Some(vec![vec![1.0]]);
        let json: String = results
            .sizes
            .iter()
            .map(|size| json(&results, size).unwrap())
            .collect();
        let csv = read(&results);
        assert_eq!(
            (json.lines().count(), csv.len()),
            (2 * (5 + 2), 2 * (5 + 2))
        );
        for (json, csv) in json.lines().zip(csv) {
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
