//! How plots tell kernels apart: by colour, and for readers who cannot see it, also by marker
//! and dash.

use plotters::element::Polygon;
use plotters::style::{Color, RGBColor};

/// Okabe and Ito's colours, less the yellow that is invisible on white: distinct with every
/// common colour vision.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
];

/// The marker drawn at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Disc,
    Square,
    Triangle,
    Diamond,
    Cross,
}

impl Marker {
    /// Its outline in pixels around the point.
    fn corners(self) -> Vec<(i32, i32)> {
        match self {
            Marker::Disc => vec![
                (-2, -5),
                (2, -5),
                (5, -2),
                (5, 2),
                (2, 5),
                (-2, 5),
                (-5, 2),
                (-5, -2),
            ],
            Marker::Square => vec![(-4, -4), (4, -4), (4, 4), (-4, 4)],
            Marker::Triangle => vec![(0, -6), (6, 5), (-6, 5)],
            Marker::Diamond => vec![(0, -7), (6, 0), (0, 7), (-6, 0)],
            Marker::Cross => vec![
                (-2, -6),
                (2, -6),
                (2, -2),
                (6, -2),
                (6, 2),
                (2, 2),
                (2, 6),
                (-2, 6),
                (-2, 2),
                (-6, 2),
                (-6, -2),
                (-2, -2),
            ],
        }
    }
}

const MARKERS: [Marker; 5] = [
    Marker::Disc,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Cross,
];

/// How one contender is drawn: no two of the first 35 alike, neighbours in both colour and marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Style {
    pub colour: RGBColor,
    marker: Marker,
    /// Length and gap of a line's dashes in pixels, or a solid line.
    pub dashes: Option<(i32, i32)>,
}

impl Style {
    /// The style of the contender with this number.
    pub fn of(index: usize) -> Style {
        Style {
            colour: COLOURS[index % COLOURS.len()],
            marker: MARKERS[index % MARKERS.len()],
            dashes: [None, Some((12, 6)), Some((4, 6))][index / COLOURS.len() % 3],
        }
    }

    /// The yardstick's style: grey and dashed, with no marker of a kernel's colour.
    pub fn yardstick(index: usize) -> Style {
        Style {
            colour: RGBColor(150, 150, 150),
            marker: MARKERS[index % MARKERS.len()],
            dashes: Some((20, 8)),
        }
    }

    /// The marker, to be added to an `EmptyElement` where it belongs.
    pub fn marker(&self) -> Polygon<(i32, i32)> {
        Polygon::new(self.marker.corners(), self.colour.filled())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_contenders_look_alike() {
        let styles: Vec<Style> = (0..35).map(Style::of).collect();
        for (index, style) in styles.iter().enumerate() {
            assert!(!styles[..index].contains(style), "{index}");
        }
        for pair in styles.windows(2) {
            assert!(pair[0].colour != pair[1].colour && pair[0].marker != pair[1].marker);
        }
    }
}
