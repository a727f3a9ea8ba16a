//! The results as JSON Lines, one for each kernel or yardstick at each size, so that what is
//! finished can be read while the rest is measured.

use serde::Serialize;

use super::results::{Results, Size};
use crate::report::Record;

/// What is needed to understand a record alone.
#[derive(Serialize)]
pub(super) struct About<'a> {
    schema: u32,
    device: &'a str,
    /// The shape's, if it has one.
    name: Option<&'a str>,
    /// Whether it is cuBLAS, which is not proven, and not a kernel.
    is_yardstick: bool,
}

impl About<'_> {
    /// The names of its fields, in their order.
    pub const FIELDS: [&'static str; 4] = ["schema", "device", "name", "is_yardstick"];
}

/// A line.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    about: About<'a>,
    #[serde(flatten)]
    record: Record,
}

/// The kernels and yardsticks of one size.
pub(super) fn lines<'a>(results: &'a Results, size: &'a Size) -> Vec<(About<'a>, Record)> {
    let line = |(record, proven): (Record, Option<bool>)| {
        let about = About {
            schema: results.schema,
            device: &results.machine_of(record.device_label.as_deref()).device,
            name: size.name.as_deref(),
            is_yardstick: proven.is_none(),
        };
        (about, record)
    };
    size.contenders().into_iter().map(line).collect()
}

/// The lines of one size.
///
/// # Errors
///
/// None that memory has room for.
pub(super) fn text(results: &Results, size: &Size) -> Result<String, serde_json::Error> {
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
    use crate::bench::results::tests::sample;
    use serde_json::Value;

    #[test]
    fn a_line_is_an_object_with_the_fields_of_a_record() {
        let results = sample();
        let text = text(&results, &results.sizes[1]).unwrap();
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
}
