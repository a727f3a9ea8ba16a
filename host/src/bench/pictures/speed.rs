//! Speed against size.

use super::{conditions, ladder, of_what, speed_of, unit};
use crate::bench::ladder::fastest;
use crate::bench::results::{Results, Size};
use crate::measure::cublas;
use crate::plot::{Axis, Line, Lines, Style, figure};
use crate::report::Record;
use crate::rung::AUTO;

/// Up to this many kernels each get a line.
const CHOSEN_LINES: usize = 8;
/// If there are more, only this many, the fastest, get a line.
const FASTEST_LINES: usize = 5;

/// Speed against size: a line for each kernel, or of many for the fastest, `auto` and cuBLAS. For
/// a single size it is the plot of the ladder.
pub fn speed(results: &Results) -> String {
    if results.sizes.len() < 2 {
        return ladder(results);
    }
    let sizes = &results.sizes;
    let are_cubes = sizes
        .iter()
        .all(|size| size.m > 0 && size.m == size.n && size.n == size.k);
    let place = |index: usize| match are_cubes {
        true => sizes[index].m as f64,
        false => index as f64,
    };
    let (kernels, note) = lines(results);
    let speeds = kernels.iter().flat_map(|line| line.2.iter().flatten());
    let (unit, y) = unit(speeds.copied().fold(0.0, f64::max));
    let line = |(name, style, speeds): &Speeds| {
        let measured = speeds.iter().enumerate();
        let measured: Vec<(usize, f64)> = measured
            .filter_map(|(index, speed)| Some((index, (*speed)? / unit)))
            .collect();
        let at = |&(index, speed): &(usize, f64)| (place(index), speed);
        let end = measured
            .iter()
            .max_by(|one, other| at(one).0.total_cmp(&at(other).0));
        // A line that ends before the others is labelled with its last size.
        let end = end.map_or_else(String::new, |&(index, speed)| {
            let is_last = (0..sizes.len()).all(|other| place(other) <= place(index));
            match is_last {
                true => format!(" {}", figure(speed)),
                false => format!(" {} (at {})", figure(speed), sizes[index].label()),
            }
        });
        Line {
            name: name.clone() + &end,
            style: *style,
            points: measured.iter().map(at).collect(),
            dotted: Vec::new(),
            // A line between unrelated shapes would mean nothing.
            is_joined: are_cubes,
        }
    };
    let mut marks: Vec<(f64, String)> = Vec::new();
    for (index, size) in sizes.iter().enumerate() {
        if marks.iter().all(|mark| mark.0 != place(index)) {
            let name = match are_cubes {
                true => size.label(),
                false => size.shape().to_string(),
            };
            marks.push((place(index), name));
        }
    }
    let picture = Lines {
        title: format!("Speed by size, {}", of_what(results)),
        notes: vec![note, conditions(results)],
        x: Axis {
            title: match are_cubes {
                true => "m = n = k (logarithmic)".to_string(),
                false => "shape (m x n x k)".to_string(),
            },
            is_logarithmic: are_cubes,
            marks,
        },
        y: Axis {
            title: y.to_string(),
            ..Axis::default()
        },
        lines: kernels.iter().map(line).collect(),
        guides: Vec::new(),
    };
    picture.draw()
}

/// A contender's name, its style, and its speed at each size.
pub(super) type Speeds = (String, Style, Vec<Option<f64>>);

/// The contenders that get a line, with their speed at each size, and a note on how they were
/// chosen. cuBLAS on tensor cores is not one of them: beside it, all others would look like one
/// line.
pub(super) fn lines(results: &Results) -> (Vec<Speeds>, String) {
    let kernels = results.kernels();
    let best = kernels.iter().filter_map(|name| {
        let of_sizes = results.sizes.iter().filter_map(|size| size.record(name));
        let timed = of_sizes.filter(|record| speed_of(record).is_some());
        let speed = |record: &&Record| speed_of(record).unwrap_or(0.0);
        timed.max_by(|one, other| speed(one).total_cmp(&speed(other)))
    });
    let mut chosen = fastest(best, CHOSEN_LINES);
    let (autos, mut ladder): (Vec<&Record>, Vec<&Record>) =
        chosen.drain(..).partition(|record| record.kernel == AUTO);
    let of_each = ladder.len();
    let mut note = "All kernels that were measured.".to_string();
    if of_each > CHOSEN_LINES {
        let speeds = ladder.iter().filter_map(|record| speed_of(record));
        let mut speeds: Vec<f64> = speeds.collect();
        speeds.sort_by(|one, other| other.total_cmp(one));
        let least = speeds[FASTEST_LINES - 1];
        ladder.retain(|record| speed_of(record) >= Some(least));
        note = format!(
            "The {} fastest of {of_each} kernels, each in its fastest variant. The plot of the ladder has them all.",
            ladder.len()
        );
    } else if of_each + autos.len() < kernels.len() {
        note = "Each kernel in its fastest variant.".to_string();
    }
    let speeds = |of: &dyn Fn(&Size) -> Option<f64>| results.sizes.iter().map(of).collect();
    let mut lines: Vec<Speeds> = Vec::new();
    if let Some(yardstick) = results.sizes.iter().find_map(Size::cublas) {
        // At each size the faster of the two.
        let name = cublas::title(&yardstick.kernel).replace("cublasLt", "cuBLAS");
        let of = |size: &Size| speed_of(size.cublas()?);
        lines.push((name, Style::YARDSTICK, speeds(&of)));
    }
    let styled = ladder.iter().enumerate();
    let styled = styled.map(|(index, record)| (record, Style::of(index)));
    for (record, style) in styled.chain(autos.iter().map(|record| (record, Style::AUTO))) {
        let of = |size: &Size| speed_of(size.record(&record.kernel)?);
        lines.push((record.kernel.clone(), style, speeds(&of)));
    }
    (lines, note)
}
