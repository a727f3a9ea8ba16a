//! The plots over sizes and intensities: speed against size, and the roofline, as SVG.

use std::collections::HashSet;

use super::axes::{
    Names, Scale, draw_x, draw_y, figure, fitting, logarithmic_ticks, round_ticks, tick_label,
};
use super::bars;
use super::canvas::{
    Anchor, Area, Canvas, INK, MARGIN, Point, SOFT, Stroke, TEXT, WIDTH, text_area, text_width,
};
use super::labels::{Placed, Wanted, along, columns, moved_apart};
use super::ladder;
use super::results::{Results, Size};
use super::style::Style;
use crate::measure::cublas;
use crate::report::{Record, Yardstick, title};
use crate::rung::AUTO;
use crate::traffic::Traffic;
use gpu_gemm::Shape;

/// As many kernels all get a line, since somebody chose them.
const CHOSEN_LINES: usize = 8;
/// Of more kernels, this many do: the fastest.
const FASTEST_LINES: usize = 5;
/// As many kernels all get a point or a bar; of more, each kernel's fastest variant does.
pub(super) const ALL_VARIANTS: usize = 16;

const HEIGHT: f64 = 440.0;
/// From the edge of the plot to the label of a line, and the marker between.
const LEADER: f64 = 42.0;
const KEY: f64 = 30.0;
/// Between the labels of lines.
const LABEL_HEIGHT: f64 = TEXT * 1.35;

/// The unit in which speeds are best read, if `fastest` is among them.
pub(super) fn unit(fastest: f64) -> (f64, &'static str) {
    match fastest {
        0.1e12.. => (1e12, "TFLOP/s"),
        0.1e9.. => (1e9, "GFLOP/s"),
        _ => (1e6, "MFLOP/s"),
    }
}

/// The type and the device, for a title.
pub(super) fn of_what(results: &Results) -> String {
    let mut records = results.sizes.iter().flat_map(|size| &size.results);
    let devices = results.devices();
    match records.next() {
        Some(Record {
            dtype,
            batch: Some(batch),
            ..
        }) => format!("{dtype}, batches of {batch}, {devices}"),
        Some(record) => format!("{}, {devices}", record.dtype),
        None => devices,
    }
}

/// How it was measured, for below a title.
pub(super) fn conditions(results: &Results) -> String {
    let records = || results.sizes.iter().flat_map(|size| &size.results);
    let runs = || records().filter_map(|record| record.runs);
    let mut facts = Vec::new();
    facts.extend(runs().min().zip(runs().max()).map(|range| match range {
        (1, 1) => "One run each".to_string(),
        (least, most) if least == most => format!("Medians of {most} runs"),
        (least, most) => format!("Medians of {least} to {most} runs"),
    }));
    let day = results
        .provenance
        .as_ref()
        .map(|made| made.day().to_owned());
    facts.extend(day);
    let machine = &results.machine;
    facts.extend(
        machine
            .driver
            .as_ref()
            .map(|driver| format!("driver {driver}")),
    );
    // What follows is the file that it was loaded from.
    let version = machine
        .cublas
        .as_deref()
        .and_then(|text| text.split(' ').next());
    facts.extend(version.map(|version| format!("cuBLAS {version}")));
    match facts.is_empty() {
        true => String::new(),
        false => facts.join(", ") + ".",
    }
}

/// `cublasLt fp32`, with the label of its device, if there are several.
pub(super) fn yardstick_name(yardstick: &Yardstick) -> String {
    let name = cublas::title(&yardstick.name);
    title(&name, yardstick.device_label.as_deref())
}

/// A speed that can be drawn.
pub(super) fn speed_of(record: &Record) -> Option<f64> {
    let speed = record.flops_per_s?;
    (speed.is_finite() && speed > 0.0).then_some(speed)
}

/// The size with the most operations, of those with results.
pub(super) fn largest(results: &Results) -> Option<&Size> {
    let sizes = results.sizes.iter();
    let with_results = sizes.filter(|size| !size.results.is_empty());
    with_results.max_by(|one, other| one.shape().flops().total_cmp(&other.shape().flops()))
}

/// One line of the plot of speeds: its name, and its speed at each size.
struct Line {
    name: String,
    style: Style,
    speeds: Vec<Option<f64>>,
}

impl Line {
    fn of(name: &str, style: Style, results: &Results) -> Line {
        let of_size = |size: &Size| speed_of(size.record(name)?);
        Line {
            name: name.to_string(),
            style,
            speeds: results.sizes.iter().map(of_size).collect(),
        }
    }
}

