//! Plots of a report, as SVG, drawn with what `rust-gemm bench` draws with.
//!
//! | file | shows |
//! | --- | --- |
//! | `mpi-times.svg` | time against the number of ranks, a line for each layout (the report's figure 15) |
//! | `mpi-split.svg` | where that time goes: a bar for each layout and number of ranks |
//! | `mpi-strong.svg` | speed-up against one rank, at one size |
//! | `mpi-predicted.svg` | what the model predicts, of `--predict` |
//!
//! A plot for which nothing was measured is not written.

use std::io::Write;
use std::path::Path;

use gpu_gemm::Shape;
use host::bench::axes::{Scale, draw_x, draw_y, figure, logarithmic_ticks, round_ticks};
use host::bench::canvas::{
    Anchor, Area, Canvas, Colour, INK, MARGIN, Point, SOFT, Stroke, TEXT, WIDTH, text_width,
};
use host::bench::labels::moved_apart;
use host::bench::style::Style;
use host::output::{Output, OutputError};
use host::report::{duration, speed};
use thiserror::Error;

use crate::clock::Times;
use crate::layout::summa::Summa;
use crate::layout::{Layout, layouts};
use crate::model::Machine;
use crate::predict::{Prediction, Question, RANKS};
use crate::record::{Record, Report};

const HEIGHT: f64 = 380.0;
/// From the edge of a plot to the label of a line, and the marker between.
const LEADER: f64 = 42.0;
const KEY: f64 = 30.0;
const LABEL_HEIGHT: f64 = TEXT * 1.35;
/// From a bar to the next, and the bar's part of it.
const ROW: f64 = 22.0;
const BAR: f64 = 15.0;

/// The phases, in the order of [`Times::to_array`], and their colours: those of Okabe and Ito.
const PHASES: [(&str, Colour); Times::COUNT] = [
    ("distribute", "#d55e00"),
    ("compute", "#0072b2"),
    ("wait", "#e69f00"),
    ("idle", "#999999"),
    ("collect", "#009e73"),
];

/// Why a plot is not written.
#[derive(Debug, Error)]
pub enum PlotError {
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("`{0}` cannot be written: {1}.")]
    Write(String, std::io::Error),
}

/// Writes the plots of a report that there is something to show in.
///
/// # Errors
///
/// A file cannot be written.
pub fn write(report: &Report, folder: &Path) -> Result<(), PlotError> {
    for (name, plot) in [
        ("mpi-times.svg", times(report)),
        ("mpi-split.svg", split(report)),
        ("mpi-strong.svg", strong(report)),
    ] {
        if let Some(plot) = plot {
            write_file(&folder.join(name), &plot)?;
        }
    }
    Ok(())
}

/// Writes the plot of what the model predicts.
///
/// # Errors
///
/// As [`write`].
pub fn write_prediction(question: &Question, folder: &Path) -> Result<(), PlotError> {
    write_file(&folder.join("mpi-predicted.svg"), &extrapolation(question))
}

fn write_file(path: &Path, plot: &str) -> Result<(), PlotError> {
    let mut output = Output::open(path)?;
    let written = output.write_all(plot.as_bytes());
    written.map_err(|error| PlotError::Write(path.display().to_string(), error))?;
    Ok(output.commit()?)
}

/// The timed records of the largest shape.
fn timed(report: &Report) -> Vec<&Record> {
    let is_timed = |record: &&Record| record.whole.median_s.is_some();
    let mut records: Vec<&Record> = report.records.iter().filter(is_timed).collect();
    let flops = |record: &&&Record| record.shape().flops();
    let larger = |one: &&&Record, other: &&&Record| flops(one).total_cmp(&flops(other));
    let largest = records.iter().max_by(larger).map(|record| record.shape());
    records.retain(|record| Some(record.shape()) == largest);
    records
}

/// One layout's points: numbers of ranks and values.
#[derive(Default)]
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
    /// Those for which memory does not suffice, which are only hinted at.
    beyond: Vec<(f64, f64)>,
}

/// Lines over the number of ranks.
struct Chart<'a> {
    title: &'a str,
    notes: &'a [String],
    lines: &'a [Line],
    unit: &'a str,
    /// A dashed line.
    ideal: Option<&'a dyn Fn(f64) -> f64>,
    /// Factors are as far everywhere, along both axes.
    logarithmic: bool,
}

