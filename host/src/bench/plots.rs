//! The plots: speed against size, and the roofline, as SVG. The viewer renders the text, so no
//! fonts are needed here.

use std::fmt::Display;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;

use super::ladder;
use super::results::{Results, Size};
use super::style::Style;
use crate::report::Record;
use crate::traffic::Traffic;

/// Width and height of a plot, and of the legend at its right.
const SIZE: (u32, u32) = (1000, 600);
const LEGEND: u32 = 230;
/// Between the legend's lines.
const LINE_HEIGHT: i32 = 20;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Why there is no plot.
pub(super) type PlotError<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

/// Text of a size in pixels, in whatever the viewer's plain font is.
pub(super) fn text(pixels: i32) -> TextStyle<'static> {
    ("sans-serif", pixels).into_text_style(&SIZE)
}

/// One line, its name and points.
struct Curve<'a> {
    name: &'a str,
    style: Style,
    points: Vec<(f64, f64)>,
}

/// The unit in which speeds are best read, if `fastest` is among them.
fn unit(fastest: f64) -> (f64, &'static str) {
    match fastest {
        0.1e12.. => (1e12, "TFLOP/s"),
        _ => (1e9, "GFLOP/s"),
    }
}

/// TFLOP/s against size, a line for each kernel and for cuBLAS. A shape that is not a cube
/// stands where the cube with as many operations does.
///
/// # Errors
///
/// Drawing fails.
pub(super) fn speed(results: &Results) -> Result<String, String> {
    let place = |size: &Size| (size.shape().flops() / 2.0).cbrt().max(1.0).log2();
    let speeds = results.sizes.iter().flat_map(|size| {
        let of_kernels = size.results.iter().filter_map(|record| record.flops_per_s);
        of_kernels.chain(size.cublas().map(|cublas| cublas.flops_per_s))
    });
    let fastest = speeds.fold(0.0, f64::max);
    let (unit, unit_name) = unit(fastest);
    let mut curves: Vec<Curve<'_>> = results
        .kernels()
        .into_iter()
        .enumerate()
        .map(|(index, kernel)| Curve {
            name: kernel,
            style: Style::of(index),
            points: points(results, place, unit, |size| {
                size.record(kernel)?.flops_per_s
            }),
        })
        .collect();
    // Not cuBLAS on tensor cores: beside it, all others would be one line.
    curves.push(Curve {
        name: "cuBLAS fp32",
        style: Style::yardstick(0),
        points: points(results, place, unit, |size| {
            Some(size.cublas()?.flops_per_s)
        }),
    });
    curves.retain(|curve| !curve.points.is_empty());
    let marks = results.sizes.iter();
    let ticks = Ticks {
        marks: marks.map(|size| (place(size), size.label())).collect(),
        margin: 0.15,
    };
    draw(|root| {
        let (plot, legend) = divide(root, &format!("Speed on {}", results.machine.device))?;
        let highest = (fastest / unit * 1.05).max(f64::MIN_POSITIVE);
        let mut chart = ChartBuilder::on(&plot)
            .margin(12)
            .x_label_area_size(45)
            .y_label_area_size(60)
            .build_cartesian_2d(ticks, 0.0..highest)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("M = N = K")
            .y_desc(unit_name)
            .label_style(text(14))
            .axis_desc_style(text(15))
            .draw()?;
        for Curve { style, points, .. } in &curves {
            let line = style.colour.stroke_width(2);
            match style.dashes {
                None => {
                    chart.draw_series(LineSeries::new(points.iter().copied(), line))?;
                }
                Some((length, gap)) => {
                    let points = points.iter().copied();
                    chart.draw_series(DashedLineSeries::new(points, length, gap, line))?;
                }
            }
            chart.draw_series(
                points
                    .iter()
                    .map(|&point| EmptyElement::at(point) + style.marker()),
            )?;
        }
        write_legend(
            &legend,
            curves.iter().map(|curve| (curve.name, curve.style)),
        )
    })
}

/// An axis whose marks are the measured sizes.
pub(super) struct Ticks {
    /// Positions along the axis, and their labels.
    pub marks: Vec<(f64, String)>,
    /// The space left before the first and after the last.
    pub margin: f64,
}