/// Speed against size: a line for each kernel if they are few, or else for the fastest, for
/// `auto`, and for cuBLAS. For a single size it is the plot of the ladder.
pub fn speed(results: &Results) -> String {
    if results.sizes.len() < 2 {
        return bars::ladder(results);
    }
    let (lines, note) = lines(results);
    let title = format!("Speed by size, {}", of_what(results));
    let mut canvas = Canvas::new();
    let top = canvas.head(&title, &[note, conditions(results)]) + 30.0;

    let speeds = lines.iter().flat_map(|line| line.speeds.iter().flatten());
    let fastest = speeds.copied().fold(0.0, f64::max);
    let (unit, unit_name) = unit(fastest);
    let ticks = round_ticks(fastest / unit);
    let highest = ticks.last().copied().unwrap_or(1.0);

    let labels: Vec<String> = lines
        .iter()
        .map(|line| label(line, results, unit))
        .collect();
    let widths = |texts: &[String]| {
        let widths = texts.iter().map(|text| text_width(text, TEXT));
        widths.fold(0.0, f64::max)
    };
    let tick_labels: Vec<String> = ticks.iter().copied().map(tick_label).collect();
    let area = Area {
        left: MARGIN + widths(&tick_labels) + 8.0,
        top,
        right: WIDTH - MARGIN - widths(&labels) - LEADER - 4.0,
        bottom: top + HEIGHT,
    };
    let vertical = Scale::linear((0.0, highest), (area.bottom, area.top));
    draw_y(&mut canvas, area, vertical, &ticks, unit_name);

    let (places, names, axis_title) = places(results, area);
    let marks: Vec<(f64, String)> = places.iter().copied().zip(names).collect();
    let names = Names::of(&marks);
    let base = ((area.left, area.bottom), (area.right, area.bottom));
    canvas.line(base.0, base.1, Stroke::solid(INK, 1.0));
    names.draw(&mut canvas, area.bottom);
    let below = area.bottom + names.height() + 14.0;
    let middle = (area.left + area.right) / 2.0;
    canvas.text(axis_title, (middle, below), Anchor::Middle, SOFT);

    let mut ends: Vec<(Point, usize)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let speeds = places.iter().zip(&line.speeds);
        let mut points: Vec<Point> = speeds
            .filter_map(|(&x, speed)| Some((x, vertical.at((*speed)? / unit))))
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        // Between shapes that are no sizes of the same there is nothing to follow.
        let stroke = match are_cubes(results) {
            true => line.style.line,
            false => Stroke::solid(line.style.line.colour, 0.7),
        };
        canvas.path(&points, stroke);
        for &point in &points {
            line.style.mark(&mut canvas, point);
        }
        ends.extend(points.last().map(|&end| (end, index)));
    }
    let wanted: Vec<f64> = ends.iter().map(|(end, _)| end.1).collect();
    let middles = moved_apart(&wanted, LABEL_HEIGHT, (area.top - 20.0, below - 10.0));
    for ((end, index), y) in ends.into_iter().zip(middles) {
        let colour = lines[index].style.line.colour;
        let stroke = Stroke::dashed(colour, 1.0, "1 2");
        let edge = (area.right, end.1);
        canvas.line((end.0 + 6.0, end.1), edge, stroke);
        let key = (area.right + KEY, y);
        canvas.line(edge, (key.0 - 6.0, y), stroke);
        lines[index].style.mark(&mut canvas, key);
        let x = area.right + LEADER;
        canvas.text(&labels[index], (x, y), Anchor::Start, INK);
    }
    canvas.finish(&title, below + 20.0)
}

