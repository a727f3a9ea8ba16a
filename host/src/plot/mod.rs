//! Pictures of measurements, as SVG: bars and lines, drawn by `plotters`. `bench`, `gemm-mpi` and
//! the book supply the content ([`Bars`], [`Lines`]); all share the layout.
//!
//! The fonts are the viewer's, so the width of text is an estimate that is never too small.

mod bars;
mod lines;
mod ticks;

pub use bars::{Bar, Bars, Row};
pub use lines::{Axis, Guide, Line, Lines, Style};
pub use ticks::figure;

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A colour.
pub type Colour = RGBColor;

/// The colours of text and axes, of secondary text, and of grid lines.
pub const INK: Colour = RGBColor(0x1a, 0x1a, 0x1a);
const SOFT: Colour = RGBColor(0x55, 0x55, 0x55);
const FAINT: Colour = RGBColor(0xdd, 0xdd, 0xdd);

/// Okabe and Ito's colours, which are distinct with every common colour vision, without the
/// yellow, which is invisible on white.
pub const BLUE: Colour = RGBColor(0x00, 0x72, 0xb2);
pub const RED: Colour = RGBColor(0xd5, 0x5e, 0x00);
pub const GREEN: Colour = RGBColor(0x00, 0x9e, 0x73);
pub const PINK: Colour = RGBColor(0xcc, 0x79, 0xa7);
pub const ORANGE: Colour = RGBColor(0xe6, 0x9f, 0x00);
pub const SKY: Colour = RGBColor(0x56, 0xb4, 0xe9);
pub const GREY: Colour = RGBColor(0x99, 0x99, 0x99);
/// A very pale grey.
pub const PALE: Colour = RGBColor(0xe4, 0xe4, 0xe4);

/// Width of every picture; heights differ. A wider one is shrunk on a page, with its text.
const WIDTH: i32 = 640;
/// The margin inside the edge of a picture.
const MARGIN: i32 = 16;
/// Heights of text.
const TEXT: f64 = 13.0;
const TITLE: f64 = 17.0;

/// The sheet of a picture.
type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Writing to memory does not fail, but `plotters` does not know that.
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// A picture of a title, lines below it, and the drawing of `draw` in the `height` below these.
/// `draw` gets the sheet and the y at which its area begins.
fn picture(
    title: &str,
    notes: &[String],
    height: i32,
    draw: impl FnOnce(&Sheet<'_>, i32) -> Drawn,
) -> String {
    let width = f64::from(WIDTH - 2 * MARGIN);
    // The text for screen readers.
    let spoken = title.replace('&', "&amp;").replace('<', "&lt;");
    let title = wrapped(title, width, |text| 1.15 * text_width(text, TITLE));
    let notes = notes.iter();
    let notes = notes.flat_map(|note| wrapped(note, width, |text| text_width(text, TEXT)));
    let notes: Vec<String> = notes.collect();
    let top = MARGIN + 23 * title.len() as i32 + 18 * notes.len() as i32 + 8;
    let mut svg = String::new();
    let size = (WIDTH as u32, (top + height) as u32);
    let drawn = (|| {
        let sheet = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let bold = ("sans-serif", TITLE * 1.24, FontStyle::Bold);
        let bold = TextStyle::from(bold.into_font()).color(&INK);
        let mut y = MARGIN;
        for line in &title {
            sheet.draw_text(line, &bold, (MARGIN, y))?;
            y += 23;
        }
        for line in &notes {
            write(&sheet, line, (MARGIN, y + 8), HPos::Left, SOFT)?;
            y += 18;
        }
        draw(&sheet, top)?;
        sheet.present()
    })();
    drawn.expect("a string in memory can be written");
    let head = format!(
        " role=\"img\">\n<title>{spoken}</title>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n"
    );
    svg.replacen(">\n", &head, 1)
}

fn font(colour: &Colour) -> TextStyle<'_> {
    // The backend divides the size by 1.24.
    TextStyle::from(("sans-serif", TEXT * 1.24).into_font()).color(colour)
}

/// Writes a line of text beside the point, centred vertically.
fn write(sheet: &Sheet<'_>, text: &str, at: (i32, i32), side: HPos, colour: Colour) -> Drawn {
    let style = font(&colour).pos(Pos::new(side, VPos::Center));
    sheet.draw_text(text, &style, at)
}

/// [`write`] on a white background, so that no line runs through the text.
fn write_on_white(sheet: &Sheet<'_>, text: &str, (x, y): (i32, i32), side: HPos) -> Drawn {
    let width = text_width(text, TEXT) as i32;
    let left = match side {
        HPos::Left => x,
        HPos::Center => x - width / 2,
        HPos::Right => x - width,
    };
    fill(sheet, (left, y - 7), (left + width, y + 7), WHITE)?;
    write(sheet, text, (x, y), side, INK)
}

fn fill(sheet: &Sheet<'_>, from: (i32, i32), to: (i32, i32), colour: Colour) -> Drawn {
    sheet.draw(&Rectangle::new([from, to], colour.filled()))
}

fn stroke(sheet: &Sheet<'_>, points: Vec<(i32, i32)>, colour: Colour, width: u32) -> Drawn {
    sheet.draw(&PathElement::new(points, colour.stroke_width(width)))
}

/// A dashed line, with dashes and gaps of `length` pixels.
fn dash(sheet: &Sheet<'_>, points: &[(i32, i32)], colour: Colour, length: i32) -> Drawn {
    let points = points.to_vec();
    let style = colour.stroke_width(2);
    sheet.draw(&DashedPathElement::new(points, length, length, style))
}

/// The width of text, no less than in DejaVu Sans, the widest of the usual plain fonts.
fn text_width(text: &str, size: f64) -> f64 {
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

/// The width of the widest text, in whole pixels.
fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> i32 {
    let widths = texts.map(|text| text_width(text, TEXT));
    widths.fold(0.0, f64::max).ceil() as i32
}

/// Text in lines that are no wider than `width`, if no word is, broken between words.
fn wrapped(text: &str, width: f64, width_of: impl Fn(&str) -> f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(&format!("{line} {word}")) <= width => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let count = |text: &str| text.chars().count() as f64;
        assert_eq!(wrapped("one two three", 7.0, count), ["one two", "three"]);
        assert!(wrapped("", 7.0, count).is_empty());
    }

    #[test]
    fn what_a_device_calls_itself_cannot_break_the_file() {
        let svg = picture("<GPU & \"co\">", &[], 10, |_, _| Ok(()));
        assert!(
            svg.contains("&lt;GPU &amp;") && !svg.contains("<GPU"),
            "{svg}"
        );
    }
}