/// A line for each layout, of what `value` says of each record.
fn lines(records: &[&Record], value: impl Fn(&Record) -> Option<f64>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for record in records {
        let Some(value) = value(record) else {
            continue;
        };
        let point = (record.ranks as f64, value);
        match lines.iter_mut().find(|line| line.name == record.layout) {
            Some(line) => line.points.push(point),
            None => lines.push(Line {
                name: record.layout.clone(),
                points: vec![point],
                ..Line::default()
            }),
        }
    }
    lines
}

/// What was multiplied, and how it was measured.
fn notes(report: &Report, record: &Record) -> Vec<String> {
    let Record { kernel, dtype, .. } = record;
    vec![format!(
        "{dtype} by {kernel}, {} on {}; medians of {} runs, from A and B on rank 0 to C there",
        report.mpi,
        report.device,
        report
            .records
            .iter()
            .map(|record| record.whole.times_s.len())
            .filter(|runs| *runs > 0)
            .min()
            .unwrap_or(0)
    )]
}

fn of_shape(record: &Record) -> String {
    let Record { m, n, k, .. } = record;
    format!("{m} x {n} x {k}")
}

/// What the model predicts from one rank to 65,536: a line for each layout, from A and B on rank 0
/// to C on rank 0, and one for SUMMA without these two ways.
fn extrapolation(question: &Question) -> String {
    let mut lines: Vec<Line> = Vec::new();
    for layout in layouts::<f32>() {
        lines.push(predicted(question, layout.name(), layout, |prediction| {
            prediction.time_s
        }));
    }
    lines.push(predicted(
        question,
        "summa, resident",
        &Summa,
        |prediction| prediction.resident_s,
    ));
    let Shape { m, n, k } = question.shape;
    let Machine {
        latency_s,
        bytes_per_s,
        flops_per_s,
        ..
    } = question.machine;
    let title = format!("Predicted time of {m} x {n} x {k}");
    let notes = [
        format!(
            "{}, panels of {}; a message takes {} and its bytes at {:.0} GB/s, a rank computes {} and has {:.0} GiB",
            question.data_type,
            question.panel,
            duration(latency_s),
            bytes_per_s / 1e9,
            speed(flops_per_s),
            question.memory_bytes / f64::from(1 << 30),
        ),
        "Dotted: a rank's parts do not fit into its memory. Resident: A and B are where they are needed, and C stays."
            .to_string(),
    ];
    draw(&Chart {
        title: &title,
        notes: &notes,
        lines: &lines,
        unit: "s",
        ideal: None,
        logarithmic: true,
    })
}

fn predicted(
    question: &Question,
    name: &str,
    layout: &dyn Layout,
    value: impl Fn(&Prediction) -> f64,
) -> Line {
    let mut line = Line {
        name: name.to_string(),
        ..Line::default()
    };
    for ranks in RANKS {
        let prediction = question.predict(layout, ranks);
        let needed = match ranks {
            1 => prediction.first_bytes,
            _ => prediction.other_bytes,
        };
        let point = (ranks as f64, value(&prediction));
        match needed <= question.memory_bytes {
            true => line.points.push(point),
            false => line.beyond.push(point),
        }
    }
    // What does not fit at few ranks may fit at more, and is joined to these.
    if let (Some(last), Some(first)) = (line.beyond.last(), line.points.first())
        && last.0 < first.0
    {
        line.beyond.push(*first);
    }
    line
}

fn times(report: &Report) -> Option<String> {
    let records = timed(report);
    let first = records.first()?;
    let title = format!("Time of {} against the number of ranks", of_shape(first));
    let slowest = records.iter().filter_map(|record| record.whole.median_s);
    let (unit, name) = match slowest.fold(0.0, f64::max) {
        1.0.. => (1.0, "s"),
        _ => (1e-3, "ms"),
    };
    let lines = lines(&records, |record| Some(record.whole.median_s? / unit));
    chart(&title, &notes(report, first), &lines, name, None)
}

/// Speed-up against one rank, if more were measured.
fn strong(report: &Report) -> Option<String> {
    let records = timed(report);
    let first = records.first()?;
    let lines = lines(&records, |record| record.whole.speedup);
    if lines.iter().all(|line| line.points.len() < 2) {
        return None;
    }
    let title = format!(
        "Strong scaling: speed-up of {} against one rank",
        of_shape(first)
    );
    let ideal = |ranks| ranks;
    chart(
        &title,
        &notes(report, first),
        &lines,
        "times as fast",
        Some(&ideal),
    )
}

/// `None` without a line.
fn chart(
    title: &str,
    notes: &[String],
    lines: &[Line],
    unit: &str,
    ideal: Option<&dyn Fn(f64) -> f64>,
) -> Option<String> {
    let chart = Chart {
        title,
        notes,
        lines,
        unit,
        ideal,
        logarithmic: false,
    };
    (!lines.is_empty()).then(|| draw(&chart))
}

