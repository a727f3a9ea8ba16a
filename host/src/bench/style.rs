//! How plots tell kernels apart: by colour, and for readers who cannot see it, also by marker
//! and dash.

use super::canvas::{Canvas, Colour, INK, Point, Stroke};

/// Okabe and Ito's colours, less the yellow that is invisible on white: distinct with every
/// common colour vision. Black and grey are `auto`'s and cuBLAS's.
const COLOURS: [Colour; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];

/// Of bars: those of kernels, of `auto` and of cuBLAS; and those slower than cuBLAS. The first
/// and the last differ in brightness, too.
pub const KERNEL: Colour = "#0072b2";
pub const CHOSEN: Colour = INK;
pub const YARDSTICK: Colour = "#999999";
pub const SLOWER: Colour = "#e69f00";

/// The line of cuBLAS, also where it only crosses bars.
pub const YARDSTICK_LINE: Stroke = Stroke::dashed("#777777", 1.5, "6 4");

/// The marker drawn at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Disc,
    Square,
    Triangle,
    Diamond,
    Cross,
    Star,
    Dash,
}

impl Marker {
    /// Its outline in pixels around the point.
    fn corners(self) -> Vec<Point> {
        match self {
            Marker::Disc => vec![
                (-2.0, -5.0),
                (2.0, -5.0),
                (5.0, -2.0),
                (5.0, 2.0),
                (2.0, 5.0),
                (-2.0, 5.0),
                (-5.0, 2.0),
                (-5.0, -2.0),
            ],
            Marker::Square => vec![(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
            Marker::Triangle => vec![(0.0, -6.0), (6.0, 5.0), (-6.0, 5.0)],
            Marker::Diamond => vec![(0.0, -7.0), (6.0, 0.0), (0.0, 7.0), (-6.0, 0.0)],
            Marker::Star => {
                let corners = (0..10).map(|corner| {
                    let radius = [7.5, 3.2][corner % 2];
                    let angle = std::f64::consts::PI * (corner as f64 / 5.0 - 0.5);
                    (radius * angle.cos(), radius * angle.sin())
                });
                corners.collect()
            }
            Marker::Dash => vec![(-7.0, -2.5), (7.0, -2.5), (7.0, 2.5), (-7.0, 2.5)],
            Marker::Cross => vec![
                (-2.0, -6.0),
                (2.0, -6.0),
                (2.0, -2.0),
                (6.0, -2.0),
                (6.0, 2.0),
                (2.0, 2.0),
                (2.0, 6.0),
                (-2.0, 6.0),
                (-2.0, 2.0),
                (-6.0, 2.0),
                (-6.0, -2.0),
                (-2.0, -2.0),
            ],
        }
    }
}

/// Those of kernels.
const MARKERS: [Marker; 5] = [
    Marker::Disc,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Cross,
];

/// How one contender is drawn: no two of the first 12 alike, neighbours in both colour and marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    marker: Marker,
    pub line: Stroke,
}

impl Style {
    /// The style of the kernel with this number.
    pub fn of(index: usize) -> Style {
        let colour = COLOURS[index % COLOURS.len()];
        Style {
            marker: MARKERS[index % MARKERS.len()],
            line: match index / COLOURS.len() {
                0 => Stroke::solid(colour, 2.0),
                _ => Stroke::dashed(colour, 2.0, "3 3"),
            },
        }
    }

    /// The style of `auto`, with a marker that no kernel has.
    pub const AUTO: Style = Style {
        marker: Marker::Star,
        line: Stroke::solid(CHOSEN, 2.5),
    };

    /// The style of cuBLAS, with a marker that no kernel has.
    pub const YARDSTICK: Style = Style {
        marker: Marker::Dash,
        line: YARDSTICK_LINE,
    };

    /// Draws the marker at a point.
    pub fn mark(&self, canvas: &mut Canvas, at: Point) {
        canvas.marker(&self.marker.corners(), at, self.line.colour);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_contenders_look_alike() {
        let mut styles: Vec<Style> = (0..12).map(Style::of).collect();
        styles.extend([Style::AUTO, Style::YARDSTICK]);
        for (index, style) in styles.iter().enumerate() {
            assert!(!styles[..index].contains(style), "{index}");
        }
        for pair in styles.windows(2) {
            assert!(pair[0].line.colour != pair[1].line.colour && pair[0].marker != pair[1].marker);
        }
    }

    #[test]
    fn without_colours_neither_auto_nor_cublas_looks_like_a_kernel() {
        let [auto, cublas] = [Style::AUTO, Style::YARDSTICK].map(|style| style.marker);
        assert_ne!(auto, cublas);
        assert!(!MARKERS.contains(&auto) && !MARKERS.contains(&cublas));
    }
}
