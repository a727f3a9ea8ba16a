//! The plots of a benchmark: bars of the ladder and of ratios to cuBLAS, speed against size, and
//! the roofline.

use super::ladder::{self, fastest};
use super::markdown::yardstick_title;
use super::ratios::summaries;
use super::results::{Results, Size};
use crate::plot::{
    Axis, BLUE, Bar, Bars, GREY, Guide, INK, Line, Lines, ORANGE, Row, Style, figure,
};
use crate::report::Record;
use crate::rung::AUTO;
use crate::traffic::Traffic;
use gpu_gemm::Shape;

/// As many kernels all get a line, since somebody chose them.
const CHOSEN_LINES: usize = 8;
/// Of more kernels, this many do: the fastest.
const FASTEST_LINES: usize = 5;
/// As many kernels all get a point or a bar; of more, each kernel's fastest variant does.
const ALL_VARIANTS: usize = 16;
/// The kernels whose ratios are drawn, of more the fastest.
const RATIO_KERNELS: usize = 4;

/// The unit in which speeds are best read, if `fastest` is among them.
fn unit(fastest: f64) -> (f64, &'static str) {
    match fastest {
        0.1e12.. => (1e12, "TFLOP/s"),
        0.1e9.. => (1e9, "GFLOP/s"),
        _ => (1e6, "MFLOP/s"),
    }
}

/// The type and the device, for a title.
fn of_what(results: &Results) -> String {
    let devices = results.devices();
    match results.sizes.iter().flat_map(|size| &size.results).next() {
        Some(record) => match record.batch {
            Some(batch) => format!("{}, batches of {batch}, {devices}", record.dtype),
            None => format!("{}, {devices}", record.dtype),
        },
        None => devices,
    }
}

