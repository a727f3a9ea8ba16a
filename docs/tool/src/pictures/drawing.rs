//! What pictures are made of: rectangles, lines and labels on light paper, so that a dark book
//! shows them as well.

use svg::node::element::{Line, Rectangle, Style, Text, Title};
use svg::{Document, Node};

/// Fills by what they stand for, darker the closer to a thread; and text styles.
const STYLE: &str = "
text { font: 13px sans-serif; fill: #1a1a1a }
.small { font-size: 11px; fill: #444 }
.head { font-weight: bold }
.middle { text-anchor: middle }
.paper { fill: #fdfcf8 }
.matrix { fill: #fff; stroke: #777 }
.a1 { fill: #dbe8fb } .a2 { fill: #8fb8f0 } .a3 { fill: #1f5fb8 }
.b1 { fill: #fde7cf } .b2 { fill: #f5b267 } .b3 { fill: #b85c00 }
.c1 { fill: #dff2dc } .c2 { fill: #9dd495 } .c3 { fill: #1d7a2a }
.edge { fill: none; stroke: #1a1a1a; stroke-width: 1.5 }
line { stroke: #1a1a1a } .thin { stroke: #bbb }";

/// A picture being drawn.
pub struct Drawing {
    document: Document,
}

/// A rectangle, in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Drawing {
    pub fn new(title: &str, width: u32, height: u32) -> Drawing {
        let document = Document::new()
            .set("viewBox", (0, 0, width, height))
            .set("width", width)
            .set("height", height)
            .set("role", "img")
            .add(Title::new(title))
            .add(Style::new(STYLE));
        let paper = Area {
            x: 0.0,
            y: 0.0,
            width: f64::from(width),
            height: f64::from(height),
        };
        let mut drawing = Drawing { document };
        drawing.rectangle("paper", paper);
        drawing.text("head", 16.0, 24.0, title);
        drawing
    }

    pub fn rectangle(&mut self, class: &str, area: Area) {
        self.add(
            Rectangle::new()
                .set("class", class)
                .set("x", tenths(area.x))
                .set("y", tenths(area.y))
                .set("width", tenths(area.width))
                .set("height", tenths(area.height)),
        );
    }

    /// Fills the chosen elements of a matrix of `size` (rows and columns). Each is `scale` pixels
    /// wide and high, the first is at `at`. Neighbours become one rectangle, so that no seams
    /// show.
    pub fn elements(
        &mut self,
        class: &str,
        at: (f64, f64),
        scale: f64,
        size: (usize, usize),
        is_chosen: impl Fn(usize, usize) -> bool,
    ) {
        let of_row = |row: usize| runs(size.1, |column| is_chosen(row, column));
        let mut row = 0;
        while row < size.0 {
            let spans = of_row(row);
            let alike = (row..size.0)
                .take_while(|&next| of_row(next) == spans)
                .count();
            for (start, length) in spans {
                let area = Area {
                    x: at.0 + start as f64 * scale,
                    y: at.1 + row as f64 * scale,
                    width: length as f64 * scale,
                    height: alike as f64 * scale,
                };
                self.rectangle(class, area);
            }
            row += alike;
        }
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.add(
            Line::new()
                .set("class", class)
                .set("x1", tenths(from.0))
                .set("y1", tenths(from.1))
                .set("x2", tenths(to.0))
                .set("y2", tenths(to.1)),
        );
    }

    pub fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.add(
            Text::new(text)
                .set("class", class)
                .set("x", tenths(x))
                .set("y", tenths(y)),
        );
    }

    fn add(&mut self, node: impl Into<Box<dyn Node>>) {
        self.document.append(node);
    }

    pub fn finish(self) -> String {
        format!("{}\n", self.document)
    }
}

/// Rounds to a tenth of a pixel: finer differences are invisible, and would differ between
/// machines.
fn tenths(pixels: f64) -> f64 {
    (pixels * 10.0).round() / 10.0
}

/// The runs of consecutive chosen indices: the first index of each, and its length.
pub fn runs(length: usize, is_chosen: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for index in (0..length).filter(|&index| is_chosen(index)) {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == index => *length += 1,
            _ => runs.push((index, 1)),
        }
    }
    runs
}
