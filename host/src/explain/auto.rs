//! The kernel that `auto` chooses for a shape on a GPU, and the reason.

use std::io::{self, Write};

use gpu_gemm::choose::{Reasoned, Why};

use crate::report::{duration, new_table};

/// The number of candidates that are shown.
const SHOWN: usize = 8;

/// Writes a choice and its reason. `gpu` is the name of the GPU.
pub fn write_choice(reasoned: &Reasoned, gpu: &str, out: &mut dyn Write) -> io::Result<()> {
    let chosen = reasoned.choice.description();
    writeln!(out, "auto: runs {chosen} on {gpu}")?;
    let why = match reasoned.why {
        Why::Tuned { seconds } => {
            let what = "`rust-gemm tune` measured it to be the fastest for this shape here";
            format!("{what}: {}", duration(seconds))
        }
        Why::Predicted => "it is predicted to be the fastest for this shape".to_string(),
    };
    writeln!(out, "why   {why}\n")?;
    let mut table = new_table();
    table.set_header(["each kernel's best plan", "predicted"]);
    for (choice, seconds) in reasoned.candidates.iter().take(SHOWN) {
        table.add_row([choice.description(), duration(*seconds)]);
    }
    writeln!(out, "{table}")?;
    match reasoned.candidates.len().saturating_sub(SHOWN) {
        0 => writeln!(out),
        more => writeln!(out, "and {more} slower\n"),
    }
}