/// How it was measured, for below a title.
fn conditions(results: &Results) -> String {
    let records = || results.sizes.iter().flat_map(|size| &size.results);
    let runs = || records().filter_map(|record| record.runs);
    let machine = &results.machine;
    // What follows the version is the file that it was loaded from.
    let version = machine
        .cublas
        .as_deref()
        .and_then(|text| text.split(' ').next());
    let facts = [
        runs().min().zip(runs().max()).map(|range| match range {
            (1, 1) => "One run each".to_string(),
            (least, most) if least == most => format!("Medians of {most} runs"),
            (least, most) => format!("Medians of {least} to {most} runs"),
        }),
        results
            .provenance
            .as_ref()
            .map(|made| made.day().to_owned()),
        machine
            .driver
            .as_ref()
            .map(|driver| format!("driver {driver}")),
        version.map(|version| format!("cuBLAS {version}")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    match facts.is_empty() {
        true => String::new(),
        false => facts.join(", ") + ".",
    }
}

/// A kernel's name; with what `auto` chose.
fn name(record: &Record) -> String {
    // What follows is how it is launched.
    let chosen = (record.chosen.as_deref()).and_then(|text| text.split(' ').next());
    match chosen {
        Some(chosen) => format!("{}: {chosen}", record.title()),
        None => record.title(),
    }
}

/// A speed that can be drawn.
fn speed_of(record: &Record) -> Option<f64> {
    let speed = record.flops_per_s?;
    (speed.is_finite() && speed > 0.0).then_some(speed)
}

/// The size with the most operations, of those with results.
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

/// Speed at the largest size, a bar for each kernel in the order of the ladder; of many variants,
/// only for each kernel's fastest.
pub fn ladder(results: &Results) -> String {
    let size = largest(results);
    let records = drawn(size);
    let yardstick = size.and_then(Size::cublas);
    let line = yardstick.map(|yardstick| yardstick.flops_per_s);
    let speeds = records.iter().filter_map(|record| speed_of(record));
    let (unit, axis) = unit(speeds.chain(line).fold(0.0, f64::max));
    let row = |name: String, bar: Bar| Row {
        name,
        bars: vec![bar],
    };
    let mut rows: Vec<Row> = Vec::new();
    for record in &records {
        let colour = if record.kernel == AUTO { INK } else { BLUE };
        let bar = match (speed_of(record), record.ratio_to_cublas) {
            (Some(speed), Some(ratio)) => {
                let value = format!("{} ({:.0} %)", figure(speed / unit), ratio * 100.0);
                Bar::new(speed / unit, colour, value)
            }
            (Some(speed), None) => Bar::new(speed / unit, colour, figure(speed / unit)),
            (None, _) => Bar {
                value: match record.proven {
                    true => "not timed".to_string(),
                    false => "not proven right".to_string(),
                },
                ..Bar::default()
            },
        };
        rows.push(row(name(record), bar));
    }
    rows.extend(yardstick.map(|yardstick| {
        let speed = yardstick.flops_per_s / unit;
        row(
            yardstick_title(yardstick),
            Bar::new(speed, GREY, figure(speed)),
        )
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
            let Some(ratio) = record.and_then(|record| record.ratio_to_cublas) else {
                continue;
            };
            if !(ratio.is_finite() && ratio > 0.0) {
                continue;
            }
            if size.origin.is_some() && size.origin != origin {
                origin.clone_from(&size.origin);
                rows.push(Row {
                    name: origin.clone().unwrap_or_default(),
                    bars: Vec::new(),
                });
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
            let bars = vec![Bar::new(ratio, colour, figure(ratio))];
            rows.push(Row { name, bars });
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

/// Speed against size: a line for each kernel if they are few, or else for the fastest, for
/// `auto`, and for cuBLAS. For a single size it is the plot of the ladder.
pub fn speed(results: &Results) -> String {
    if results.sizes.len() < 2 {
        return ladder(results);
    }
    let sizes = &results.sizes;
    let are_cubes = sizes
        .iter()
        .all(|size| size.m > 0 && size.m == size.n && size.n == size.k);
    let place = |index: usize| match are_cubes {
        true => sizes[index].m as f64,
        false => index as f64,
    };
    let (kernels, note) = lines(results);
    let speeds = kernels.iter().flat_map(|line| line.2.iter().flatten());
    let (unit, y) = unit(speeds.copied().fold(0.0, f64::max));
    let line = |(name, style, speeds): &Speeds| {
        let measured = speeds.iter().enumerate();
        let measured: Vec<(usize, f64)> = measured
            .filter_map(|(index, speed)| Some((index, (*speed)? / unit)))
            .collect();
        let end = measured
            .iter()
            .max_by(|one, other| place(one.0).total_cmp(&place(other.0)));
        // A line that ends before others do says where.
        let end = end.map_or_else(String::new, |(index, speed)| {
            let is_last = (0..sizes.len()).all(|other| place(other) <= place(*index));
            match is_last {
                true => format!(" {}", figure(*speed)),
                false => format!(" {} (at {})", figure(*speed), sizes[*index].label()),
            }
        });
        Line {
            name: name.clone() + &end,
            style: *style,
            points: measured
                .iter()
                .map(|&(index, speed)| (place(index), speed))
                .collect(),
            dotted: Vec::new(),
            // Between shapes that are no sizes of the same there is nothing to follow.
            is_joined: are_cubes,
        }
    };
    let mut marks: Vec<(f64, String)> = Vec::new();
    for (index, size) in sizes.iter().enumerate() {
        if marks.iter().all(|mark| mark.0 != place(index)) {
            let name = if are_cubes {
                size.label()
            } else {
                size.shape().to_string()
            };
            marks.push((place(index), name));
        }
    }
    let picture = Lines {
        title: format!("Speed by size, {}", of_what(results)),
        notes: vec![note, conditions(results)],
        x: Axis {
            title: match are_cubes {
                true => "m = n = k (logarithmic)".to_string(),
                false => "shape (m x n x k)".to_string(),
            },
            is_logarithmic: are_cubes,
            marks,
        },
        y: Axis {
            title: y.to_string(),
            ..Axis::default()
        },
        lines: kernels.iter().map(line).collect(),
        guides: Vec::new(),
    };
    picture.draw()
}

/// A contender's name, its style, and its speed at each size.
type Speeds = (String, Style, Vec<Option<f64>>);

/// What gets a line, with its speed at each size, and how that was chosen. cuBLAS on tensor cores
/// does not: beside it, all others would be one line.
fn lines(results: &Results) -> (Vec<Speeds>, String) {
    let kernels = results.kernels();
    let best = kernels.iter().filter_map(|name| {
        let of_sizes = results.sizes.iter().filter_map(|size| size.record(name));
        let timed = of_sizes.filter(|record| speed_of(record).is_some());
        timed.max_by(|one, other| {
            speed_of(one)
                .partial_cmp(&speed_of(other))
                .unwrap_or(std::cmp::Ordering::Equal)
        })
    });
    let mut chosen = fastest(best, CHOSEN_LINES);
    let (autos, mut ladder): (Vec<&Record>, Vec<&Record>) =
        chosen.drain(..).partition(|record| record.kernel == AUTO);
    let of_each = ladder.len();
    let mut note = "All kernels that were measured.".to_string();
    if of_each > CHOSEN_LINES {
        let mut speeds: Vec<f64> = ladder
            .iter()
            .filter_map(|record| speed_of(record))
            .collect();
        speeds.sort_by(|one, other| other.total_cmp(one));
        let least = speeds[FASTEST_LINES - 1];
        ladder.retain(|record| speed_of(record) >= Some(least));
        note = format!(
            "The {} fastest of {of_each} kernels, each in its fastest variant. The plot of the ladder has them all.",
            ladder.len()
        );
    } else if of_each + autos.len() < kernels.len() {
        note = "Each kernel in its fastest variant.".to_string();
    }
    let speeds = |of: &dyn Fn(&Size) -> Option<f64>| results.sizes.iter().map(of).collect();
    let mut lines: Vec<Speeds> = Vec::new();
    if let Some(yardstick) = results.sizes.iter().find_map(Size::cublas) {
        // At each size the faster of the two.
        let name = yardstick_title(yardstick).replace("cublasLt", "cuBLAS");
        let of = |size: &Size| Some(size.cublas()?.flops_per_s);
        lines.push((name, Style::YARDSTICK, speeds(&of)));
    }
    let styled = ladder.iter().enumerate();
    let styled = styled.map(|(index, record)| (record, Style::of(index)));
    for (record, style) in styled.chain(autos.iter().map(|record| (record, Style::AUTO))) {
        let title = record.title();
        let of = |size: &Size| speed_of(size.record(&title)?);
        lines.push((title.clone(), style, speeds(&of)));
    }
    (lines, note)
}

/// Operations per byte that a kernel's threads request from global memory, if that is known.
fn intensity(record: &Record, size: &Size) -> Option<f64> {
    let variant = ladder::variant(record)?;
    // The kernel gets the columns that full tiles take, where another has the remainder.
    let shape = size.shape();
    let n = match variant.n_remainder {
        Some(_) if shape.n >= variant.tile.n as usize => {
            shape.n - shape.n % variant.tile.n as usize
        }
        _ => shape.n,
    };
    let shape = Shape { n, ..shape };
    let traffic = Traffic::of(variant, shape, record.beta != 0.0);
    let intensity = traffic.intensity(shape, variant.types.data_type());
    (intensity.is_finite() && intensity > 0.0).then_some(intensity)
}

/// Speed at the largest size against operations per byte that threads request from global
/// memory, below the roofs of memory and arithmetic. A kernel above the memory roof gets its
/// bytes from caches.
pub fn roofline(results: &Results) -> String {
    let size = largest(results);
    let records = drawn(size);
    let machine = &results.machine;
    let roofs = machine.bandwidth_bytes_per_s.zip(machine.peak_flops_per_s);
    let speeds = records.iter().filter_map(|record| speed_of(record));
    let (unit, y) = unit(roofs.map_or(speeds.fold(0.0, f64::max), |(_, peak)| peak));
    let mut lines: Vec<Line> = Vec::new();
    let mut absent: Vec<String> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let Some(speed) = speed_of(record) else {
            continue;
        };
        match size.and_then(|size| intensity(record, size)) {
            Some(intensity) => lines.push(Line {
                name: format!("{} {}", name(record), figure(speed / unit)),
                style: match record.kernel == AUTO {
                    true => Style::AUTO,
                    false => Style::of(index),
                },
                points: vec![(intensity, speed / unit)],
                dotted: Vec::new(),
                is_joined: false,
            }),
            None => absent.push(record.title()),
        }
    }
    let mut notes = vec![match (roofs, machine.backend.as_str()) {
        (Some(_), _) => "A kernel above the roof of memory gets bytes from caches.".to_string(),
        (None, "simulator") => {
            "There is no roof: the peak of the simulator is not known.".to_string()
        }
        (None, _) => "There is no roof: the peak of this device is not known.".to_string(),
    }];
    if !absent.is_empty() {
        let absent = absent.join(", ");
        notes.push(format!(
            "Not shown, as their memory traffic is not known: {absent}."
        ));
    }
    notes.push(conditions(results));
    let guides = roofs.map_or_else(Vec::new, |(bandwidth, peak)| {
        let points = || lines.iter().flat_map(|line| &line.points);
        let ridge = peak / bandwidth;
        let first = points().map(|point| point.0).fold(ridge / 2.0, f64::min);
        let last = points().map(|point| point.0).fold(ridge * 2.0, f64::max);
        let roof = |points: [f64; 2], name: String| Guide {
            points: points
                .map(|at| (at, (at * bandwidth).min(peak) / unit))
                .to_vec(),
            name,
            is_dashed: false,
        };
        vec![
            roof(
                [first, ridge],
                format!("memory: {:.2} TB/s", bandwidth / 1e12),
            ),
            roof(
                [ridge, last],
                format!("multiply-adds: {:.1} {y}", peak / unit),
            ),
        ]
    });
    let axis = |title: String| Axis {
        title,
        is_logarithmic: true,
        marks: Vec::new(),
    };
    let x = "FLOP per byte that threads read from or write to global memory (logarithmic)";
    let picture = Lines {
        title: format!("Roofline{}, {}", at(size), of_what(results)),
        notes,
        x: axis(x.to_string()),
        y: axis(format!("{y} (logarithmic)")),
        lines,
        guides,
    };
    picture.draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::{sample, sample_of_two_devices};

    #[test]
    fn a_kernel_has_a_line_for_each_device() {
        let mut results = sample_of_two_devices();
        for record in results.sizes.iter_mut().flat_map(|size| &mut size.results) {
            if record.kernel == "naive" {
                record.kernel = AUTO.into();
            }
        }
        let (lines, _) = lines(&results);
        let names: Vec<&str> = lines.iter().map(|line| line.0.as_str()).collect();
        let expected = [
            "cuBLAS fp32 (cuda)",
            "tiled-32 (cuda)",
            "tiled-32 (opencl)",
            "tiled-16 (cuda)",
            "tiled-16 (opencl)",
            "double-buffer-sn8 (cuda)",
            "double-buffer-sn8 (opencl)",
            "auto (cuda)",
            "auto (opencl)",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn auto_is_where_the_kernel_that_it_chose_is() {
        let results = sample();
        let size = &results.sizes[1];
        let chosen = &size.results[4];
        let auto = Record {
            kernel: AUTO.into(),
            chosen: Some("double-buffer-sn8 (8 CTAs)".into()),
            ..chosen.clone()
        };
        assert!(intensity(chosen, size).is_some());
        assert_eq!(intensity(&auto, size), intensity(chosen, size));
        assert_eq!(name(&auto), "auto: double-buffer-sn8");
    }
}
