//! Plots of a report, as SVG, drawn with what `rust-gemm bench` draws with.
//!
//! | file | shows |
//! | --- | --- |
//! | `mpi-split.svg` | where that time goes: a bar for each layout and number of ranks |
//! | `mpi-strong.svg` | speed-up against one rank, at one size |
//! | `mpi-predicted.svg` | what the model predicts, of `--predict` |
//!
//! A plot for which nothing was measured is not written.

use std::io::Write;
use std::path::Path;

use host::output::{Output, OutputError};
use host::plot::{
    Axis, BLUE, Bar, Bars, Colour, GREEN, GREY, Guide, Line, Lines, ORANGE, RED, Row, Style, figure,
};
use host::report::{duration, speed};

use crate::clock::Times;
use crate::layout::summa::Summa;
use crate::layout::{Layout, layouts};
use crate::model::Machine;
use crate::predict::{Prediction, Question, RANKS};
use crate::record::{Record, Report};

/// The phases, in the order of [`Times::to_array`], and their colours.
const PHASES: [(&str, Colour); Times::COUNT] = [
    ("distribute", RED),
    ("compute", BLUE),
    ("wait", ORANGE),
    ("idle", GREY),
    ("collect", GREEN),
];

/// Writes the plots of a report that there is something to show in.
///
/// # Errors
///
/// A file cannot be written.
pub fn write(report: &Report, folder: &Path) -> Result<(), OutputError> {
    for (name, plot) in [
        ("mpi-split.svg", split(report)),
        ("mpi-strong.svg", strong(report)),
    ] {
        write_file(&folder.join(name), plot)?;
    }
    Ok(())
}

/// Writes the plot of what the model predicts.
///
/// # Errors
///
/// As [`write()`].
pub fn write_prediction(question: &Question, folder: &Path) -> Result<(), OutputError> {
    write_file(&folder.join("mpi-predicted.svg"), extrapolation(question))
}

