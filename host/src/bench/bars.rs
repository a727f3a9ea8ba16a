//! Bars, a row each, with their values at their ends, as SVG: the ladder at one size, and the
//! ratios to cuBLAS at many shapes.

use super::axes::{Scale, draw_x, figure, fitting, round_ticks};
use super::canvas::{Anchor, Area, Canvas, INK, MARGIN, SOFT, Stroke, TEXT, WIDTH, text_width};
use super::ladder::fastest;
use super::plots::{ALL_VARIANTS, conditions, largest, of_what, speed_of, unit, yardstick_name};
use super::ratios::summaries;
use super::results::{Results, Size};
use super::style::{CHOSEN, KERNEL, SLOWER, YARDSTICK, YARDSTICK_LINE};
use crate::report::Record;
use crate::rung::AUTO;

/// From a row to the next, and the bar's part of it.
const ROW: f64 = 25.0;
const BAR: f64 = 17.0;
/// The same of ratios, of which there are more.
const RATIO_ROW: f64 = 19.0;
const RATIO_BAR: f64 = 13.0;
/// Between a bar and its value, and between columns.
const GAP: f64 = 6.0;
/// The kernels whose ratios are drawn, of more the fastest.
const RATIO_KERNELS: usize = 4;

/// A kernel's name; with what `auto` chose.
pub(super) fn name(record: &Record) -> String {
    // What follows is how it is launched.
    let chosen = (record.chosen.as_deref()).and_then(|text| text.split(' ').next());
    match chosen {
        Some(chosen) => format!("{}: {chosen}", record.title()),
        None => record.title(),
    }
}

/// A row of the ladder's plot.
struct Row {
    name: String,
    speed: Option<f64>,
    value: String,
    colour: &'static str,
}

