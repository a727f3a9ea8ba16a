//! The ratios to cuBLAS as bars, a group a shape, beside a line at 1, as SVG.

use plotters::prelude::*;

use super::plots::{Ticks, divide, draw, text, write_legend};
use super::results::Results;
use super::style::Style;

/// The fraction of a shape's place on the axis that its bars take together.
const GROUP: f64 = 0.8;
/// The empty space above the tallest bar, as a fraction of its height.
const HEADROOM: f64 = 1.05;

/// A bar for each kernel at each shape where cuBLAS was measured, too.
///
/// # Errors
///
/// Drawing fails.
pub fn ratios(results: &Results) -> Result<String, String> {
    let kernels = results.kernels();
    let measured: Vec<_> = results
        .sizes
        .iter()
        .filter(|size| {
            let mut records = size.results.iter();
            records.any(|record| record.ratio_to_cublas.is_some())
        })
        .collect();
    let of_all = measured.iter().flat_map(|size| &size.results);
    let highest = of_all
        .filter_map(|record| record.ratio_to_cublas)
        .fold(1.0, f64::max);
    let width = GROUP / kernels.len().max(1) as f64;
    let titles = measured.iter().enumerate();
    let axis = Ticks {
        marks: titles
            .map(|(place, size)| (place as f64, size.title()))
            .collect(),
        margin: 0.5,
    };
    let ends = axis.range();
    let svg = draw(|root| {
        let title = format!("Speed over that of cuBLAS on {}", results.machine.device);
        let (plot, legend) = divide(root, &title)?;
        let mut chart = ChartBuilder::on(&plot)
            .margin(12)
            .x_label_area_size(125)
            .y_label_area_size(60)
            .build_cartesian_2d(axis, 0.0..highest * HEADROOM)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(measured.len().max(1))
            .y_desc("x cuBLAS")
            .label_style(text(14))
            .x_label_style(text(12).transform(FontTransform::Rotate90))
            .axis_desc_style(text(15))
            .draw()?;
        for (index, kernel) in kernels.iter().enumerate() {
            let colour = Style::of(index).colour.filled();
            let left = width * index as f64 - GROUP / 2.0;
            let bars = measured.iter().enumerate().filter_map(|(place, size)| {
                let ratio = size.record(kernel)?.ratio_to_cublas?;
                let left = place as f64 + left;
                Some(Rectangle::new([(left, 0.0), (left + width, ratio)], colour))
            });
            chart.draw_series(bars)?;
        }
        let line = [(ends.start, 1.0), (ends.end, 1.0)];
        chart.draw_series(LineSeries::new(line, BLACK.stroke_width(2)))?;
        let styles = kernels.iter().enumerate();
        write_legend(
            &legend,
            styles.map(|(index, kernel)| (*kernel, Style::of(index))),
        )
    })?;
    Ok(hung(&svg))
}

/// Hangs the rotated labels from the axis; `plotters` centres them on it, across the bars.
fn hung(svg: &str) -> String {
    let lines = svg.split_inclusive('\n').map(|line| {
        if line.contains("rotate(90,") {
            line.replace(r#"text-anchor="middle""#, r#"text-anchor="start""#)
        } else {
            line.to_string()
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::ratios::tests::named;

    #[test]
    fn there_is_a_bar_for_each_ratio_and_a_name_for_each_shape() {
        let svg = ratios(&named()).unwrap();
        for name in ["small", "large", "auto", "x cuBLAS"] {
            assert!(svg.contains(name), "{name}: {svg}");
        }
        // The names of the shapes begin where the axis is.
        let turned = svg.lines().filter(|line| line.contains("rotate(90,"));
        assert_eq!(turned.filter(|line| line.contains("start")).count(), 2);
        // Four kernels at two shapes, and the background.
        let rectangles = svg.matches("<rect ").count();
        assert_eq!(rectangles, 4 * 2 + 1, "{svg}");
    }

    #[test]
    fn without_cublas_there_are_no_bars() {
        let mut results = named();
        results.sizes.clear();
        let svg = ratios(&results).unwrap();
        assert!(svg.ends_with("</svg>\n"));
    }
}
