//! The marks of an axis, and the format of figures.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

/// An axis: its range, linear or logarithmic, and the marked values with their labels.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub range: (f64, f64),
    pub is_logarithmic: bool,
    pub marks: Vec<(f64, String)>,
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let at = |value: f64| match self.is_logarithmic {
            true => value.log2(),
            false => value,
        };
        let (first, last) = (at(self.range.0), at(self.range.1));
        let share = match first < last {
            true => (at(*value) - first) / (last - first),
            // There is only one value.
            false => 0.5,
        };
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.iter().map(|mark| mark.0).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.0..self.range.1
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        let mark = self.marks.iter().find(|mark| mark.0 == *value);
        mark.map_or_else(String::new, |mark| mark.1.clone())
    }
}

impl Scale {
    /// A scale with marks at round values.
    pub fn new(range: (f64, f64), is_logarithmic: bool) -> Scale {
        let scale = Scale {
            range,
            is_logarithmic,
            marks: Vec::new(),
        };
        let ticks = scale.ticks().into_iter();
        let marks = ticks.map(|tick| (tick, label(tick))).collect();
        Scale { marks, ..scale }
    }

    /// Round values in the range, five or so.
    fn ticks(&self) -> Vec<f64> {
        let (least, most) = self.range;
        // Over a narrow range the logarithm is almost linear.
        if !self.is_logarithmic || most < 5.0 * least {
            return round((least, most));
        }
        let decades = || least.log10().floor() as i32..=most.log10().ceil() as i32;
        let of = |factors: &[f64]| -> Vec<f64> {
            let all = decades().flat_map(|decade| factors.iter().map(move |by| power(*by, decade)));
            all.filter(|value| (least..=most).contains(value)).collect()
        };
        let fine = of(&[1.0, 2.0, 5.0]);
        match fine.len() <= 9 {
            true => fine,
            false => of(&[1.0]),
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn round((least, most): (f64, f64)) -> Vec<f64> {
    RangedCoordf64::from(least..most).key_points(7)
}

/// Negative powers divide, so that a tenth is exactly 0.1.
fn power(by: f64, decade: i32) -> f64 {
    match decade < 0 {
        true => by / 10f64.powi(-decade),
        false => by * 10f64.powi(decade),
    }
}

/// The end of an axis from zero with room for `most`: a multiple of a round step.
pub(super) fn rounded_up(most: f64) -> f64 {
    if !(most.is_finite() && most > 0.0) {
        return 1.0;
    }
    match round((0.0, most))[..] {
        [.., before, last] if last < most * (1.0 - 1e-9) => 2.0 * last - before,
        [.., last] => last.max(most),
        [] => most,
    }
}

/// A value on an axis, in as few digits as possible.
fn label(value: f64) -> String {
    // A multiple of a step of 0.2 may be 0.6000000000000001.
    let digits = match value.abs() >= 1e-6 {
        true => 9,
        false => 15,
    };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A figure, to three digits.
pub fn figure(value: f64) -> String {
    match value {
        99.95.. => format!("{value:.0}"),
        9.995.. => format!("{value:.1}"),
        0.095.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside_the_range() {
        let ticks = |range, is_logarithmic| Scale::new(range, is_logarithmic).ticks();
        let tens = [0.0, 10.0, 20.0, 30.0, 40.0, 50.0];
        assert_eq!(ticks((0.0, 57.4), false), tens);
        assert_eq!(rounded_up(57.4), 60.0);
        assert_eq!(label(ticks((0.0, 1.0), false)[3]), "0.6");
        for nothing in [0.0, f64::NAN, f64::INFINITY] {
            assert_eq!(rounded_up(nothing), 1.0);
        }
        let ratios = ["0.8", "0.9", "1", "1.1", "1.2", "1.3"];
        assert_eq!(
            ticks((0.79, 1.31), true)
                .into_iter()
                .map(label)
                .collect::<Vec<_>>(),
            ratios
        );
        assert_eq!(ticks((0.2, 6.0), true), [0.2, 0.5, 1.0, 2.0, 5.0]);
        assert_eq!(ticks((0.05, 3e3), true), [0.1, 1.0, 10.0, 100.0, 1000.0]);
    }
}