/// Speed at the largest size, a bar for each kernel in the order of the ladder; of many variants,
/// only for each kernel's fastest.
pub fn ladder(results: &Results) -> String {
    let size = largest(results);
    let records = size.map_or_else(Vec::new, |size| fastest(size.results.iter(), ALL_VARIANTS));
    let yardstick = size.and_then(Size::cublas);
    let speeds = records.iter().filter_map(|record| speed_of(record));
    let highest = speeds
        .chain(yardstick.map(|yardstick| yardstick.flops_per_s))
        .fold(0.0, f64::max);
    let (unit, unit_name) = unit(highest);
    let mut rows: Vec<Row> = records
        .iter()
        .map(|record| Row {
            name: name(record),
            speed: speed_of(record),
            value: match (speed_of(record), record.ratio_to_cublas) {
                (Some(speed), Some(ratio)) => {
                    format!("{} ({:.0} %)", figure(speed / unit), ratio * 100.0)
                }
                (Some(speed), None) => figure(speed / unit),
                (None, _) if record.proven => "not timed".to_string(),
                (None, _) => "not proven right".to_string(),
            },
            colour: match record.kernel == AUTO {
                true => CHOSEN,
                false => KERNEL,
            },
        })
        .collect();
    rows.extend(yardstick.map(|yardstick| Row {
        name: yardstick_name(yardstick),
        speed: Some(yardstick.flops_per_s),
        value: figure(yardstick.flops_per_s / unit),
        colour: YARDSTICK,
    }));

    let at = size.map_or_else(String::new, |size| format!(" at {}", size.shape()));
    let title = format!("Speed of the ladder{at}, {}", of_what(results));
    let all = size.map_or(0, |size| size.results.len());
    let mut notes = Vec::new();
    notes.push(match records.len() < all {
        true => "A bar for each kernel, in its fastest variant.".to_string(),
        false => String::new(),
    });
    if yardstick.is_some() {
        notes[0] += " In brackets: of the speed of cuBLAS, which is the dashed line.";
    }
    notes.push(conditions(results));
    let mut canvas = Canvas::new();
    let top = canvas.head(&title, &notes) + 6.0;

    let width = |text: &String| text_width(text, TEXT);
    let names = rows.iter().map(|row| width(&row.name)).fold(0.0, f64::max);
    let values = rows.iter().map(|row| width(&row.value)).fold(0.0, f64::max);
    let area = Area {
        left: MARGIN + names + GAP,
        top,
        right: WIDTH - MARGIN - values.max(40.0) - GAP,
        bottom: top + ROW * rows.len().max(1) as f64 + 4.0,
    };
    let ticks = round_ticks(highest / unit);
    // The longest bar ends where the plot does, whatever the next tick.
    let most = (highest / unit).max(f64::MIN_POSITIVE);
    let most = if highest > 0.0 { most } else { 1.0 };
    let scale = Scale::linear((0.0, most), (area.left, area.right));
    let ticks: Vec<f64> = ticks.into_iter().filter(|tick| *tick <= most).collect();
    let below = draw_x(&mut canvas, area, scale, &ticks, unit_name);

    let middle = |index: usize| top + ROW * (index as f64 + 0.5) + 2.0;
    for (index, row) in rows.iter().enumerate() {
        let y = middle(index);
        canvas.text(&row.name, (area.left - GAP, y), Anchor::End, INK);
        if let Some(speed) = row.speed {
            let bar = Area {
                left: area.left,
                top: y - BAR / 2.0,
                right: scale.at(speed / unit),
                bottom: y + BAR / 2.0,
            };
            canvas.bar(bar, row.colour);
        }
    }
    if let Some(yardstick) = yardstick {
        let x = scale.at(yardstick.flops_per_s / unit);
        canvas.line((x, area.top), (x, area.bottom), YARDSTICK_LINE);
    }
    for (index, row) in rows.iter().enumerate() {
        let end = scale.at(row.speed.unwrap_or(0.0) / unit);
        canvas.text_on_white(&row.value, (end + GAP, middle(index)), Anchor::Start);
    }
    let axis = ((area.left, area.top), (area.left, area.bottom));
    canvas.line(axis.0, axis.1, Stroke::solid(INK, 1.0));
    canvas.finish(&title, below)
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
    let of_size = |size: &Size, kernel: &str| size.record(kernel)?.ratio_to_cublas;
    let shapes: Vec<(&Size, Vec<(&str, f64)>)> = results
        .sizes
        .iter()
        .map(|size| {
            let kernels = summaries.iter().map(|summary| summary.kernel.as_str());
            let measured = kernels.filter_map(|name| {
                let ratio = of_size(size, name)?;
                (ratio.is_finite() && ratio > 0.0).then_some((name, ratio))
            });
            (size, measured.collect())
        })
        .filter(|(_, measured): &(_, Vec<_>)| !measured.is_empty())
        .collect();

    let title = format!("Speed relative to cuBLAS, {}", of_what(results));
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
    if shapes.is_empty() {
        notes.push("Nothing was measured beside cuBLAS, so there are no ratios.".to_string());
    }
    notes.push(conditions(results));
    let mut canvas = Canvas::new();
    let mut top = canvas.head(&title, &notes) + 6.0;
    if shapes.is_empty() {
        return canvas.finish(&title, top + MARGIN);
    }

    // The columns at the left: the shape's name, if any has one, its dimensions, and the kernel,
    // if there are several.
    let width = |texts: &mut dyn Iterator<Item = String>| {
        let widths = texts.map(|text| text_width(&text, TEXT));
        let widest = widths.fold(0.0, f64::max);
        if widest > 0.0 {
            widest + 2.0 * GAP
        } else {
            0.0
        }
    };
    let names = width(&mut shapes.iter().filter_map(|(size, _)| size.name.clone()));
    let dimensions = width(&mut shapes.iter().map(|(size, _)| size.shape().to_string()));
    let kernels = match summaries.len() {
        ..=1 => 0.0,
        _ => width(&mut summaries.iter().map(|summary| summary.kernel.clone())),
    };
    let values = || shapes.iter().flat_map(|(_, measured)| measured);
    let ratios = || values().map(|(_, ratio)| *ratio);
    let room = width(&mut ratios().map(figure));
    let least = ratios().fold(1.0, f64::min);
    let most = ratios().fold(1.0, f64::max);

    let sections = sections(&shapes);
    let rows = values().count() + sections;
    // With several kernels, shapes are set apart.
    let between = if kernels > 0.0 { GAP } else { 0.0 };
    let area = Area {
        left: MARGIN + names + dimensions + kernels + if least < 1.0 { room } else { GAP },
        top,
        right: WIDTH - MARGIN - room,
        bottom: top + RATIO_ROW * rows as f64 + between * shapes.len() as f64 + 4.0,
    };
    let scale = Scale::logarithmic((least, most.max(least * 1.1)), (area.left, area.right));
    let ticks = fitting(scale, &ratio_ticks(least, most));
    let axis = "times the speed of cuBLAS (logarithmic)";
    let below = draw_x(&mut canvas, area, scale, &ticks, axis);

    let one = scale.at(1.0);
    let mut origin = None;
    let mut labels: Vec<(String, (f64, f64), Anchor)> = Vec::new();
    for (size, measured) in &shapes {
        if size.origin.is_some() && size.origin != origin {
            origin = size.origin.clone();
            let y = top + RATIO_ROW * 0.65;
            canvas.text(
                origin.as_deref().unwrap_or_default(),
                (MARGIN, y),
                Anchor::Start,
                SOFT,
            );
            canvas.line(
                (MARGIN, y + TEXT * 0.6),
                (area.left - room, y + TEXT * 0.6),
                Stroke::solid(SOFT, 0.8),
            );
            top += RATIO_ROW;
        }
        let y = top + RATIO_ROW / 2.0 + 2.0;
        if let Some(name) = &size.name {
            canvas.text(name, (MARGIN, y), Anchor::Start, INK);
        }
        let end = MARGIN + names + dimensions - 2.0 * GAP;
        canvas.text(&size.shape().to_string(), (end, y), Anchor::End, SOFT);
        for (kernel, ratio) in measured {
            let y = top + RATIO_ROW / 2.0 + 2.0;
            if kernels > 0.0 {
                let x = MARGIN + names + dimensions;
                canvas.text(kernel, (x, y), Anchor::Start, INK);
            }
            let end = scale.at(*ratio);
            let bar = Area {
                left: end.min(one),
                top: y - RATIO_BAR / 2.0,
                right: end.max(one),
                bottom: y + RATIO_BAR / 2.0,
            };
            let is_slower = *ratio < 1.0;
            canvas.bar(bar, if is_slower { SLOWER } else { KERNEL });
            let (at, anchor) = match is_slower {
                true => (end - GAP, Anchor::End),
                false => (end + GAP, Anchor::Start),
            };
            labels.push((figure(*ratio), (at, y), anchor));
            top += RATIO_ROW;
        }
        top += between;
    }
    canvas.line((one, area.top), (one, area.bottom), Stroke::solid(INK, 1.5));
    for (text, at, anchor) in labels {
        canvas.text_on_white(&text, at, anchor);
    }
    canvas.finish(&title, below)
}