fn write_file(path: &Path, plot: Option<String>) -> Result<(), OutputError> {
    match plot {
        Some(plot) => Output::open(path)?.finish(|out| out.write_all(plot.as_bytes())),
        None => Ok(()),
    }
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

/// A line over the number of ranks.
fn line(index: usize, name: &str) -> Line {
    Line {
        name: name.to_string(),
        style: Style::of(index),
        points: Vec::new(),
        dotted: Vec::new(),
        is_joined: true,
    }
}

/// A line for each layout, of what `value` says of each record.
fn lines(records: &[&Record], value: impl Fn(&Record) -> Option<f64>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for record in records {
        let Some(value) = value(record) else {
            continue;
        };
        let index = lines.iter().position(|line| line.name == record.layout);
        let index = index.unwrap_or_else(|| {
            lines.push(line(lines.len(), &record.layout));
            lines.len() - 1
        });
        lines[index].points.push((record.ranks as f64, value));
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

/// What the model predicts from one rank to 65,536: a line for each layout, from A and B on rank 0
/// to C on rank 0, and one for SUMMA without these two ways.
fn extrapolation(question: &Question) -> Option<String> {
    let mut lines: Vec<Line> = Vec::new();
    for layout in layouts::<f32>() {
        let mut line = line(lines.len(), layout.name());
        predicted(question, &mut line, layout, |prediction| prediction.time_s);
        lines.push(line);
    }
    let mut resident = line(lines.len(), "summa, resident");
    predicted(question, &mut resident, &Summa, |prediction| {
        prediction.resident_s
    });
    lines.push(resident);
    let Machine {
        latency_s,
        bytes_per_s,
        flops_per_s,
        ..
    } = question.machine;
    let title = format!("Predicted time of {}", question.shape);
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
    draw(title, notes.to_vec(), lines, "s (logarithmic)", true)
}

fn predicted(
    question: &Question,
    line: &mut Line,
    layout: &dyn Layout,
    value: impl Fn(&Prediction) -> f64,
) {
    for ranks in RANKS {
        let prediction = question.predict(layout, ranks);
        let needed = match ranks {
            1 => prediction.first_bytes,
            _ => prediction.other_bytes,
        };
        let point = (ranks as f64, value(&prediction));
        match needed <= question.memory_bytes {
            true => line.points.push(point),
            false => line.dotted.push(point),
        }
    }
    // What does not fit at few ranks may fit at more, and is joined to these.
    if let (Some(last), Some(first)) = (line.dotted.last(), line.points.first())
        && last.0 < first.0
    {
        line.dotted.push(*first);
    }
}

/// The unit of times up to this one.
fn unit(longest: f64) -> (f64, &'static str) {
    match longest {
        1.0.. => (1.0, "s"),
        _ => (1e-3, "ms"),
    }
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
        first.shape()
    );
    draw(title, notes(report, first), lines, "times as fast", false)
}

/// Draws lines over the numbers of ranks, and beside speed-ups, which are not logarithmic, a dashed
/// one where twice the ranks are twice as fast; `None` without lines.
fn draw(
    title: String,
    notes: Vec<String>,
    lines: Vec<Line>,
    unit: &str,
    is_logarithmic: bool,
) -> Option<String> {
    let points = lines
        .iter()
        .flat_map(|line| line.points.iter().chain(&line.dotted));
    let mut ranks: Vec<f64> = points.map(|point| point.0).collect();
    ranks.sort_by(f64::total_cmp);
    ranks.dedup();
    let ideal = (!is_logarithmic).then(|| Guide {
        points: ranks.iter().map(|&ranks| (ranks, ranks)).collect(),
        name: String::new(),
        is_dashed: true,
    });
    let picture = Lines {
        title,
        notes,
        lines,
        guides: ideal.into_iter().collect(),
        x: Axis {
            title: "ranks".to_string(),
            is_logarithmic,
            marks: ranks
                .into_iter()
                .map(|ranks| (ranks, ranks.to_string()))
                .collect(),
        },
        y: Axis {
            title: unit.to_string(),
            is_logarithmic,
            marks: Vec::new(),
        },
    };
    (!picture.lines.is_empty()).then(|| picture.draw())
}

/// A bar for each layout and number of ranks: the phases of the slowest rank in each, one after
/// the other.
fn split(report: &Report) -> Option<String> {
    let records = timed(report);
    let first = records.first()?;
    let title = format!("Where the time of {} goes", first.shape());
    let mut notes = notes(report, first);
    notes.push(
        "Of the rank that works longest, without what it is idle; at the end, the time of the whole."
            .to_string(),
    );
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
    let (unit, unit_name) = unit(longest);
    let row = |record: &&Record| {
        let parts = shown(record).to_array().into_iter().zip(PHASES);
        let parts = parts.map(|(seconds, (_, colour))| (seconds / unit, colour, String::new()));
        Row {
            name: format!("{}, {}", record.layout, record.ranks),
            bars: vec![Bar {
                parts: parts.collect(),
                value: figure(whole(record) / unit),
                mark: None,
            }],
        }
    };
    let legend = PHASES.into_iter().filter(|(name, _)| *name != "idle");
    let picture = Bars {
        title,
        notes,
        legend: legend.map(|(name, colour)| (colour, name)).collect(),
        axis: unit_name.to_string(),
        rows: records.iter().map(row).collect(),
        ..Bars::default()
    };
    Some(picture.draw())
}

#[cfg(test)]
mod tests {
    use std::fs;

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
            (
                split(&compared),
                ["time of 100 x 100 x 100", "scatter-rows, 4"],
            ),
            (strong(&compared), ["Strong scaling", "times as fast"]),
        ] {
            let plot = plot.unwrap();
            assert!(parts.iter().all(|part| plot.contains(part)), "{plot}");
            assert!(!plot.contains("NaN"), "{plot}");
        }
        assert!(strong(&report(|_| None)).is_none());
        assert!(split(&Report::default()).is_none());
    }

    /// The book shows what `results/measure.sh cpu` measured. A plot that is not there is drawn.
    #[test]
    fn the_books_plots_are_of_the_committed_results() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let results = fs::read_to_string(root.join("results/mpi-2-cores.json")).unwrap();
        let report: Report = serde_json::from_str(&results).unwrap();
        let folder = root.join("docs/src/pictures");
        for (name, plot) in [
            ("mpi-split.svg", split(&report)),
            ("mpi-strong.svg", strong(&report)),
        ] {
            let path = folder.join(name);
            if !path.exists() {
                write_file(&path, plot.clone()).unwrap();
            }
            let is_current = fs::read_to_string(&path).ok() == plot;
            assert!(
                is_current,
                "delete {name}, and run this test again: it draws it"
            );
        }
    }

    #[test]
    fn the_extrapolation_hints_at_what_does_not_fit() {
        let question = |memory_bytes| Question {
            shape: gpu_gemm::Shape::cube(1 << 12),
            data_type: gpu_gemm::DataType::F32,
            panel: 256,
            machine: plain(),
            memory_bytes,
        };
        let marks = |plot: &str| plot.matches("<polygon").count();
        // On one rank, and of layouts that hold all of B on any.
        let (all, some) = (
            extrapolation(&question(1e12)).unwrap(),
            extrapolation(&question(6e7)).unwrap(),
        );
        assert!(marks(&all) > marks(&some) && marks(&some) > 6);
        assert!(some.contains("summa, resident") && !some.contains("NaN"));
    }
}
