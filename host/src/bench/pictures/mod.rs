//! The plots of a benchmark: bars of the ladder and of ratios to cuBLAS, speed against size, and
//! the roofline.

mod bars;
mod roofline;
mod speed;

pub use bars::{ladder, ratios};
pub use roofline::roofline;
pub use speed::speed;

use super::ladder::fastest;
use super::results::{Results, Size};
use crate::report::Record;

/// Up to this many variants each get a point or a bar; if there are more, only each kernel's
/// fastest.
const ALL_VARIANTS: usize = 16;

/// The unit for speeds up to `fastest`.
fn unit(fastest: f64) -> (f64, &'static str) {
    match fastest {
        0.1e12.. => (1e12, "TFLOP/s"),
        0.1e9.. => (1e9, "GFLOP/s"),
        _ => (1e6, "MFLOP/s"),
    }
}

fn records(results: &Results) -> impl Iterator<Item = &Record> {
    results.sizes.iter().flat_map(|size| &size.results)
}

/// The type and the device, for a title.
fn of_what(results: &Results) -> String {
    let device = &results.machine.device;
    match records(results).next() {
        Some(Record {
            batch: Some(batch),
            dtype,
            ..
        }) => format!("{dtype}, batches of {batch}, {device}"),
        Some(Record { dtype, .. }) => format!("{dtype}, {device}"),
        None => device.clone(),
    }
}

/// The first word of a text: a version without the file that it was loaded from, or a kernel without
/// how it is launched.
fn first_word(text: Option<&String>) -> Option<&str> {
    text?.split(' ').next()
}

/// The conditions of the measurement, for the line below a title.
fn conditions(results: &Results) -> String {
    let runs = || records(results).filter_map(|record| record.runs);
    let machine = &results.machine;
    // The runs of a GPU have gaps between them, so that its power limit does not lower the clock.
    let cold = match machine.backend.as_str() {
        "cuda" => "cold ",
        _ => "",
    };
    let facts = [
        runs().min().zip(runs().max()).map(|range| match range {
            (1, 1) => "One run each".to_string(),
            (least, most) if least == most => format!("Medians of {most} {cold}runs"),
            (least, most) => format!("Medians of {least} to {most} {cold}runs"),
        }),
        (results.provenance.as_ref()).map(|made| made.day().to_owned()),
        (machine.driver.as_ref()).map(|driver| format!("driver {driver}")),
        first_word(machine.cublas.as_ref()).map(|version| format!("cuBLAS {version}")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    match facts.is_empty() {
        true => String::new(),
        false => facts.join(", ") + ".",
    }
}

/// A kernel's name; for `auto`, also the chosen kernel.
fn name(record: &Record) -> String {
    match first_word(record.chosen.as_ref()) {
        Some(chosen) => format!("{}: {chosen}", record.kernel),
        None => record.kernel.clone(),
    }
}

/// A speed that can be drawn.
fn speed_of(record: &Record) -> Option<f64> {
    record
        .flops_per_s
        .filter(|speed| speed.is_finite() && *speed > 0.0)
}

/// The size with the most operations that has results.
fn largest(results: &Results) -> Option<&Size> {
    let sizes = results.sizes.iter();
    let with_results = sizes.filter(|size| !size.results.is_empty());
    with_results.max_by(|one, other| one.shape().flops().total_cmp(&other.shape().flops()))
}

/// The kernels that are drawn at the largest size.
fn drawn(size: Option<&Size>) -> Vec<&Record> {
    size.map_or_else(Vec::new, |size| fastest(size.results.iter(), ALL_VARIANTS))
}

/// ` at 2048 x 2048 x 2048`.
fn at(size: Option<&Size>) -> String {
    size.map_or_else(String::new, |size| format!(" at {}", size.shape()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use crate::rung::AUTO;
    use roofline::intensity;

    #[test]
    fn auto_is_where_the_kernel_that_it_chose_is() {
        let results = sample();
        let size = &results.sizes[1];
        let chosen = &size.results[4];
        let auto = Record {
            kernel: AUTO.into(),
            chosen: Some("double-buffer-k8 (8 CTAs)".into()),
            ..chosen.clone()
        };
        assert!(intensity(chosen, size).is_some());
        assert_eq!(intensity(&auto, size), intensity(chosen, size));
        assert_eq!(name(&auto), "auto: double-buffer-k8");
    }
}
