//! Bars: the speed of each kernel, and its ratio to cuBLAS.

use super::{at, conditions, drawn, largest, name, of_what, speed_of, unit};
use crate::bench::ratios::summaries;
use crate::bench::results::{Results, Size};
use crate::measure::cublas;
use crate::plot::{BLUE, Bar, Bars, GREY, INK, ORANGE, Row, figure};
use crate::rung::AUTO;

/// The largest number of kernels with drawn ratios: `auto`, and then the fastest.
const RATIO_KERNELS: usize = 4;

/// Speed at the largest size, a bar for each variant in the order of the ladder; if there are many
/// variants, only for each kernel's fastest.
pub fn ladder(results: &Results) -> String {
    let size = largest(results);
    let records = drawn(size);
    let yardstick = size.and_then(Size::cublas);
    let line = yardstick.and_then(speed_of);
    let speeds = records.iter().filter_map(|record| speed_of(record));
    let (unit, axis) = unit(speeds.chain(line).fold(0.0, f64::max));
    let mut rows: Vec<Row> = Vec::new();
    for record in &records {
        let colour = if record.kernel == AUTO { INK } else { BLUE };
        let value = match (speed_of(record), record.ratio_to_cublas) {
            (Some(speed), Some(ratio)) => {
                format!("{} ({:.0} %)", figure(speed / unit), ratio * 100.0)
            }
            (Some(speed), None) => figure(speed / unit),
            (None, _) if record.passed => "not timed".to_string(),
            (None, _) => "wrong".to_string(),
        };
        let bar = match speed_of(record) {
            Some(speed) => Bar::new(speed / unit, colour, value),
            None => Bar {
                value,
                ..Bar::default()
            },
        };
        rows.push(Row::new(name(record), bar));
    }
    rows.extend(yardstick.zip(line).map(|(yardstick, speed)| {
        let speed = speed / unit;
        let bar = Bar::new(speed, GREY, figure(speed));
        Row::new(cublas::title(&yardstick.kernel), bar)
    }));
    let all = size.map_or(0, |size| size.results.len());
    let mut note = String::new();
    if records.len() < all {
        note += "A bar for each kernel, in its fastest variant. ";
    }
    if yardstick.is_some() {
        note += "In brackets: of the speed of cuBLAS, which is the dashed line.";
    }
    let picture = Bars {
        title: format!("Speed of the ladder{}, {}", at(size), of_what(results)),
        notes: vec![note, conditions(results)],
        axis: axis.to_string(),
        line: line.map(|line| line / unit),
        rows,
        ..Bars::default()
    };
    picture.draw()
}

/// A bar for each kernel at each shape where cuBLAS was measured, too: from 1 to the right where
/// the kernel is faster, to the left where it is slower.
pub fn ratios(results: &Results) -> String {
    let mut summaries = summaries(results);
    let all = summaries.len();
    // `auto` first, and then the fastest.
    summaries.sort_by(|one, other| {
        let [is_one, is_other] = [one, other].map(|summary| summary.kernel == AUTO);
        let by_mean = other.geometric_mean.total_cmp(&one.geometric_mean);
        is_other.cmp(&is_one).then(by_mean)
    });
    summaries.truncate(RATIO_KERNELS);
    let mut rows: Vec<Row> = Vec::new();
    let mut origin = None;
    for size in &results.sizes {
        for (index, summary) in summaries.iter().enumerate() {
            let record = size.record(&summary.kernel);
            let ratio = record.and_then(|record| record.ratio_to_cublas);
            let Some(ratio) = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0) else {
                continue;
            };
            if size.origin.is_some() && size.origin != origin {
                origin.clone_from(&size.origin);
                rows.push(Row::heading(origin.clone().unwrap_or_default()));
            }
            let shape = match &size.name {
                Some(name) => format!("{name}, {}", size.shape()),
                None => size.shape().to_string(),
            };
            let name = match summaries.len() {
                1 => shape,
                _ if index == 0 => format!("{shape}: {}", summary.kernel),
                _ => summary.kernel.clone(),
            };
            let colour = if ratio < 1.0 { ORANGE } else { BLUE };
            rows.push(Row::new(name, Bar::new(ratio, colour, figure(ratio))));
        }
    }
    let mut notes: Vec<String> = Vec::new();
    if summaries.len() < all {
        notes.push(format!("The {} fastest of {all} kernels.", summaries.len()));
    }
    notes.extend(summaries.iter().map(|summary| {
        format!(
            "{}: {:.2} x cuBLAS in geometric mean over {} shapes, at least as fast on {}.",
            summary.kernel, summary.geometric_mean, summary.shapes, summary.at_least_as_fast
        )
    }));
    if rows.is_empty() {
        notes.push("Nothing was measured beside cuBLAS, so there are no ratios.".to_string());
    }
    notes.push(conditions(results));
    let picture = Bars {
        title: format!("Speed relative to cuBLAS, {}", of_what(results)),
        notes,
        axis: "times the speed of cuBLAS (logarithmic)".to_string(),
        are_ratios: true,
        rows,
        ..Bars::default()
    };
    picture.draw()
}