impl Ranged for Ticks {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn range(&self) -> Range<f64> {
        let places = || self.marks.iter().map(|tick| tick.0);
        let (first, last) = (
            places().fold(f64::INFINITY, f64::min),
            places().fold(0.0, f64::max),
        );
        match first <= last {
            true => first - self.margin..last + self.margin,
            false => 0.0..1.0,
        }
    }

    fn map(&self, value: &f64, (left, right): (i32, i32)) -> i32 {
        let range = self.range();
        let share = (value - range.start) / (range.end - range.start);
        left + (f64::from(right - left) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.marks.iter().map(|mark| mark.0).collect()
    }
}

impl ValueFormatter<f64> for Ticks {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        let mark = self.marks.iter().find(|mark| mark.0 == *value);
        mark.map_or_else(|| Self::format(value), |mark| mark.1.clone())
    }
}

/// The speed that `of` finds at each size, by size.
fn points(
    results: &Results,
    place: impl Fn(&Size) -> f64,
    unit: f64,
    of: impl Fn(&Size) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = results
        .sizes
        .iter()
        .filter_map(|size| Some((place(size), of(size)? / unit)))
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

/// Speed at the largest size against operations per byte that threads request from global
/// memory, below the roofs of memory and arithmetic. A kernel above the memory roof gets its
/// bytes from caches.
///
/// # Errors
///
/// Drawing fails.
pub(super) fn roofline(results: &Results) -> Result<String, String> {
    let largest = results
        .sizes
        .iter()
        .filter(|size| !size.results.is_empty())
        .max_by(|one, other| one.shape().flops().total_cmp(&other.shape().flops()));
    let kernels: Vec<(&str, Style, (f64, f64))> = largest.map_or_else(Vec::new, |size| {
        let of = |(index, record): (usize, &'_ Record)| {
            let variant = ladder::variant(record)?;
            let traffic = Traffic::of(variant, size.shape(), record.beta != 0.0);
            let intensity = traffic.intensity(size.shape(), variant.types.c.bytes());
            let speed = record.flops_per_s?;
            Some((variant.name, Style::of(index), (intensity, speed)))
        };
        size.results.iter().enumerate().filter_map(of).collect()
    });
    let roofs = results
        .machine
        .bandwidth_bytes_per_s
        .zip(results.machine.peak_flops_per_s);
    let fastest = kernels.iter().map(|kernel| kernel.2.1).fold(0.0, f64::max);
    let (unit, unit_name) = unit(roofs.map_or(fastest, |(_, peak)| peak));

    let intensities = || kernels.iter().map(|kernel| kernel.2.0);
    let ridge = roofs.map(|(bandwidth, peak)| peak / bandwidth);
    let (least, most) = decades(intensities().chain(ridge));
    let speeds = kernels.iter().map(|kernel| kernel.2.1 / unit);
    let of_roofs = roofs.map(|(bandwidth, peak)| [least * bandwidth / unit, peak / unit]);
    let (slowest, fastest) = decades(speeds.chain(of_roofs.into_iter().flatten()));

    let at = largest.map_or_else(String::new, |size| format!(" at {}", size.label()));
    draw(|root| {
        let title = format!("Roofline of {}{at}", results.machine.device);
        let (plot, legend) = divide(root, &title)?;
        let mut chart = ChartBuilder::on(&plot)
            .margin(12)
            .x_label_area_size(45)
            .y_label_area_size(60)
            .build_cartesian_2d((least..most).log_scale(), (slowest..fastest).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("operations per byte that threads read from or write to global memory")
            .y_desc(unit_name)
            .label_style(text(14))
            .axis_desc_style(text(15))
            .draw()?;
        if let Some((bandwidth, peak)) = roofs {
            let ridge = (peak / bandwidth).clamp(least, most);
            let roof = [
                (least, least * bandwidth / unit),
                (ridge, peak / unit),
                (most, peak / unit),
            ];
            chart.draw_series(LineSeries::new(roof, BLACK.stroke_width(2)))?;
            let below = |words: String, at: (f64, f64)| {
                EmptyElement::at(at) + Text::new(words, (6, 8), text(14))
            };
            let memory = format!("memory: {:.2} TB/s", bandwidth / 1e12);
            let compute = format!("multiply-adds: {:.1} {unit_name}", peak / unit);
            let middle = (least * ridge).sqrt();
            chart.draw_series([
                below(memory, (middle, middle * bandwidth / unit)),
                below(compute, (ridge, peak / unit)),
            ])?;
        }
        for (_, style, (intensity, speed)) in &kernels {
            chart.draw_series([EmptyElement::at((*intensity, speed / unit)) + style.marker()])?;
        }
        write_legend(&legend, kernels.iter().map(|kernel| (kernel.0, kernel.1)))
    })
}

/// Powers of ten around all of `values`.
fn decades(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values
        .filter(|value| value.is_finite() && *value > 0.0)
        .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| {
            (least.min(value), most.max(value))
        });
    match least <= most {
        true => (
            10f64.powf(least.log10().floor()),
            10f64.powf((most * 1.01).log10().ceil()),
        ),
        false => (1.0, 10.0),
    }
}

/// An SVG with what `content` draws.
pub(super) fn draw(
    content: impl for<'a> FnOnce(&Area<'a>) -> Result<(), PlotError<'a>>,
) -> Result<String, String> {
    let mut svg = String::new();
    let failed = |error: &dyn Display| format!("A plot cannot be drawn: {error}.");
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        content(&root).map_err(|error| failed(&error))?;
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(svg)
}

