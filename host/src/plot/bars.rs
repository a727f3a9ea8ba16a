//! Bars, one in each row, with their values at their ends.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::ticks::Scale;
use super::{Colour, Drawn, FAINT, INK, MARGIN, SOFT, Sheet, TEXT};
use super::{dash, fill, font, picture, stroke, text_width, widest, write, write_on_white};

/// The distance from one bar to the next, and the gap between bars, which is twice between rows.
const BAR: i32 = 19;
const GAP: i32 = 5;

/// A picture of bars.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    pub title: String,
    /// Lines below the title.
    pub notes: Vec<String>,
    /// The meaning of the colours.
    pub legend: Vec<(Colour, &'static str)>,
    /// The label below the axis.
    pub axis: String,
    /// Whether values are ratios: bars begin at 1, and a ratio and its inverse are equally long.
    pub are_ratios: bool,
    /// A dashed line across all bars.
    pub line: Option<f64>,
    pub rows: Vec<Row>,
}

/// A name, and its bars below each other. Without bars, it is a heading.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub name: String,
    pub bars: Vec<Bar>,
}

/// A bar of consecutive parts, with a text at the end.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Lengths and colours, with the text inside.
    pub parts: Vec<(f64, Colour, String)>,
    pub value: String,
    /// A line across the bar.
    pub mark: Option<f64>,
}

impl Bar {
    /// A bar of one part.
    pub fn new(length: f64, colour: Colour, value: String) -> Bar {
        Bar {
            parts: vec![(length, colour, String::new())],
            value,
            mark: None,
        }
    }

    fn end(&self) -> f64 {
        let lengths = self.parts.iter().map(|(length, ..)| length);
        lengths.sum::<f64>().max(self.mark.unwrap_or(0.0))
    }
}

impl Row {
    /// A row of one bar.
    pub fn new(name: String, bar: Bar) -> Row {
        let bars = vec![bar];
        Row { name, bars }
    }

    pub fn heading(name: String) -> Row {
        let bars = Vec::new();
        Row { name, bars }
    }

    fn height(&self) -> i32 {
        BAR * self.bars.len().max(1) as i32 + GAP
    }
}

impl Bars {
    fn scale(&self) -> Scale {
        let bars = self.rows.iter().flat_map(|row| &row.bars);
        let ends = bars.map(Bar::end).chain(self.line);
        let (least, most) = ends.fold((1.0, 0.0), |(least, most): (f64, f64), end| {
            (least.min(end), most.max(end))
        });
        let range = match self.are_ratios {
            true => (least, most.max(1.1 * least)),
            false if most > 0.0 => (0.0, most),
            false => (0.0, 1.0),
        };
        Scale::new(range, self.are_ratios)
    }

    /// The picture, as SVG.
    pub fn draw(&self) -> String {
        let rows = self.rows.iter().map(Row::height).sum::<i32>();
        let legend = if self.legend.is_empty() { 0 } else { 26 };
        let height = legend + rows.max(BAR) + 56;
        picture(&self.title, &self.notes, height, |sheet, top| {
            self.draw_legend(sheet, top)?;
            self.draw_rows(sheet, top + legend, rows.max(BAR))
        })
    }

    fn draw_legend(&self, sheet: &Sheet<'_>, top: i32) -> Drawn {
        let mut x = MARGIN;
        for (colour, text) in &self.legend {
            fill(sheet, (x, top), (x + 14, top + 14), *colour)?;
            write(sheet, text, (x + 20, top + 7), HPos::Left, INK)?;
            x += 44 + text_width(text, TEXT) as i32;
        }
        Ok(())
    }

    fn draw_rows(&self, sheet: &Sheet<'_>, top: i32, height: i32) -> Drawn {
        let bars = || self.rows.iter().flat_map(|row| &row.bars);
        let values = widest(bars().map(|bar| bar.value.as_str())) + 2 * GAP;
        let names = self.rows.iter().filter(|row| !row.bars.is_empty());
        let names = widest(names.map(|row| row.name.as_str())) + 2 * GAP;
        let scale = self.scale();
        // The values of ratios below 1 are at the left ends of the bars.
        let room = if scale.range.0 > 0.0 && scale.range.0 < 1.0 {
            values
        } else {
            0
        };
        let mut chart = ChartBuilder::on(sheet)
            .margin_left(MARGIN)
            .margin_top(top)
            .margin_right(MARGIN + values.max(24))
            .x_label_area_size(48)
            .y_label_area_size(names + room)
            .build_cartesian_2d(scale, 0.0..1.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .y_labels(0)
            .bold_line_style(FAINT)
            .light_line_style(WHITE.mix(0.0))
            .axis_style(FAINT)
            .x_label_style(font(&INK))
            .axis_desc_style(font(&SOFT))
            .x_desc(&self.axis)
            .draw()?;
        let x = |value: f64| chart.backend_coord(&(value, 0.0)).0;
        let start = x(if self.are_ratios { 1.0 } else { 0.0 });
        if let Some(line) = self.line {
            let ends = [(x(line), top), (x(line), top + height)];
            dash(sheet, &ends, super::GREY, 5)?;
        }
        let mut y = top;
        for row in &self.rows {
            let middle = y + row.height() / 2;
            match row.bars.is_empty() {
                true => write(sheet, &row.name, (MARGIN, middle), HPos::Left, SOFT)?,
                false => {
                    let right = MARGIN + names - GAP;
                    write(sheet, &row.name, (right, middle), HPos::Right, INK)?;
                }
            }
            for (index, bar) in row.bars.iter().enumerate() {
                let top = y + GAP + BAR * index as i32;
                let (from, to) = (top - GAP / 2, top + BAR - 2 * GAP / 2 - GAP / 2);
                self.draw_bar(sheet, bar, &x, start, (from, to))?;
            }
            y += row.height();
        }
        stroke(sheet, vec![(start, top), (start, top + height)], INK, 1)
    }

    fn draw_bar(
        &self,
        sheet: &Sheet<'_>,
        bar: &Bar,
        x: &impl Fn(f64) -> i32,
        start: i32,
        (top, bottom): (i32, i32),
    ) -> Drawn {
        let middle = (top + bottom) / 2;
        let (mut sum, mut from) = (0.0, start);
        for (length, colour, text) in &bar.parts {
            sum += length;
            let to = x(sum);
            fill(sheet, (from.min(to), top), (from.max(to), bottom), *colour)?;
            if f64::from(to - from) > text_width(text, TEXT) + 8.0 {
                let ink = if *colour == super::BLUE { WHITE } else { INK };
                write(sheet, text, ((from + to) / 2, middle), HPos::Center, ink)?;
            }
            from = to;
        }
        if let Some(mark) = bar.mark {
            let line = vec![(x(mark), top), (x(mark), bottom)];
            stroke(sheet, line, super::ORANGE, 3)?;
        }
        let end = if bar.parts.is_empty() {
            start
        } else {
            x(bar.end())
        };
        match end < start {
            true => write_on_white(sheet, &bar.value, (end - GAP, middle), HPos::Right),
            false => write_on_white(sheet, &bar.value, (end + GAP, middle), HPos::Left),
        }
    }
}
