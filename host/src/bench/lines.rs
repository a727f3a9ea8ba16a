//! The results as CSV: a line for each kernel and yardstick at each size.

use serde::Serialize;

use super::results::{Results, Size};
use crate::report::{self, Record};

/// The fields without which a line cannot be understood alone.
#[derive(Serialize)]
struct About<'a> {
    schema: u32,
    device: &'a str,
    /// The name of the shape, if it has one.
    name: Option<&'a str>,
    /// Whether it is cuBLAS, which is not proven, and not a kernel.
    is_yardstick: bool,
}

/// The names of its fields, in their order.
const ABOUT: [&str; 4] = ["schema", "device", "name", "is_yardstick"];

/// The kernels and yardsticks of one size.
fn lines<'a>(results: &'a Results, size: &'a Size) -> Vec<(About<'a>, &'a Record)> {
    let line = |(record, is_yardstick): (&'a Record, bool)| {
        let about = About {
            schema: results.schema,
            device: &results.machine.device,
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
    report::csv_lines(&ABOUT, lines.iter().map(|(about, record)| (about, *record)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use serde_json::Value;
    use std::collections::HashMap;

    #[test]
    fn a_line_is_a_record_less_its_lists_and_what_it_is_of() {
        let mut results = sample();
        let record = &mut results.sizes[0].results[0];
        record.times_s = vec![1.0, 2.0];
        record.corner = Some(vec![vec![1.0]]);
        let text = csv(&results).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let lines: Vec<HashMap<String, String>> =
            reader.deserialize().map(Result::unwrap).collect();
        assert_eq!(lines.len(), 2 * (5 + 2));
        let contenders = results.sizes.iter().flat_map(Size::contenders);
        for (line, (record, is_yardstick)) in lines.iter().zip(contenders) {
            assert_eq!(line["device"], "NVIDIA H200");
            assert_eq!(line["is_yardstick"], is_yardstick.to_string());
            let record = serde_json::to_value(record).unwrap();
            for (key, value) in record.as_object().unwrap() {
                match value {
                    Value::Array(_) => assert!(!line.contains_key(key), "{key}"),
                    Value::Null => assert_eq!(line[key], "", "{key}"),
                    Value::String(text) => assert_eq!(&line[key], text, "{key}"),
                    Value::Number(number) => assert_eq!(line[key].parse().ok(), number.as_f64()),
                    other => assert_eq!(line[key], other.to_string(), "{key}"),
                }
            }
        }
    }
}
