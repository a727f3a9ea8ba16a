//! The plots of the book and the README, drawn from the results: `docs/src/pictures/NAME.svg`.

use host::bench::{Results, pictures};
use host::plot::{BLUE, Bar, Bars, ORANGE, PALE, Row, SKY};
use host::report::Record;
use host::rung::AUTO;

use crate::figures::{MAIN_SIZE, at};
use crate::machine_code::{self, Slots};
use crate::measured::{h200, h200_shapes, passed};
use crate::overviews::climbing;
use crate::{native, regimes};

/// Draws a plot from the results.
type Draw = fn() -> Result<String, String>;

/// The plots, by the names of their files.
pub const ALL: [(&str, Draw); 11] = [
    ("ladder", ladder),
    ("slots", slots),
    ("sizes", || Ok(pictures::speed(&h200()?))),
    ("roofline", roofline),
    ("regimes", regimes::plot),
    ("cpu-serial", native::serial),
    ("cpu-strassen", native::strassen),
    ("cpu-threads", native::threads),
    ("cpu-chunks", native::chunks),
    ("hopper-steps", hopper_steps),
    ("shapes", || Ok(pictures::ratios(&h200_shapes()?))),
];

/// The results at the size that most chapters quote, where all kernels were measured.
fn at_main_size() -> Result<Results, String> {
    let mut results = h200()?;
    results.sizes.retain(|size| size.m == MAIN_SIZE);
    Ok(results)
}

/// All kernels but `few-rows`, which is not made for squares.
fn roofline() -> Result<String, String> {
    let mut results = at_main_size()?;
    for size in &mut results.sizes {
        size.results
            .retain(|record| !record.kernel.starts_with("few-rows"));
    }
    Ok(pictures::roofline(&results))
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
    Ok(pictures::ladder(&results))
}

/// The steps to Hopper's fast kernel: a bar of each regime.
fn hopper_steps() -> Result<String, String> {
    let results = passed("results/h200-hopper-steps.json")?;
    let size = at(&results, MAIN_SIZE).ok_or("the steps were not measured")?;
    let row = |record: &Record| {
        let sustained = record.sustained.as_ref().map(|one| one.flops_per_s);
        let speeds = [(record.flops_per_s, BLUE), (sustained, SKY)];
        let bars = speeds.into_iter().filter_map(|(speed, colour)| {
            let speed = speed? / 1e12;
            Some(Bar::new(speed, colour, format!("{speed:.0}")))
        });
        Row {
            name: record.kernel.clone(),
            bars: bars.collect(),
        }
    };
    let picture = Bars {
        title: format!("Hopper in measured steps: bf16 at {MAIN_SIZE}, NVIDIA H200"),
        legend: vec![(BLUE, "cold"), (SKY, "sustained")],
        axis: "TFLOP/s".to_string(),
        rows: size.results.iter().map(row).collect(),
        ..Bars::default()
    };
    Ok(picture.draw())
}

/// Each rung's use of the issue slots: a bar for each, in three parts.
fn slots() -> Result<String, String> {
    let row = |rung: Slots| {
        let parts = [
            (rung.fmas, BLUE),
            (rung.others, ORANGE),
            (1.0 - rung.fmas - rung.others, PALE),
        ];
        let parts = parts.map(|(share, colour)| {
            let percent = 100.0 * share;
            (percent, colour, format!("{percent:.0}"))
        });
        Row {
            name: rung.variant,
            bars: vec![Bar {
                parts: parts.to_vec(),
                ..Bar::default()
            }],
        }
    };
    let note = "An SM can issue four instructions per clock. The FMAs' share of these slots is the speed as a share of the peak.";
    let picture = Bars {
        title: format!("Where the issue slots go: the ladder at {MAIN_SIZE}, NVIDIA H200"),
        notes: vec![note.to_string()],
        legend: vec![
            (BLUE, "FMAs"),
            (ORANGE, "other instructions"),
            (PALE, "nothing issued"),
        ],
        axis: "% of the issue slots".to_string(),
        rows: machine_code::slots()?.into_iter().map(row).collect(),
        ..Bars::default()
    };
    Ok(picture.draw())
}