/// What gets a line, and how that was chosen. cuBLAS on tensor cores does not: beside it, all
/// others would be one line.
fn lines(results: &Results) -> (Vec<Line>, String) {
    let kernels = results.kernels();
    let best = kernels.iter().filter_map(|name| {
        let of_sizes = results.sizes.iter();
        let of_sizes = of_sizes.filter_map(|size| size.record(name));
        let timed = of_sizes.filter(|record| speed_of(record).is_some());
        timed.max_by(|one, other| {
            let [one, other] = [one, other].map(|record| speed_of(record).unwrap_or(0.0));
            one.total_cmp(&other)
        })
    });
    let mut chosen = ladder::fastest(best, CHOSEN_LINES);
    chosen.retain(|record| record.kernel != AUTO);
    let of_each = chosen.len();
    let mut note = "All kernels that were measured.".to_string();
    if of_each > CHOSEN_LINES {
        let mut speeds: Vec<f64> = chosen
            .iter()
            .filter_map(|record| speed_of(record))
            .collect();
        speeds.sort_by(|one, other| other.total_cmp(one));
        let least = speeds[FASTEST_LINES - 1];
        chosen.retain(|record| speed_of(record) >= Some(least));
        note = format!(
            "The {} fastest of {of_each} kernels, each in its fastest variant. The plot of the ladder has them all.",
            chosen.len()
        );
    } else if of_each + 1 < kernels.len() {
        note = "Each kernel in its fastest variant.".to_string();
    }
    let mut lines: Vec<Line> = Vec::new();
    let yardstick = results.sizes.iter().find_map(Size::cublas);
    lines.extend(yardstick.map(|yardstick| {
        Line {
            // At each size the faster of the two.
            name: yardstick_name(yardstick).replace("cublasLt", "cuBLAS"),
            style: Style::YARDSTICK,
            speeds: results
                .sizes
                .iter()
                .map(|size| Some(size.cublas()?.flops_per_s))
                .collect(),
        }
    }));
    let chosen = chosen.iter().enumerate();
    lines
        .extend(chosen.map(|(index, record)| Line::of(&record.title(), Style::of(index), results)));
    let records = results.sizes.iter().flat_map(|size| &size.results);
    let autos: HashSet<String> = records
        .filter(|record| record.kernel == AUTO)
        .map(Record::title)
        .collect();
    let autos = kernels.iter().filter(|name| autos.contains(*name));
    lines.extend(autos.map(|name| Line::of(name, Style::AUTO, results)));
    (lines, note)
}

/// A line's name, and its speed where it ends; where that is not where others do, it says so.
fn label(line: &Line, results: &Results, unit: f64) -> String {
    let sizes = || results.sizes.iter().zip(&line.speeds);
    let place = |index: usize, size: &Size| match are_cubes(results) {
        true => size.m,
        false => index,
    };
    let last = sizes()
        .enumerate()
        .map(|(index, (size, _))| place(index, size))
        .max();
    let measured = sizes().enumerate();
    let measured =
        measured.filter_map(|(index, (size, speed))| Some((place(index, size), size, (*speed)?)));
    match measured.max_by_key(|(place, ..)| *place) {
        Some((place, size, speed)) if Some(place) < last => {
            format!(
                "{} {} (at {})",
                line.name,
                figure(speed / unit),
                size.label()
            )
        }
        Some((.., speed)) => format!("{} {}", line.name, figure(speed / unit)),
        None => line.name.clone(),
    }
}

fn are_cubes(results: &Results) -> bool {
    let mut sizes = results.sizes.iter();
    sizes.all(|size| size.m > 0 && size.m == size.n && size.n == size.k)
}

/// Where sizes stand on the x axis, their names, and the title: by their logarithms if all are
/// cubes, or else beside each other.
fn places(results: &Results, area: Area) -> (Vec<f64>, Vec<String>, &'static str) {
    let sizes = &results.sizes;
    let pixels = (area.left + 40.0, area.right - 16.0);
    if are_cubes(results) {
        let values = || sizes.iter().map(|size| size.m as f64);
        let range = (
            values().fold(f64::INFINITY, f64::min),
            values().fold(0.0, f64::max),
        );
        let scale = Scale::logarithmic(range, pixels);
        let places = values().map(|value| scale.at(value)).collect();
        let names = sizes.iter().map(Size::label).collect();
        return (places, names, "m = n = k (logarithmic)");
    }
    let scale = Scale::linear((0.0, sizes.len() as f64 - 1.0), pixels);
    let places = (0..sizes.len()).map(|index| scale.at(index as f64));
    let names = sizes.iter().map(|size| size.shape().to_string());
    (places.collect(), names.collect(), "shape (m x n x k)")
}

/// A kernel in the roofline.
struct Spot {
    name: String,
    style: Style,
    intensity: f64,
    speed: f64,
}

impl Spot {
    /// `None` if it was not timed, or if its traffic is not known.
    fn of(record: &Record, size: &Size, index: usize) -> Option<Spot> {
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
        let is_auto = record.kernel == AUTO;
        let is_drawable = intensity.is_finite() && intensity > 0.0;
        Some(Spot {
            name: bars::name(record),
            style: match is_auto {
                true => Style::AUTO,
                false => Style::of(index),
            },
            intensity: is_drawable.then_some(intensity)?,
            speed: speed_of(record)?,
        })
    }
}

