//! Where values stand along an axis, which of them it marks, and the marks that there is room for.

use super::canvas::{Anchor, Area, Canvas, FAINT, INK, SOFT, Stroke, TEXT, text_width};

/// Values to pixels.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    values: (f64, f64),
    pixels: (f64, f64),
    logarithmic: bool,
}

impl Scale {
    pub fn linear(values: (f64, f64), pixels: (f64, f64)) -> Scale {
        Scale {
            values,
            pixels,
            logarithmic: false,
        }
    }

    /// A factor is as far everywhere. The values are above zero.
    pub fn logarithmic(values: (f64, f64), pixels: (f64, f64)) -> Scale {
        Scale {
            values: (values.0.log2(), values.1.log2()),
            pixels,
            logarithmic: true,
        }
    }

    pub fn at(&self, value: f64) -> f64 {
        let value = match self.logarithmic {
            true => value.log2(),
            false => value,
        };
        let share = match self.values.1 > self.values.0 {
            true => (value - self.values.0) / (self.values.1 - self.values.0),
            // There is but one value.
            false => 0.5,
        };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }
}

/// Round values from zero to at least `most`: about five.
pub fn round_ticks(most: f64) -> Vec<f64> {
    let most = match most.is_finite() && most > 0.0 {
        true => most,
        false => 1.0,
    };
    let magnitude = 10f64.powf((most / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * magnitude)
        .into_iter()
        .find(|step| most / step <= 6.0)
        .unwrap_or(10.0 * magnitude);
    let last = (most / step).ceil() as usize;
    (0..=last).map(|index| index as f64 * step).collect()
}

/// Round values within `range` for a logarithmic axis: 1, 2 and 5 of each power of ten, or the
/// powers alone if those are many.
pub fn logarithmic_ticks((least, most): (f64, f64)) -> Vec<f64> {
    let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let of = |factors: &[f64]| {
        let values = decades.clone().flat_map(|decade| {
            let of_decade = factors
                .iter()
                .map(move |factor| power_of_ten(*factor, decade));
            of_decade.collect::<Vec<f64>>()
        });
        values
            .filter(|value| (least..=most).contains(value))
            .collect::<Vec<f64>>()
    };
    let fine = of(&[1.0, 2.0, 5.0]);
    match fine.len() <= 9 {
        true => fine,
        false => of(&[1.0]),
    }
}

/// Divided below one, so that a tenth is written as 0.1.
fn power_of_ten(factor: f64, decade: i32) -> f64 {
    match decade < 0 {
        true => factor / 10f64.powi(-decade),
        false => factor * 10f64.powi(decade),
    }
}

/// A value on an axis: as few digits as tell it.
pub fn tick_label(value: f64) -> String {
    // A multiple of a step of 0.2 may be 0.6000000000000001.
    let digits = match value.abs() >= 1e-6 {
        true => 9,
        false => 15,
    };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Three digits of a figure.
pub fn figure(value: f64) -> String {
    match value {
        99.95.. => format!("{value:.0}"),
        9.995.. => format!("{value:.1}"),
        0.095.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A line at each value across `area`, with the value below; `title` is below them all. Returns
/// where the space below begins.
pub fn draw_x(canvas: &mut Canvas, area: Area, scale: Scale, values: &[f64], title: &str) -> f64 {
    let y = area.bottom + 14.0;
    for &value in values {
        let x = scale.at(value);
        canvas.line((x, area.top), (x, area.bottom), Stroke::solid(FAINT, 1.0));
        canvas.text(&tick_label(value), (x, y), Anchor::Middle, INK);
    }
    let middle = (area.left + area.right) / 2.0;
    canvas.text(title, (middle, y + 22.0), Anchor::Middle, SOFT);
    y + 38.0
}

/// A line at each value across `area`, with the value at the left; `title` is above them.
pub fn draw_y(canvas: &mut Canvas, area: Area, scale: Scale, values: &[f64], title: &str) {
    for &value in values {
        let y = scale.at(value);
        canvas.line((area.left, y), (area.right, y), Stroke::solid(FAINT, 1.0));
        canvas.text(&tick_label(value), (area.left - 8.0, y), Anchor::End, INK);
    }
    canvas.text(title, (16.0, area.top - 16.0), Anchor::Start, SOFT);
}

/// The values, or the first of `coarser` ones, whose labels have room beside each other.
pub fn fitting(scale: Scale, candidates: &[Vec<f64>]) -> Vec<f64> {
    let fits = |values: &&Vec<f64>| {
        values.windows(2).all(|pair| {
            let widths = [pair[0], pair[1]].map(|value| text_width(&tick_label(value), TEXT));
            let room = (widths[0] + widths[1]) / 2.0 + 8.0;
            (scale.at(pair[1]) - scale.at(pair[0])).abs() >= room
        })
    };
    candidates.iter().find(fits).cloned().unwrap_or_default()
}

/// Marks along the x axis with names of their own, and the room that the names take.
pub struct Names<'a> {
    marks: &'a [(f64, String)],
    upright: bool,
}

impl<'a> Names<'a> {
    /// Names for the marks, at their pixels: upright if they have no room beside each other.
    pub fn of(marks: &'a [(f64, String)]) -> Names<'a> {
        let kept = kept(marks, |name| text_width(name, TEXT) + 12.0);
        Names {
            marks,
            upright: kept.len() < marks.len(),
        }
    }

    /// The space below the axis that they need.
    pub fn height(&self) -> f64 {
        let widths = self.marks.iter().map(|(_, name)| text_width(name, TEXT));
        match self.upright {
            true => widths.fold(0.0, f64::max) + 8.0,
            false => TEXT + 10.0,
        }
    }

    /// Ticks at all of the marks, and the names of as many as there is room for.
    pub fn draw(&self, canvas: &mut Canvas, y: f64) {
        for (x, _) in self.marks {
            canvas.line((*x, y), (*x, y + 5.0), Stroke::solid(INK, 1.0));
        }
        for (x, name) in kept(self.marks, |name| match self.upright {
            true => TEXT * 1.3,
            false => text_width(name, TEXT) + 12.0,
        }) {
            match self.upright {
                true => canvas.upright(name, (*x, y + 8.0), Anchor::End),
                false => canvas.text(name, (*x, y + 15.0), Anchor::Middle, INK),
            }
        }
    }
}

/// The marks whose names have room, from the last on, which is the largest.
fn kept(marks: &[(f64, String)], room: impl Fn(&str) -> f64) -> Vec<&(f64, String)> {
    let mut sorted: Vec<&(f64, String)> = marks.iter().collect();
    sorted.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut kept: Vec<&(f64, String)> = Vec::new();
    for mark in sorted {
        let is_clear = kept.last().is_none_or(|last| {
            let needed = (room(&last.1) + room(&mark.1)) / 2.0;
            last.0 - mark.0 >= needed
        });
        if is_clear {
            kept.push(mark);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        assert_eq!(round_ticks(57.4), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!(
            round_ticks(1.0),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(tick_label(0.6000000000000001), "0.6");
        for nothing in [0.0, f64::NAN, f64::INFINITY] {
            assert_eq!(round_ticks(nothing), round_ticks(1.0));
        }
        assert_eq!(logarithmic_ticks((0.2, 6.0)), [0.2, 0.5, 1.0, 2.0, 5.0]);
        assert_eq!(
            logarithmic_ticks((0.05, 3e3)),
            [0.1, 1.0, 10.0, 100.0, 1000.0]
        );
    }

    #[test]
    fn a_single_value_stands_in_the_middle() {
        assert_eq!(Scale::linear((3.0, 3.0), (0.0, 10.0)).at(3.0), 5.0);
        assert_eq!(Scale::logarithmic((1.0, 4.0), (0.0, 10.0)).at(2.0), 5.0);
    }
}
