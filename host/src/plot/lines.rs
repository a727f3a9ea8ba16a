//! Lines and single points over two axes. Their names are in a column at the right, each with its
//! marker, as close as possible to the end of its line.

use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ticks::{self, Scale};
use super::{BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY};
use super::{Colour, Drawn, FAINT, INK, MARGIN, SOFT, Sheet, WIDTH};
use super::{dash, font, picture, stroke, widest, write, write_on_white};

const HEIGHT: i32 = 440;
/// The distance between the names of lines.
const NAME: i32 = 18;
/// The distance between the plot and the names.
const KEY: i32 = 36;

/// A picture of lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    pub title: String,
    /// Lines below the title.
    pub notes: Vec<String>,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    pub guides: Vec<Guide>,
}

/// The title and the marks of an axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    pub title: String,
    pub is_logarithmic: bool,
    /// The marked values and their labels; empty for round values.
    pub marks: Vec<(f64, String)>,
}

/// The points of one contender.
#[derive(Clone, Debug)]
pub struct Line {
    pub name: String,
    pub style: Style,
    pub points: Vec<(f64, f64)>,
    /// Impossible points, which are drawn dotted.
    pub dotted: Vec<(f64, f64)>,
    /// Whether lines join the points.
    pub is_joined: bool,
}

/// A line that was not measured, with its name at its middle.
#[derive(Clone, Debug)]
pub struct Guide {
    pub points: Vec<(f64, f64)>,
    pub name: String,
    pub is_dashed: bool,
}

/// How one contender is drawn: the first 30 all differ, and neighbours differ in both colour and
/// marker, so that they can be distinguished without colours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    pub colour: Colour,
    marker: &'static [(i32, i32)],
}

const COLOURS: [Colour; 6] = [BLUE, RED, GREEN, PINK, ORANGE, SKY];

/// Outlines of markers around their point.
#[rustfmt::skip]
const MARKERS: [&[(i32, i32)]; 5] = [
    &[(-2, -5), (2, -5), (5, -2), (5, 2), (2, 5), (-2, 5), (-5, 2), (-5, -2)],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -6), (6, 5), (-6, 5)],
    &[(0, -7), (6, 0), (0, 7), (-6, 0)],
    &[
        (-2, -6), (2, -6), (2, -2), (6, -2), (6, 2), (2, 2),
        (2, 6), (-2, 6), (-2, 2), (-6, 2), (-6, -2), (-2, -2),
    ],
];
#[rustfmt::skip]
const STAR: &[(i32, i32)] = &[
    (0, -8), (2, -3), (7, -2), (3, 1), (4, 6), (0, 3), (-4, 6), (-3, 1), (-7, -2), (-2, -3),
];

impl Style {
    /// The style of the contender with this number.
    pub fn of(index: usize) -> Style {
        Style {
            colour: COLOURS[index % COLOURS.len()],
            marker: MARKERS[index % MARKERS.len()],
        }
    }

    /// The style of `auto`: a star.
    pub const AUTO: Style = Style {
        colour: INK,
        marker: STAR,
    };

    /// The style of cuBLAS: a short line.
    pub const YARDSTICK: Style = Style {
        colour: GREY,
        marker: &[(-7, -2), (7, -2), (7, 2), (-7, 2)],
    };

    /// Draws a marker with a white outline, so that overlapping markers can be distinguished.
    fn mark(&self, sheet: &Sheet<'_>, (x, y): (i32, i32)) -> Drawn {
        let corners = self.marker.iter().map(|(dx, dy)| (x + dx, y + dy));
        let mut corners: Vec<(i32, i32)> = corners.collect();
        sheet.draw(&Polygon::new(corners.clone(), self.colour.filled()))?;
        corners.push(corners[0]);
        stroke(sheet, corners, WHITE, 1)
    }
}

impl Axis {
    /// A scale for all `values`, with room at both ends if it is logarithmic.
    fn scale(&self, values: impl Iterator<Item = f64>) -> Scale {
        let usable = |value: &f64| value.is_finite() && (*value > 0.0 || !self.is_logarithmic);
        let bounds = |(least, most): (f64, f64), value: f64| (least.min(value), most.max(value));
        let marks = self.marks.iter().map(|mark| mark.0);
        let all = values.chain(marks).filter(usable);
        let (least, most) = all.fold((f64::INFINITY, f64::NEG_INFINITY), bounds);
        let range = match (least <= most, self.is_logarithmic, self.marks.is_empty()) {
            (false, ..) => (1.0, 10.0),
            (_, true, true) => (least / 1.6, most * 1.6),
            (_, true, false) => (least / 1.1, most * 1.1),
            (_, false, true) => (0.0, ticks::rounded_up(most)),
            (_, false, false) => (least - 0.04 * (most - least), most + 0.02 * (most - least)),
        };
        let round = Scale::new(range, self.is_logarithmic);
        match self.marks.is_empty() {
            true => round,
            false => Scale {
                marks: self.marks.clone(),
                ..round
            },
        }
    }
}

/// Moves labels apart as little as necessary, between `top` and `bottom`. Returns their middles,
/// in the order of `wanted`.
fn moved_apart(wanted: &[i32], (top, bottom): (i32, i32)) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&index| wanted[index]);
    let mut places = wanted.to_vec();
    // First downwards from the top, then upwards from the bottom.
    let mut least = top;
    for &index in &order {
        places[index] = places[index].max(least);
        least = places[index] + NAME;
    }
    let mut most = bottom;
    for &index in order.iter().rev() {
        places[index] = places[index].min(most);
        most = places[index] - NAME;
    }
    places
}