/// How often the origin changes from a shape to the next.
fn sections<T>(shapes: &[(&Size, T)]) -> usize {
    let mut origins: Vec<&String> = shapes
        .iter()
        .filter_map(|(size, _)| size.origin.as_ref())
        .collect();
    origins.dedup();
    origins.len()
}

/// Ticks for ratios, the finest first.
fn ratio_ticks(least: f64, most: f64) -> [Vec<f64>; 7] {
    let steps = |step: f64| -> Vec<f64> {
        let last = (5.0 / step).round() as usize;
        (1..=last).map(|index| index as f64 * step).collect()
    };
    let powers = |base: f64| -> Vec<f64> { (-12..=12).map(|power| base.powi(power)).collect() };
    let uneven = [
        0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0,
    ];
    let all = [
        steps(0.02),
        steps(0.05),
        steps(0.1),
        uneven.to_vec(),
        powers(2.0),
        powers(10.0),
        powers(1000.0),
    ];
    all.map(|mut values| {
        // One that ends before the ratios do leaves a part of the axis empty.
        let is_enough = values[0] <= least && values.last().is_some_and(|last| *last >= most);
        if !is_enough {
            values = powers(10.0);
        }
        values.retain(|value| (least..=most).contains(value));
        values
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::ratios::tests::named;
    use crate::bench::results::tests::{sample, sample_of_two_devices};

    /// The widths and colours of the bars, from the top.
    fn bars(svg: &str) -> Vec<(f64, &str)> {
        svg.lines()
            .filter(|line| line.starts_with("<rect ") && !line.contains("#ffffff"))
            .map(|line| {
                let of = |name: &str| {
                    let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
                    rest.split_once('"').unwrap().0
                };
                (of("width").parse().unwrap(), of("fill"))
            })
            .collect()
    }

    #[test]
    fn bars_are_as_long_as_speeds_in_the_order_of_the_ladder_and_cublas_is_the_last() {
        let svg = ladder(&sample());
        let bars = bars(&svg);
        let colours: Vec<&str> = bars.iter().map(|bar| bar.1).collect();
        assert_eq!(colours, [KERNEL, KERNEL, KERNEL, KERNEL, YARDSTICK]);
        let longest = bars[4].0;
        for (bar, speed) in bars.iter().zip([5.0, 8.5, 8.0, 46.75, 50.0]) {
            assert!((bar.0 - speed / 50.0 * longest).abs() < 0.2, "{bars:?}");
        }
        assert!(svg.contains("not proven right"));
    }

    #[test]
    fn of_two_devices_each_has_its_bars_and_shares_are_of_the_yardstick_that_is_drawn() {
        let svg = ladder(&sample_of_two_devices());
        let colours: Vec<&str> = bars(&svg).iter().map(|bar| bar.1).collect();
        assert_eq!(colours, [&[KERNEL; 8][..], &[YARDSTICK]].concat());
        for text in [
            "\ntiled-32 (cuda)\n",
            "\ntiled-32 (opencl)\n",
            "\ncuBLAS fp32 (cuda)\n",
            "\n8.50 (17 %)\n",
            "\n7.65\n",
            "of the speed of cuBLAS",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    #[test]
    fn ratios_begin_at_one_and_those_of_slower_kernels_have_another_colour() {
        let mut results = named();
        for size in &mut results.sizes {
            size.results.retain(|record| record.kernel == "auto");
        }
        let svg = ratios(&results);
        // 1.25 and its inverse are as long.
        let bars = bars(&svg);
        assert_eq!(bars[0].1, KERNEL);
        assert_eq!(bars[1].1, SLOWER);
        assert!((bars[0].0 - bars[1].0).abs() < 0.2, "{bars:?}");
        for text in ["small", "large", "odd", "1.25", "0.80"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    #[test]
    fn without_cublas_there_are_no_bars_and_the_plot_says_why() {
        let mut results = named();
        results.sizes.clear();
        let svg = ratios(&results);
        assert!(bars(&svg).is_empty());
        assert!(svg.contains("Nothing was measured beside cuBLAS"));
    }
}