/// Speed at the largest size against operations per byte that threads request from global
/// memory, below the roofs of memory and arithmetic. A kernel above the memory roof gets its
/// bytes from caches.
pub fn roofline(results: &Results) -> String {
    let largest = largest(results);
    let drawn = largest.map_or_else(Vec::new, |size| {
        ladder::fastest(size.results.iter(), ALL_VARIANTS)
    });
    let spots: Vec<Spot> = largest.map_or_else(Vec::new, |size| {
        let records = drawn.iter().enumerate();
        let spots = records.filter_map(|(index, record)| Spot::of(record, size, index));
        spots.collect()
    });
    let roofs = results
        .machine
        .bandwidth_bytes_per_s
        .zip(results.machine.peak_flops_per_s);

    let mut notes = vec![match roofs {
        Some(_) => "A kernel above the roof of memory gets bytes from caches.".to_string(),
        None => format!(
            "There is no roof: the peak of {} is not known.",
            match results.machine.backend.as_str() {
                "simulator" => "the simulator",
                _ => "this device",
            }
        ),
    }];
    let of_spots: Vec<&str> = spots.iter().map(|spot| spot.name.as_str()).collect();
    let absent = drawn.iter().filter(|record| speed_of(record).is_some());
    let absent = absent.filter(|record| !of_spots.contains(&bars::name(record).as_str()));
    let absent: Vec<String> = absent.map(|record| record.title()).collect();
    if !absent.is_empty() {
        notes.push(format!(
            "Not shown, as their memory traffic is not known: {}.",
            absent.join(", ")
        ));
    }
    notes.push(conditions(results));

    let at = largest.map_or_else(String::new, |size| format!(" at {}", size.shape()));
    let title = format!("Roofline{at}, {}", of_what(results));
    let mut canvas = Canvas::new();
    let top = canvas.head(&title, &notes) + 30.0;

    let fastest = spots.iter().map(|spot| spot.speed).fold(0.0, f64::max);
    let (unit, unit_name) = unit(roofs.map_or(fastest, |(_, peak)| peak));
    let ridge = roofs.map(|(bandwidth, peak)| peak / bandwidth);
    let across = range(spots.iter().map(|spot| spot.intensity).chain(ridge));
    let peak = roofs.map(|(_, peak)| peak / unit);
    let up = range(spots.iter().map(|spot| spot.speed / unit).chain(peak));
    let rows = logarithmic_ticks(up);
    let widths = rows.iter().map(|&tick| text_width(&tick_label(tick), TEXT));
    let texts: Vec<String> = spots
        .iter()
        .map(|spot| format!("{} {}", spot.name, figure(spot.speed / unit)))
        .collect();
    let widest = texts
        .iter()
        .map(|text| text_width(text, TEXT))
        .fold(0.0, f64::max);
    let area = Area {
        left: MARGIN + widths.fold(0.0, f64::max) + 8.0,
        top,
        // The labels of the last points may stand beside the plot.
        right: WIDTH - MARGIN - widest,
        bottom: top + HEIGHT,
    };
    let horizontal = Scale::logarithmic(across, (area.left, area.right));
    let vertical = Scale::logarithmic(up, (area.bottom, area.top));
    let ticks = fitting(horizontal, &[logarithmic_ticks(across)]);
    let axis = "FLOP per byte that threads read from or write to global memory (logarithmic)";
    let below = draw_x(&mut canvas, area, horizontal, &ticks, axis);
    draw_y(
        &mut canvas,
        area,
        vertical,
        &rows,
        &format!("{unit_name} (logarithmic)"),
    );

    let mut obstacles = Vec::new();
    let mut of_roofs = Vec::new();
    if let Some((bandwidth, peak)) = roofs {
        let ridge = (peak / bandwidth).clamp(across.0, across.1);
        // Where the roof of memory enters the plot: at its left, or from below.
        let first = (up.0 * unit / bandwidth).clamp(across.0, ridge);
        let at = |intensity: f64| {
            let speed = (intensity * bandwidth).min(peak) / unit;
            (horizontal.at(intensity), vertical.at(speed))
        };
        let roof = [at(first), at(ridge), at(across.1)];
        canvas.path(&roof, Stroke::solid(INK, 2.0));
        for pair in roof.windows(2) {
            obstacles.extend(along(pair[0], pair[1]));
        }
        of_roofs.push(Wanted {
            point: at((first * ridge).sqrt()),
            text: format!("memory: {:.2} TB/s", bandwidth / 1e12),
        });
        of_roofs.push(Wanted {
            point: at(ridge),
            text: format!("multiply-adds: {:.1} {unit_name}", peak / unit),
        });
    }
    let of_spots: Vec<Wanted> = spots
        .iter()
        .zip(texts)
        .map(|(spot, text)| Wanted {
            point: (
                horizontal.at(spot.intensity),
                vertical.at(spot.speed / unit),
            ),
            text,
        })
        .collect();
    obstacles.extend(
        of_spots
            .iter()
            .map(|label| Area::around(label.point, 15.0, 15.0)),
    );
    // Not below the axis.
    let bounds = Area {
        right: WIDTH - MARGIN / 2.0,
        ..area
    };
    let places = columns(&of_spots, obstacles.clone(), bounds);
    for (label, placed) in of_spots.iter().zip(&places) {
        let Some(Placed { at, anchor }) = *placed else {
            continue;
        };
        obstacles.push(text_area(&label.text, at, anchor));
        obstacles.extend(along(label.point, at));
    }
    let of_roofs_at = columns(&of_roofs, obstacles, bounds);
    let labels = || {
        let all = of_spots
            .iter()
            .zip(&places)
            .chain(of_roofs.iter().zip(&of_roofs_at));
        all.filter_map(|(label, placed)| Some((label, (*placed)?)))
    };
    for (label, placed) in labels() {
        canvas.text_on_white(&label.text, placed.at, placed.anchor);
    }
    for (spot, (label, placed)) in spots.iter().zip(of_spots.iter().zip(&places)) {
        if let Some(placed) = placed {
            let towards = if placed.anchor == Anchor::End {
                3.0
            } else {
                -3.0
            };
            let end = (placed.at.0 + towards, placed.at.1);
            let stroke = Stroke::solid(spot.style.line.colour, 0.8);
            canvas.line(label.point, end, stroke);
        }
    }
    for (spot, label) in spots.iter().zip(&of_spots) {
        spot.style.mark(&mut canvas, label.point);
    }
    canvas.finish(&title, below)
}