impl Lines {
    /// The picture, as SVG.
    pub fn draw(&self) -> String {
        let height = HEIGHT.max(NAME * self.lines.len() as i32);
        let points = || {
            let lines = self
                .lines
                .iter()
                .flat_map(|line| line.points.iter().chain(&line.dotted));
            lines.chain(self.guides.iter().flat_map(|guide| &guide.points))
        };
        let scales = [
            self.x.scale(points().map(|point| point.0)),
            self.y.scale(points().map(|point| point.1)),
        ];
        let width = widest(scales[0].marks.iter().map(|mark| mark.1.as_str()));
        // Labels that have no room beside each other are written vertically.
        let places = scales[0].marks.iter();
        let mut places: Vec<i32> = places
            .map(|mark| scales[0].map(&mark.0, (0, 3 * WIDTH / 5)))
            .collect();
        places.sort();
        let is_upright = places.windows(2).any(|pair| pair[1] - pair[0] < width + 8);
        let below = if is_upright { width + 36 } else { 48 };
        picture(
            &self.title,
            &self.notes,
            height + below + 12,
            |sheet, top| self.draw_on(sheet, (top, below), scales, is_upright),
        )
    }

    fn draw_on(
        &self,
        sheet: &Sheet<'_>,
        (top, below): (i32, i32),
        [across, up]: [Scale; 2],
        is_upright: bool,
    ) -> Drawn {
        let column = widest(self.lines.iter().map(|line| line.name.as_str()));
        let rows = widest(up.marks.iter().map(|mark| mark.1.as_str()));
        let (names, bottom) = (across.marks.clone(), up.range.0);
        let label = |place: &f64| match is_upright {
            true => String::new(),
            false => across.format_ext(place),
        };
        let mut chart = ChartBuilder::on(sheet)
            .margin_left(MARGIN)
            .margin_top(top)
            .margin_right(MARGIN + KEY + column)
            .margin_bottom(12)
            .x_label_area_size(below)
            .y_label_area_size(rows + 32)
            .build_cartesian_2d(across.clone(), up)?;
        chart
            .configure_mesh()
            .bold_line_style(FAINT)
            .light_line_style(WHITE.mix(0.0))
            .axis_style(SOFT)
            .label_style(font(&INK))
            .axis_desc_style(font(&SOFT))
            .x_label_formatter(&label)
            .x_desc(&self.x.title)
            .y_desc(&self.y.title)
            .draw()?;
        let at = |point: &(f64, f64)| chart.backend_coord(point);
        let (columns, heights) = chart.plotting_area().get_pixel_range();
        if is_upright {
            let style = font(&INK).transform(FontTransform::Rotate270);
            let style = style.pos(Pos::new(HPos::Right, VPos::Center));
            let mut last = i32::MIN;
            for (place, name) in &names {
                let x = at(&(*place, bottom)).0;
                if x >= last.saturating_add(NAME - 1) {
                    sheet.draw_text(name, &style, (x, heights.end + 10))?;
                    last = x;
                }
            }
        }
        for guide in &self.guides {
            let points: Vec<(i32, i32)> = guide.points.iter().map(at).collect();
            match guide.is_dashed {
                true => dash(sheet, &points, SOFT, 5)?,
                false => stroke(sheet, points, INK, 2)?,
            }
        }
        let mut ends = Vec::new();
        for line in &self.lines {
            let style = line.style;
            let mut points: Vec<(i32, i32)> = line.points.iter().map(at).collect();
            let dotted: Vec<(i32, i32)> = line.dotted.iter().map(at).collect();
            points.sort();
            let end = points.iter().chain(&dotted).max();
            ends.push(end.map_or(heights.end, |end| end.1));
            let width = if line.is_joined { 2 } else { 1 };
            dash(sheet, &dotted, style.colour, 2)?;
            if points.len() > 1 {
                stroke(sheet, points.clone(), style.colour, width)?;
            }
            for point in points {
                style.mark(sheet, point)?;
            }
        }
        for guide in self.guides.iter().filter(|guide| !guide.name.is_empty()) {
            let points: Vec<(i32, i32)> = guide.points.iter().map(at).collect();
            let (first, last) = (points[0], points[points.len() - 1]);
            let (x, y) = ((first.0 + last.0) / 2, (first.1 + last.1) / 2);
            // Above a flat line, at the left of a steep one.
            match first.1 == last.1 {
                true => write(sheet, &guide.name, (x, y - 12), HPos::Center, INK)?,
                false => write_on_white(sheet, &guide.name, (x - 10, y), HPos::Right)?,
            }
        }
        let names = moved_apart(&ends, (heights.start + NAME / 2, heights.end - NAME / 2));
        for (line, y) in self.lines.iter().zip(names) {
            line.style.mark(sheet, (columns.end + KEY / 2, y))?;
            write(sheet, &line.name, (columns.end + KEY, y), HPos::Left, INK)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_contenders_look_alike_and_neighbours_differ_without_colours() {
        let mut styles: Vec<Style> = (0..30).map(Style::of).collect();
        styles.extend([Style::AUTO, Style::YARDSTICK]);
        for (index, style) in styles.iter().enumerate() {
            assert!(!styles[..index].contains(style), "{index}");
        }
        for pair in styles.windows(2) {
            assert!(pair[0].colour != pair[1].colour && pair[0].marker != pair[1].marker);
        }
    }

    #[test]
    fn names_keep_their_order_and_do_not_touch() {
        let apart = |wanted: &[i32]| moved_apart(wanted, (0, 100));
        assert_eq!(apart(&[50, 20]), [50, 20]);
        assert_eq!(apart(&[50, 50]), [50, 68]);
        assert_eq!(apart(&[99, 20, 98]), [100, 20, 82]);
    }
}