/// Draws a chart, whose lines are named at their ends.
fn draw(chart: &Chart<'_>) -> String {
    let Chart {
        title,
        notes,
        lines,
        unit,
        ideal,
        logarithmic,
    } = *chart;
    let mut canvas = Canvas::new();
    let top = canvas.head(title, notes) + 30.0;
    let all = || {
        let points = |line: &'_ Line| -> Vec<(f64, f64)> {
            line.points.iter().chain(&line.beyond).copied().collect()
        };
        lines.iter().flat_map(points)
    };
    let mut ranks: Vec<f64> = all().map(|point| point.0).collect();
    ranks.sort_by(f64::total_cmp);
    ranks.dedup();
    let (fewest, most) = (ranks[0], ranks[ranks.len() - 1]);
    let ideals = ideal.map_or(0.0, |ideal| ideal(most));
    let highest = all().map(|point| point.1).fold(ideals, f64::max);
    let lowest = all().map(|point| point.1).fold(highest, f64::min);
    let ticks = match logarithmic {
        true => logarithmic_ticks((lowest / 2.0, highest * 2.0)),
        false => round_ticks(highest),
    };
    let names = lines.iter().map(|line| text_width(&line.name, TEXT));
    let area = Area {
        left: MARGIN + 50.0,
        top,
        right: WIDTH - MARGIN - names.fold(0.0, f64::max) - LEADER - 4.0,
        bottom: top + HEIGHT,
    };
    let (pixels, inner) = (
        (area.bottom, area.top),
        (area.left + 12.0, area.right - 12.0),
    );
    let (vertical, horizontal) = match logarithmic {
        true => (
            Scale::logarithmic((lowest / 2.0, highest * 2.0), pixels),
            Scale::logarithmic((fewest, most), inner),
        ),
        false => (
            Scale::linear((0.0, ticks[ticks.len() - 1]), pixels),
            Scale::linear((fewest, most), inner),
        ),
    };
    draw_y(&mut canvas, area, vertical, &ticks, unit);
    let below = draw_x(&mut canvas, area, horizontal, &ranks, "ranks");
    let at = |&(ranks, value): &(f64, f64)| (horizontal.at(ranks), vertical.at(value));
    if let Some(ideal) = ideal {
        let ends = [fewest, most].map(|ranks| at(&(ranks, ideal(ranks))));
        canvas.line(ends[0], ends[1], Stroke::dashed(SOFT, 1.0, "6 4"));
    }
    let mut ends: Vec<Point> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let style = Style::of(index);
        let points: Vec<Point> = line.points.iter().map(at).collect();
        let beyond: Vec<Point> = line.beyond.iter().map(at).collect();
        canvas.path(&beyond, Stroke::dashed(style.line.colour, 1.5, "1 4"));
        canvas.path(&points, style.line);
        points
            .iter()
            .for_each(|point| style.mark(&mut canvas, *point));
        let rightmost = |one: &&Point, other: &&Point| one.0.total_cmp(&other.0);
        ends.extend(points.iter().chain(&beyond).max_by(rightmost));
    }
    let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
    let middles = moved_apart(&wanted, LABEL_HEIGHT, (area.top - 10.0, area.bottom));
    for (index, (end, y)) in ends.into_iter().zip(middles).enumerate() {
        let style = Style::of(index);
        let key = (area.right + KEY, y);
        let stroke = Stroke::dashed(style.line.colour, 1.0, "1 2");
        canvas.line((end.0 + 6.0, end.1), (key.0 - 6.0, y), stroke);
        style.mark(&mut canvas, key);
        canvas.text(
            &lines[index].name,
            (area.right + LEADER, y),
            Anchor::Start,
            INK,
        );
    }
    canvas.finish(title, below)
}

