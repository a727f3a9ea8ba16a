//! What pictures are made of: rectangles, lines and labels on light paper. `docs/book.css` inverts
//! them for a dark book, so captions say faint, medium and strong, not pale and dark.

use svg::node::element::{Line, Rectangle, Style, Text, Title};
use svg::{Document, Node};

/// Fills by what they stand for, stronger the closer to a thread; and text styles.
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
line { stroke: #1a1a1a } .thin { stroke: #bbb } .tick { stroke: #1a1a1a; stroke-opacity: 0.4 }";

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

impl Area {
    pub fn new((x, y): (f64, f64), (width, height): (f64, f64)) -> Area {
        Area {
            x,
            y,
            width,
            height,
        }
    }

    /// The part of it that is `width` wide, from `x` on.
    pub fn columns(self, x: f64, width: f64) -> Area {
        Area { x, width, ..self }
    }

    /// The part of it that is `height` high, from `y` on.
    pub fn rows(self, y: f64, height: f64) -> Area {
        Area { y, height, ..self }
    }

    pub fn right(self) -> f64 {
        self.x + self.width
    }

    pub fn bottom(self) -> f64 {
        self.y + self.height
    }
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
        let mut drawing = Drawing { document };
        let size = (f64::from(width), f64::from(height));
        drawing.rectangle("paper", Area::new((0.0, 0.0), size));
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
                let pixels = |column, row| (column as f64 * scale, row as f64 * scale);
                let (x, y) = pixels(start, row);
                let area = Area::new((at.0 + x, at.1 + y), pixels(length, alike));
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

    /// A line across an area.
    pub fn across(&mut self, class: &str, area: Area, y: f64) {
        self.line(class, (area.x, y), (area.right(), y));
    }

    /// A line from the top of an area to its bottom.
    pub fn down(&mut self, class: &str, area: Area, x: f64) {
        self.line(class, (x, area.y), (x, area.bottom()));
    }

    /// Small lines of text, one under the other.
    pub fn lines(&mut self, (x, y): (f64, f64), spacing: f64, lines: &[&str]) {
        for (line, text) in lines.iter().enumerate() {
            self.text("small", x, y + spacing * line as f64, text);
        }
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
