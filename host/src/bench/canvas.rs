//! What plots are drawn on: lines, bars, markers and text, placed in pixels, as SVG. The viewer
//! has the fonts, so the room that text takes is estimated, and never too small.

use svg::node::element::{Group, Line, Polygon, Polyline, Rectangle, Text, Title};
use svg::{Document, Node};

/// Width of every plot; heights differ.
pub const WIDTH: f64 = 1000.0;
/// Between the edge of a plot and anything in it.
pub const MARGIN: f64 = 16.0;

/// Heights of text.
pub const TEXT: f64 = 13.0;
const TITLE: f64 = 17.0;

/// A colour, as SVG writes it.
pub type Colour = &'static str;

/// Of text and axes, of text that matters less, and of lines that only guide the eye.
pub const INK: Colour = "#1a1a1a";
pub const SOFT: Colour = "#555555";
pub const FAINT: Colour = "#dddddd";
const PAPER: Colour = "#ffffff";

/// A place: x to the right, y down.
pub type Point = (f64, f64);

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    /// The rectangle of a size around a point.
    pub fn around((x, y): Point, width: f64, height: f64) -> Area {
        Area {
            left: x - width / 2.0,
            top: y - height / 2.0,
            right: x + width / 2.0,
            bottom: y + height / 2.0,
        }
    }

    pub fn overlaps(&self, other: &Area) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    pub fn contains(&self, other: &Area) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    pub colour: Colour,
    pub width: f64,
    /// Lengths of dashes and gaps, as SVG writes them.
    pub dashes: Option<&'static str>,
}

impl Stroke {
    pub const fn solid(colour: Colour, width: f64) -> Stroke {
        Stroke {
            colour,
            width,
            dashes: None,
        }
    }

    pub const fn dashed(colour: Colour, width: f64, dashes: &'static str) -> Stroke {
        Stroke {
            colour,
            width,
            dashes: Some(dashes),
        }
    }
}

/// Which point of text is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A plot being drawn.
pub struct Canvas {
    elements: Group,
}

impl Default for Canvas {
    fn default() -> Canvas {
        Canvas::new()
    }
}

impl Canvas {
    pub fn new() -> Canvas {
        let elements = Group::new().set("font-family", "sans-serif");
        Canvas { elements }
    }

    /// Writes the title and the lines below it; returns where the space below them begins.
    pub fn head(&mut self, title: &str, notes: &[String]) -> f64 {
        let width = WIDTH - 2.0 * MARGIN;
        let mut y = MARGIN;
        for line in wrapped(title, width, |text| bold_width(text, TITLE)) {
            y += TITLE * 1.3;
            let mut text = written(&line, (MARGIN, y - 6.0), TITLE, INK);
            text = text.set("font-weight", "bold");
            self.elements.append(text);
        }
        let lines = notes.iter();
        for line in lines.flat_map(|note| wrapped(note, width, |text| text_width(text, TEXT))) {
            y += TEXT * 1.4;
            self.elements
                .append(written(&line, (MARGIN, y - 3.0), TEXT, SOFT));
        }
        y + 8.0
    }

    /// Writes a line of text, at half its height beside the point.
    pub fn text(&mut self, text: &str, at: Point, anchor: Anchor, colour: Colour) {
        let text = written(text, (at.0, at.1 + 0.35 * TEXT), TEXT, colour);
        self.elements.append(anchored(text, anchor));
    }

    /// Writes a line of text on a white ground, so that no line runs through it.
    pub fn text_on_white(&mut self, text: &str, at: Point, anchor: Anchor) {
        let area = text_area(text, at, anchor);
        self.bar(area, PAPER);
        self.text(text, at, anchor, INK);
    }

    /// Writes a line of text that runs upwards.
    pub fn upright(&mut self, text: &str, (x, y): Point, anchor: Anchor) {
        let turn = format!("rotate(-90,{},{})", tenths(x), tenths(y));
        let text = written(text, (x, y), TEXT, INK)
            .set("dy", "0.35em")
            .set("transform", turn);
        self.elements.append(anchored(text, anchor));
    }

