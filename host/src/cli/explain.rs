//! `host explain KERNEL`: a kernel's numbers for a shape and a GPU.

use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::exit::{PROVEN, Stop, failed, finish, usage};
use super::values;
use crate::explain::data_sheets;
use crate::explain::{self, Explanation, Question};
use crate::parallel;
use crate::progress::Progress;
use crate::select;
use gpu_gemm::device::driver;
use gpu_gemm::gpu::Gpu;
use gpu_gemm::{ElementType, KERNELS, Shape};

/// Explains a kernel: its idea, what it moves and computes, and what a GPU makes of it.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The kernel or variant; `--list` shows them
    kernel: String,

    /// m, n and k, where they are not given themselves
    #[arg(long, default_value_t = 4096, value_parser = dimension())]
    size: u32,

    /// Rows of A and C
    #[arg(long, value_parser = dimension())]
    m: Option<u32>,

    /// Columns of B and C
    #[arg(long, value_parser = dimension())]
    n: Option<u32>,

    /// Columns of A, rows of B
    #[arg(long, value_parser = dimension())]
    k: Option<u32>,

    /// The type of the elements
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = values::element_type())]
    dtype: ElementType,

    /// The factor of the C that was there; 0 does not read it
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    beta: f64,

    /// The GPU to explain it for [default: the one that is here, else h200]
    #[arg(long, value_name = "GPU", value_parser = PossibleValuesParser::new(data_sheets::keys()))]
    gpu: Option<String>,

    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, with a drawing
    Text,
    /// One object; see the documentation of `Explanation`
    Json,
}

/// A dimension that is not 0: an empty problem has nothing to explain.
fn dimension() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(i32::MAX))
}

pub(super) fn explain(
    arguments: &Arguments,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    let names = std::slice::from_ref(&arguments.kernel);
    let variants = select::kernels(KERNELS, names, arguments.dtype).map_err(usage)?;
    // A GPU that cannot be used counts as none: the figures then come from a data sheet.
    let here = driver::probe()
        .ok()
        .and_then(|found| Gpu::of(found.first()?));
    let [m, n, k] = [arguments.m, arguments.n, arguments.k]
        .map(|dimension| dimension.unwrap_or(arguments.size) as usize);
    let progress = Progress::start(variants.len() as u64);
    progress.doing("assembling kernels".to_string());
    let explained = parallel::map(variants.len(), |index| {
        let question = Question {
            variant: variants[index],
            shape: Shape { m, n, k },
            reads_c: arguments.beta != 0.0,
            gpu: arguments.gpu.clone(),
        };
        let explanation = Explanation::of(&question, here.clone());
        progress.step();
        explanation
    });
    drop(progress);
    for (index, explanation) in explained.into_iter().enumerate() {
        let explanation = explanation.map_err(failed)?;
        let written = match arguments.format {
            Format::Text if index > 0 => {
                writeln!(out).and_then(|()| explain::write(&explanation, out))
            }
            Format::Text => explain::write(&explanation, out),
            Format::Json => serde_json::to_string_pretty(&explanation)
                .map_err(Into::into)
                .and_then(|text| writeln!(out, "{text}")),
        };
        if written.is_err() {
            return Ok(finish(written, notes, PROVEN));
        }
    }
    Ok(PROVEN)
}