/// A bar for each layout and number of ranks: the phases of the slowest rank in each, one after
/// the other.
fn split(report: &Report) -> Option<String> {
    let records = timed(report);
    let first = records.first()?;
    let title = format!("Where the time of {} goes", of_shape(first));
    let mut notes = notes(report, first);
    notes.push(
        "Of the rank that works longest, without what it is idle; at the end, the time of the whole."
            .to_string(),
    );
    let mut canvas = Canvas::new();
    let top = canvas.head(&title, &notes) + 6.0;
    let names: Vec<String> = records
        .iter()
        .map(|record| format!("{}, {}", record.layout, record.ranks))
        .collect();
    let shown = |record: &Record| {
        let busy = record.per_rank.iter().map(|rank| Times {
            idle_s: 0.0,
            ..rank.times
        });
        let longest = busy.max_by(|one, other| one.total().total_cmp(&other.total()));
        longest.unwrap_or_default()
    };
    let whole = |record: &Record| record.whole.median_s.unwrap_or_default();
    let longest = records
        .iter()
        .map(|record| shown(record).total().max(whole(record)))
        .fold(0.0, f64::max);
    let (unit, unit_name) = match longest {
        1.0.. => (1.0, "s"),
        _ => (1e-3, "ms"),
    };
    let widths = names.iter().map(|name| text_width(name, TEXT));
    let area = Area {
        left: MARGIN + widths.fold(0.0, f64::max) + 8.0,
        top: top + LABEL_HEIGHT,
        right: WIDTH - MARGIN - 60.0,
        bottom: top + LABEL_HEIGHT + ROW * records.len() as f64 + 6.0,
    };
    let mut x = area.left;
    for (name, colour) in PHASES.into_iter().filter(|(name, _)| *name != "idle") {
        canvas.bar(Area::around((x + 6.0, top), 12.0, 12.0), colour);
        canvas.text(name, (x + 18.0, top), Anchor::Start, INK);
        x += 36.0 + text_width(name, TEXT);
    }
    let ticks = round_ticks(longest / unit);
    let scale = Scale::linear((0.0, ticks[ticks.len() - 1]), (area.left, area.right));
    let below = draw_x(&mut canvas, area, scale, &ticks, unit_name);
    for (index, (record, name)) in records.iter().zip(&names).enumerate() {
        let y = area.top + ROW * (index as f64 + 0.5) + 3.0;
        canvas.text(name, (area.left - 8.0, y), Anchor::End, INK);
        let mut end = 0.0;
        for (seconds, (_, colour)) in shown(record).to_array().into_iter().zip(PHASES) {
            let start = end;
            end += seconds / unit;
            let bar = Area {
                left: scale.at(start),
                right: scale.at(end),
                top: y - BAR / 2.0,
                bottom: y + BAR / 2.0,
            };
            canvas.bar(bar, colour);
        }
        let whole = figure(whole(record) / unit);
        canvas.text(&whole, (scale.at(end) + 6.0, y), Anchor::Start, INK);
    }
    Some(canvas.finish(&title, below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::plain;
    use crate::record::Timing;

    #[test]
    fn plots_show_the_largest_shape_and_speed_ups_only_where_there_are_some() {
        let record = |layout: &str, ranks: usize, size, speedup| Record {
            layout: layout.to_string(),
            ranks,
            m: size,
            n: size,
            k: size,
            whole: Timing {
                median_s: Some(1.0 / ranks as f64),
                speedup,
                ..Timing::default()
            },
            ..Record::default()
        };
        let report = |speedup: fn(usize) -> Option<f64>| Report {
            records: [("summa", 100), ("summa", 50), ("scatter-rows", 100)]
                .into_iter()
                .flat_map(|(layout, size)| {
                    [1, 2, 4].map(|ranks| record(layout, ranks, size, speedup(ranks)))
                })
                .collect(),
            ..Report::default()
        };
        let compared = report(|ranks| Some(ranks as f64));
        assert_eq!(timed(&compared).len(), 6);
        for (plot, parts) in [
            (times(&compared), ["Time of 100 x 100 x 100", "summa"]),
            (split(&compared), ["scatter-rows, 4", "collect"]),
            (strong(&compared), ["Strong scaling", "times as fast"]),
        ] {
            let plot = plot.unwrap();
            assert!(parts.iter().all(|part| plot.contains(part)), "{plot}");
            assert!(!plot.contains("NaN"), "{plot}");
        }
        assert!(strong(&report(|_| None)).is_none());
        assert!(times(&Report::default()).is_none());
    }

    #[test]
    fn the_extrapolation_hints_at_what_does_not_fit() {
        let question = |memory_bytes| Question {
            shape: Shape::cube(1 << 12),
            data_type: gpu_gemm::DataType::F32,
            panel: 256,
            machine: plain(),
            memory_bytes,
        };
        let marks = |plot: &str| plot.matches("<polygon").count();
        // On one rank, and of layouts that hold all of B on any.
        let (all, some) = (
            extrapolation(&question(1e12)),
            extrapolation(&question(6e7)),
        );
        assert!(marks(&all) > marks(&some) && marks(&some) > 6);
        assert!(some.contains("summa, resident") && !some.contains("NaN"));
    }
}
