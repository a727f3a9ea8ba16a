//! The plots of the book and the README, drawn from the results: `docs/src/pictures/NAME.svg`.

use host::bench::axes::{Scale, draw_x};
use host::bench::canvas::{Anchor, Area, Canvas, INK, MARGIN, Stroke, TEXT, WIDTH, text_width};
use host::bench::style::{KERNEL, SLOWER};
use host::bench::{Results, bars, plots};
use host::rung::AUTO;

use crate::figures::MAIN_SIZE;
use crate::machine_code;
use crate::measured::{h200, h200_shapes};
use crate::overviews::climbing;
use crate::regimes;

/// Draws a plot from the results.
type Draw = fn() -> Result<String, String>;

/// The plots, by the names of their files.
pub const ALL: [(&str, Draw); 6] = [
    ("ladder", ladder),
    ("slots", slots),
    ("sizes", || Ok(plots::speed(&h200()?))),
    ("roofline", || Ok(plots::roofline(&at_main_size()?))),
    ("regimes", regimes::plot),
    ("shapes", || Ok(bars::ratios(&h200_shapes()?))),
];

/// The results at the size that most chapters quote, where all kernels were measured.
fn at_main_size() -> Result<Results, String> {
    let mut results = h200()?;
    results.sizes.retain(|size| size.m == MAIN_SIZE);
    Ok(results)
}

/// The steps that make the ladder faster, `auto` and cuBLAS.
fn ladder() -> Result<String, String> {
    let climbing = climbing(&h200()?);
    let mut results = at_main_size()?;
    for size in &mut results.sizes {
        size.results.retain(|record| {
            let mut variants = climbing.iter().flat_map(|kernel| kernel.variants);
            record.kernel == AUTO || variants.any(|variant| variant.name == record.kernel)
        });
    }
    Ok(bars::ladder(&results))
}

/// From a row to the next, and the bar's part of it.
const ROW: f64 = 27.0;
const BAR: f64 = 18.0;
/// Slots in which nothing is issued.
const IDLE: &str = "#e4e4e4";

/// What the colours mean, in a line that begins at `top`; returns where it ends.
pub fn legend(canvas: &mut Canvas, top: f64, colours: &[(&'static str, &str)]) -> f64 {
    let mut x = MARGIN;
    for (colour, text) in colours {
        let y = top + TEXT / 2.0;
        canvas.bar(Area::around((x + 7.0, y), 14.0, 14.0), colour);
        canvas.text(text, (x + 20.0, y), Anchor::Start, INK);
        x += 20.0 + text_width(text, TEXT) + 24.0;
    }
    top + 2.0 * TEXT
}

/// What each rung does with the instructions that an SM could issue: a bar for each, in three
/// parts.
fn slots() -> Result<String, String> {
    let rungs = machine_code::slots()?;
    let title = format!("Where the issue slots go: the ladder at {MAIN_SIZE}, NVIDIA H200");
    let notes = [
        "An SM can issue four instructions per clock. The FMAs' share of these slots is the speed as a share of the peak.".to_string(),
    ];
    let mut canvas = Canvas::new();
    let mut top = canvas.head(&title, &notes) + 6.0;

    let colours = [
        (KERNEL, "FMAs"),
        (SLOWER, "other instructions"),
        (IDLE, "nothing issued"),
    ];
    top = legend(&mut canvas, top, &colours);

    let widths = rungs.iter().map(|rung| text_width(&rung.variant, TEXT));
    let area = Area {
        left: MARGIN + widths.fold(0.0, f64::max) + 8.0,
        top,
        right: WIDTH - MARGIN - 20.0,
        bottom: top + ROW * rungs.len() as f64 + 4.0,
    };
    let scale = Scale::linear((0.0, 100.0), (area.left, area.right));
    let ticks = [0.0, 20.0, 40.0, 60.0, 80.0, 100.0];
    let below = draw_x(&mut canvas, area, scale, &ticks, "% of the issue slots");
    for (index, rung) in rungs.iter().enumerate() {
        let y = top + ROW * (index as f64 + 0.5) + 2.0;
        canvas.text(&rung.variant, (area.left - 8.0, y), Anchor::End, INK);
        let mut from = 0.0;
        let used = rung.fmas + rung.others;
        for (share, colour) in [
            (rung.fmas, KERNEL),
            (rung.others, SLOWER),
            (1.0 - used, IDLE),
        ] {
            let bar = Area {
                left: scale.at(100.0 * from),
                top: y - BAR / 2.0,
                right: scale.at(100.0 * (from + share)),
                bottom: y + BAR / 2.0,
            };
            canvas.bar(bar, colour);
            let text = format!("{:.0}", 100.0 * share);
            if bar.right - bar.left > text_width(&text, TEXT) + 8.0 {
                let at = ((bar.left + bar.right) / 2.0, y);
                match colour == KERNEL {
                    true => canvas.text(&text, at, Anchor::Middle, "#ffffff"),
                    false => canvas.text(&text, at, Anchor::Middle, INK),
                }
            }
            from += share;
        }
    }
    let axis = ((area.left, area.top), (area.left, area.bottom));
    canvas.line(axis.0, axis.1, Stroke::solid(INK, 1.0));
    Ok(canvas.finish(&title, below))
}