/// The plot's area below its title, and the legend's.
pub(super) fn divide<'a>(
    root: &Area<'a>,
    title: &str,
) -> Result<(Area<'a>, Area<'a>), PlotError<'a>> {
    let below = root.titled(title, text(20))?;
    Ok(below.split_horizontally(SIZE.0 - LEGEND))
}

pub(super) fn write_legend<'a, 'b>(
    area: &Area<'a>,
    contenders: impl Iterator<Item = (&'b str, Style)>,
) -> Result<(), PlotError<'a>> {
    for (index, (name, style)) in contenders.enumerate() {
        let y = 24 + LINE_HEIGHT * index as i32;
        area.draw(&(EmptyElement::at((12, y)) + style.marker()))?;
        area.draw(&Text::new(name, (26, y - 6), text(14)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::tests::sample;

    /// What the plot's text says.
    fn texts(svg: &str) -> Vec<String> {
        svg.split("<text ")
            .skip(1)
            .filter_map(|element| element.split_once('>')?.1.split_once("</text>"))
            .map(|(text, _)| text.trim().to_string())
            .collect()
    }

    #[test]
    fn the_plot_of_speeds_names_every_kernel_that_has_one_and_every_size() {
        let texts = texts(&speed(&sample()).unwrap());
        for expected in [
            "naive",
            "tiled-32",
            "tiled-16",
            "double-buffer-sn8",
            "cuBLAS fp32",
            "2048",
            "4096",
            "TFLOP/s",
        ] {
            assert!(
                texts.iter().any(|text| text == expected),
                "{expected}: {texts:?}"
            );
        }
        assert!(
            !texts.iter().any(|text| text == "conflict-free-sn8"),
            "{texts:?}"
        );
    }

    #[test]
    fn the_roofline_has_both_roofs_and_a_point_for_each_kernel_that_was_timed() {
        let svg = roofline(&sample()).unwrap();
        let texts = texts(&svg);
        for expected in ["memory: 4.80 TB/s", "multiply-adds: 66.9 TFLOP/s", "naive"] {
            assert!(
                texts.iter().any(|text| text == expected),
                "{expected}: {texts:?}"
            );
        }
        // Four markers in the plot, and four in the legend.
        assert_eq!(svg.matches("<polygon ").count(), 2 * 4);
    }

    #[test]
    fn results_without_figures_give_plots_without_lines() {
        let mut results = sample();
        results.machine.peak_flops_per_s = None;
        results.sizes.clear();
        for svg in [speed(&results), roofline(&results)] {
            assert!(svg.unwrap().ends_with("</svg>\n"));
        }
    }

    #[test]
    fn decades_contain_what_they_are_of() {
        assert_eq!(decades([0.25, 32.0].into_iter()), (0.1, 100.0));
        assert_eq!(decades([1.0, 10.0].into_iter()), (1.0, 100.0));
        assert_eq!(decades([0.0, f64::INFINITY].into_iter()), (1.0, 10.0));
    }
}
