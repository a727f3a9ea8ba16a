//! The results as lines of comma-separated values, one for each kernel or yardstick at each size.

use serde::Serialize;

use super::results::Results;

/// A line; the names are the columns. What was not measured is empty.
#[derive(Serialize)]
struct Line<'a> {
    contender: &'a str,
    m: usize,
    n: usize,
    k: usize,
    /// Empty for a yardstick, which is not proven.
    proven: Option<bool>,
    runs: Option<usize>,
    time_median_s: Option<f64>,
    time_min_s: Option<f64>,
    time_max_s: Option<f64>,
    flops_per_s: Option<f64>,
    ratio_to_cublas: Option<f64>,
    /// The shape's, if it has one.
    name: Option<&'a str>,
    /// What `auto` chose.
    chosen: Option<&'a str>,
}

/// The lines, after a line of column names.
///
/// # Errors
///
/// None that memory has room for.
pub(super) fn text(results: &Results) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for size in &results.sizes {
        let (m, n, k) = (size.m, size.n, size.k);
        let name = size.name.as_deref();
        for (record, proven) in &size.contenders() {
            writer.serialize(Line {
                contender: &record.kernel,
                m,
                n,
                k,
                proven: *proven,
                runs: record.runs,
                time_median_s: record.time_median_s,
                time_min_s: record.time_min_s,
                time_max_s: record.time_max_s,
                flops_per_s: record.flops_per_s,
                ratio_to_cublas: record.ratio_to_cublas,
                name,
                chosen: record.chosen.as_deref(),
            })?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::tests::sample;

    #[test]
    fn there_is_a_line_for_each_kernel_and_yardstick_at_each_size() {
        let text = text(&sample()).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), 2 * (5 + 2));
        assert_eq!(&lines[3][0], "conflict-free-sn8");
        assert_eq!((&lines[3][4], &lines[3][6]), ("false", ""));
        assert_eq!((&lines[6][0], &lines[6][4]), ("cublas-tf32", ""));
        assert_eq!(lines[12][10].parse(), Ok(1.0));
    }
}
