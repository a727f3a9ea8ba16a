//! The kernel that `auto` chooses for a shape on a GPU, and the reason.

use std::io::{self, Write};

use gpu_gemm::choose::{Reasoned, Why};
use serde::Serialize;

use crate::report::{duration, new_table};

/// The choice of `auto` and its reason, as written to JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Auto {
    /// The variant that runs, and how its tiles are divided.
    pub chosen: String,
    /// `tuned` or `predicted`: the basis of the choice.
    pub by: &'static str,
    /// The median time that `rust-gemm tune` measured, if it did.
    pub tuned_s: Option<f64>,
    /// The best plan of each candidate kernel, the fastest first.
    pub candidates: Vec<Candidate>,
}

/// A candidate plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The variant, and how its tiles are divided.
    pub plan: String,
    /// The block tile.
    pub tile_m: u32,
    pub tile_n: u32,
    pub tile_k: u32,
    /// The time that the model predicts.
    pub predicted_s: f64,
}

/// The number of candidates that the text shows.
const SHOWN: usize = 8;

impl Auto {
    /// Converts a chooser's reasons.
    pub fn of(reasoned: &Reasoned) -> Auto {
        let (by, tuned_s) = match reasoned.why {
            Why::Tuned { seconds } => ("tuned", Some(seconds)),
            Why::Predicted => ("predicted", None),
        };
        let candidate = |(choice, seconds): &(gpu_gemm::Choice, f64)| {
            let tile = choice.variant.tile;
            Candidate {
                plan: choice.description(),
                tile_m: tile.m,
                tile_n: tile.n,
                tile_k: tile.k,
                predicted_s: *seconds,
            }
        };
        Auto {
            chosen: reasoned.choice.description(),
            by,
            tuned_s,
            candidates: reasoned.candidates.iter().map(candidate).collect(),
        }
    }

    /// Writes it for people. `gpu` is the name of the GPU.
    pub(super) fn write(&self, gpu: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "auto: runs {} on {gpu}", self.chosen)?;
        let why = match self.tuned_s {
            Some(seconds) => {
                let what = "`rust-gemm tune` measured it to be the fastest for this shape here";
                format!("{what}: {}", duration(seconds))
            }
            None => "it is predicted to be the fastest for this shape".to_string(),
        };
        writeln!(out, "why   {why}\n")?;
        let mut table = new_table();
        table.set_header(["each kernel's best plan", "block tile", "predicted time"]);
        for one in self.candidates.iter().take(SHOWN) {
            let tile = format!("{} x {} x {}", one.tile_m, one.tile_n, one.tile_k);
            table.add_row([one.plan.clone(), tile, duration(one.predicted_s)]);
        }
        writeln!(out, "{table}")?;
        match self.candidates.len().saturating_sub(SHOWN) {
            0 => writeln!(out),
            more => writeln!(out, "and {more} slower\n"),
        }
    }
}
