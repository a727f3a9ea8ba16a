//! A plot of speeds on tensor cores, cold and sustained, beside the faster of cuBLAS and cublasLt,
//! from what `rust-gemm bench --sustained` wrote to `results/`.

use host::bench::Size;
use host::bench::axes::{Scale, draw_x, round_ticks};
use host::bench::canvas::{Anchor, Area, Canvas, INK, MARGIN, Stroke, TEXT, WIDTH, text_width};
use host::bench::style::{KERNEL, SLOWER};

use crate::measured::{library, library_sustained, proven};
use crate::plots::legend;

/// What is shown at 4096 and 8192: its name, its file, the kernel, and the precision of the
/// libraries.
const SHOWN: [(&str, &str, &str, &str); 5] = [
    ("bf16", "results/h200-bf16.json", "auto", "bf16"),
    ("f16", "results/h200-f16.json", "auto", "f16"),
    (
        "tf32",
        "results/h200-tf32.json",
        "warp-specialized-tf32",
        "tf32",
    ),
    ("split f32", "results/h200-split.json", "split-fp32", "fp32"),
    (
        "f64",
        "results/h200-fp64.json",
        "warp-specialized-fp64",
        "fp64",
    ),
];
const SIZES: [usize; 2] = [4096, 8192];

/// The sky blue of Okabe and Ito.
const SUSTAINED: &str = "#56b4e9";

/// From a row to the next, and each of its two bars.
const ROW: f64 = 40.0;
const BAR: f64 = 15.0;

/// A row: the speeds in TFLOP/s, cold and sustained, each with the library's.
struct Row {
    name: String,
    speeds: [(f64, f64); 2],
}

impl Row {
    fn of(size: &Size, name: &str, kernel: &str, precision: &str) -> Option<Row> {
        let record = size.record(kernel)?;
        let sustained = record.sustained.as_ref()?.flops_per_s;
        let cold = (record.flops_per_s?, library(size, precision)?.flops_per_s);
        let sustained = (sustained, library_sustained(size, precision)?);
        let tera = |(own, library): (f64, f64)| (own / 1e12, library / 1e12);
        Some(Row {
            name: format!("{name}, {}", size.m),
            speeds: [cold, sustained].map(tera),
        })
    }
}

/// The plot.
///
/// # Errors
///
/// Something was not measured.
pub fn plot() -> Result<String, String> {
    let mut rows = Vec::new();
    for (name, file, kernel, precision) in SHOWN {
        let results = proven(file)?;
        for m in SIZES {
            let size = results.sizes.iter().find(|size| size.m == m);
            let row = size.and_then(|size| Row::of(size, name, kernel, precision));
            rows.push(row.ok_or_else(|| format!("{file}: {kernel} at {m} lacks a speed"))?);
        }
    }
    let title = "On tensor cores: cold, and at the power limit, NVIDIA H200";
    let notes = [
        "Short runs (above) and seconds of back-to-back launches (below). The line across a bar is the".to_string(),
        "faster of cuBLAS and cublasLt, of split f32 in fp32.".to_string(),
    ];
    let mut canvas = Canvas::new();
    let mut top = canvas.head(title, &notes) + 6.0;
    let colours = [(KERNEL, "cold"), (SUSTAINED, "sustained")];
    top = legend(&mut canvas, top, &colours);
    let widths = rows.iter().map(|row| text_width(&row.name, TEXT));
    let area = Area {
        left: MARGIN + widths.fold(0.0, f64::max) + 8.0,
        top,
        right: WIDTH - MARGIN - 60.0,
        bottom: top + ROW * rows.len() as f64 + 4.0,
    };
    let speeds = rows.iter().flat_map(|row| row.speeds);
    let most = speeds
        .map(|(own, library)| own.max(library))
        .fold(0.0, f64::max);
    let ticks = round_ticks(most);
    let last = ticks.last().copied().unwrap_or(most);
    let scale = Scale::linear((0.0, last), (area.left, area.right));
    let below = draw_x(&mut canvas, area, scale, &ticks, "TFLOP/s");
    for (index, row) in rows.iter().enumerate() {
        let middle = top + ROW * (index as f64 + 0.5) + 2.0;
        canvas.text(&row.name, (area.left - 8.0, middle), Anchor::End, INK);
        for ((own, library), (colour, shift)) in row
            .speeds
            .into_iter()
            .zip([(KERNEL, -0.5), (SUSTAINED, 0.5)])
        {
            let y = middle + shift * (BAR + 1.0);
            let bar = Area {
                left: area.left,
                right: scale.at(own),
                top: y - BAR / 2.0,
                bottom: y + BAR / 2.0,
            };
            canvas.bar(bar, colour);
            let (at, line) = (scale.at(library), Stroke::solid(SLOWER, 3.0));
            canvas.line((at, bar.top), (at, bar.bottom), line);
            let end = scale.at(own.max(library));
            let value = format!("{own:.0}");
            canvas.text(&value, (end + 6.0, y), Anchor::Start, INK);
        }
    }
    Ok(canvas.finish(title, below))
}