    pub fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        let line = Line::new()
            .set("x1", tenths(from.0))
            .set("y1", tenths(from.1))
            .set("x2", tenths(to.0))
            .set("y2", tenths(to.1))
            .set("stroke", stroke.colour)
            .set("stroke-width", stroke.width);
        self.elements.append(match stroke.dashes {
            Some(dashes) => line.set("stroke-dasharray", dashes),
            None => line,
        });
    }

    /// A line through all of the points.
    pub fn path(&mut self, points: &[Point], stroke: Stroke) {
        let line = Polyline::new()
            .set("points", listed(points))
            .set("fill", "none")
            .set("stroke", stroke.colour)
            .set("stroke-width", stroke.width)
            .set("stroke-linejoin", "round");
        self.elements.append(match stroke.dashes {
            Some(dashes) => line.set("stroke-dasharray", dashes),
            None => line,
        });
    }

    pub fn bar(&mut self, area: Area, colour: Colour) {
        self.elements.append(
            Rectangle::new()
                .set("x", tenths(area.left))
                .set("y", tenths(area.top))
                .set("width", tenths(area.right - area.left))
                .set("height", tenths(area.bottom - area.top))
                .set("fill", colour),
        );
    }

    /// A marker with these corners around a point, outlined in white so that markers on top of
    /// each other are told apart.
    pub fn marker(&mut self, corners: &[Point], (x, y): Point, colour: Colour) {
        let corners: Vec<Point> = corners.iter().map(|&(dx, dy)| (x + dx, y + dy)).collect();
        self.elements.append(
            Polygon::new()
                .set("points", listed(&corners))
                .set("fill", colour)
                .set("stroke", PAPER)
                .set("stroke-width", 1),
        );
    }

    /// The whole plot; `title` is what a screen reader says.
    pub fn finish(self, title: &str, height: f64) -> String {
        let height = height.ceil();
        let paper = Rectangle::new()
            .set("class", "paper")
            .set("width", WIDTH)
            .set("height", height)
            .set("fill", PAPER);
        let document = Document::new()
            .set("viewBox", (0, 0, WIDTH, height))
            .set("width", WIDTH)
            .set("height", height)
            .set("role", "img")
            .add(Title::new(title))
            .add(paper)
            .add(self.elements);
        format!("{document}\n")
    }
}

fn written(text: &str, at: Point, size: f64, colour: Colour) -> Text {
    Text::new(text)
        .set("x", tenths(at.0))
        .set("y", tenths(at.1))
        .set("font-size", size)
        .set("fill", colour)
}

fn anchored(text: Text, anchor: Anchor) -> Text {
    match anchor {
        Anchor::Start => text,
        Anchor::Middle => text.set("text-anchor", "middle"),
        Anchor::End => text.set("text-anchor", "end"),
    }
}

fn listed(points: &[Point]) -> String {
    let points = points
        .iter()
        .map(|&(x, y)| format!("{},{}", tenths(x), tenths(y)));
    points.collect::<Vec<_>>().join(" ")
}

/// To a tenth of a pixel.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Where [`Canvas::text`] writes.
pub fn text_area(text: &str, (x, y): Point, anchor: Anchor) -> Area {
    let width = text_width(text, TEXT);
    let left = match anchor {
        Anchor::Start => x,
        Anchor::Middle => x - width / 2.0,
        Anchor::End => x - width,
    };
    Area::around((left + width / 2.0, y), width, TEXT * 1.1)
}

/// The width of text, no less than in DejaVu Sans, the widest of the usual plain fonts.
pub fn text_width(text: &str, size: f64) -> f64 {
    let of_glyph = |glyph: char| match glyph {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' => 0.34,
        'f' | 't' | 'r' | '-' | '(' | ')' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' => 0.99,
        'a'..='z' | '0'..='9' => 0.64,
        'A'..='Z' => 0.79,
        _ => 1.0,
    };
    size * text.chars().map(of_glyph).sum::<f64>()
}

fn bold_width(text: &str, size: f64) -> f64 {
    1.15 * text_width(text, size)
}

/// Text in lines that are no wider than `width`, broken between words. A wider word is cut.
fn wrapped(text: &str, width: f64, width_of: impl Fn(&str) -> f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = shortened(word, width, &width_of);
        match lines.last_mut() {
            Some(line) if width_of(&format!("{line} {word}")) <= width => {
                *line += " ";
                *line += &word;
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// Text that is no wider than `width`: its end is cut off if it must be.
fn shortened(text: &str, width: f64, width_of: impl Fn(&str) -> f64) -> String {
    if width_of(text) <= width {
        return text.to_string();
    }
    let mut kept = String::new();
    for glyph in text.chars() {
        if width_of(&format!("{kept}{glyph}...")) > width {
            break;
        }
        kept.push(glyph);
    }
    kept + "..."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_a_wide_word_is_cut() {
        let count = |text: &str| text.chars().count() as f64;
        assert_eq!(
            wrapped("one two three", 7.0, count),
            ["one two".to_string(), "three".to_string()]
        );
        assert_eq!(wrapped("conflict-free", 7.0, count), ["conf..."]);
        assert!(wrapped("", 7.0, count).is_empty());
    }

    #[test]
    fn areas_that_touch_do_not_overlap() {
        let area = |x| Area::around((x, 0.0), 2.0, 2.0);
        assert!(area(0.0).overlaps(&area(1.9)));
        assert!(!area(0.0).overlaps(&area(2.0)));
        assert!(area(0.0).contains(&Area::around((0.5, 0.5), 1.0, 1.0)));
        assert!(!area(0.0).contains(&area(0.1)));
    }

    #[test]
    fn what_a_device_calls_itself_cannot_break_the_file() {
        let mut canvas = Canvas::new();
        canvas.head("<GPU & \"co\">", &[]);
        let svg = canvas.finish("<GPU & \"co\">", 100.0);
        assert!(!svg.contains("<GPU"), "{svg}");
        assert!(svg.contains("&lt;GPU &amp;"), "{svg}");
    }
}