/// A range of a logarithmic axis with room around all of `values`.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values
        .filter(|value| value.is_finite() && *value > 0.0)
        .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| {
            (least.min(value), most.max(value))
        });
    match least <= most {
        true => (least / 1.6, most * 1.6),
        false => (1.0, 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::tests::{sample, sample_of_two_devices};

    #[test]
    fn a_kernel_has_a_line_for_each_device() {
        let mut results = sample_of_two_devices();
        for record in results.sizes.iter_mut().flat_map(|size| &mut size.results) {
            if record.kernel == "naive" {
                record.kernel = AUTO.into();
            }
        }
        let (lines, _) = lines(&results);
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
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
    fn a_line_ends_in_its_name_and_its_speed_at_the_largest_size() {
        let mut results = sample();
        results.sizes.reverse();
        let (lines, _) = lines(&results);
        let labels: Vec<String> = lines
            .iter()
            .map(|line| label(line, &results, 1e12))
            .collect();
        // The kernel that is not proven right was not timed.
        let expected = [
            "cuBLAS fp32 50.0",
            "naive 5.00",
            "tiled-32 8.50",
            "tiled-16 8.00",
            "double-buffer-sn8 46.8",
        ];
        assert_eq!(labels, expected);
    }

    #[test]
    fn the_roofline_has_a_marker_for_each_kernel_that_was_timed() {
        let svg = roofline(&sample());
        assert_eq!(svg.matches("<polygon ").count(), 4, "{svg}");
        assert!(svg.contains("memory: 4.80 TB/s") && svg.contains("multiply-adds: 66.9 TFLOP/s"));
    }

    #[test]
    fn auto_is_where_the_kernel_that_it_chose_is() {
        let mut results = sample();
        let size = &mut results.sizes[1];
        let chosen = size.results[4].clone();
        let auto = Record {
            kernel: AUTO.into(),
            chosen: Some("double-buffer-sn8 (8 CTAs)".into()),
            ..chosen.clone()
        };
        let [auto, chosen] = [auto, chosen].map(|record| Spot::of(&record, size, 0).unwrap());
        assert_eq!(auto.intensity, chosen.intensity);
        assert_eq!(auto.name, "auto: double-buffer-sn8");
    }

    #[test]
    fn a_range_contains_what_it_is_of() {
        assert_eq!(range([0.8, 10.0].into_iter()), (0.5, 16.0));
        assert_eq!(range([0.0, f64::INFINITY].into_iter()), (1.0, 10.0));
    }
}
