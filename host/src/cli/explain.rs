//! `rust-gemm explain KERNEL`: a kernel's numbers for a shape and a GPU, or the description of a
//! CPU rung.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::exit::{PROVEN, Stop, failed, finish, noted, usage};
use super::matrices::ShapeArguments;
use super::running::Math;
use super::values;
use crate::cpu::RUNGS;
use crate::explain::data_sheets;
use crate::explain::{self, Auto, CpuExplanation, ExplainError, Explanation, Question};
use crate::parallel;
use crate::progress::Progress;
use crate::rung::Rung;
use crate::select;
use gpu_gemm::device::driver;
use gpu_gemm::gpu::Gpu;
use gpu_gemm::{Choice, Chooser, DataType, DeviceFacts, KERNELS, Shape, Split};
use serde::Serialize;

/// Explains a kernel: its idea, its traffic and arithmetic, and how it runs on a GPU.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The kernel, variant or CPU rung, `auto` for the one that suits the shape, `all`, `cpu`, or
    /// a pattern such as `tiled-*`; `--list` shows them
    kernel: String,

    #[command(flatten)]
    dimensions: ShapeArguments,

    /// The type of the elements [default: f32, or the first that the kernels multiply]
    #[arg(long, value_name = "TYPE", value_parser = values::data_type())]
    dtype: Option<DataType>,

    /// The arithmetic that `auto` may use for f32
    #[arg(long, value_enum, default_value_t = Math::Ieee)]
    math: Math,

    /// The factor of the old C, which is not read if this is 0
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    beta: f64,

    /// The GPU to explain it for [default: the GPU here, else h200]
    #[arg(long, value_name = "GPU", value_parser = PossibleValuesParser::new(data_sheets::keys()))]
    gpu: Option<String>,

    /// The number of devices, each of which computes a part of C
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    devices: u16,

    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, with a drawing
    Text,
    /// One object; see the documentation of `Explanation` and `CpuExplanation`
    Json,
}

/// The explanation of a GPU kernel or of a CPU rung.
#[derive(Serialize)]
#[serde(untagged)]
enum Explained {
    Gpu(Box<Explanation>),
    Cpu(CpuExplanation),
}

impl Explained {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Explained::Gpu(explanation) => explain::write(explanation, out),
            Explained::Cpu(explanation) => explanation.write(out),
        }
    }
}

pub(super) fn explain(
    arguments: &Arguments,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    let names = std::slice::from_ref(&arguments.kernel);
    let data_type = select::type_for(arguments.dtype, KERNELS, RUNGS, names);
    let asked = select::ask(KERNELS, RUNGS, names, data_type).map_err(usage)?;
    // A GPU that cannot be used counts as none: the figures then come from a data sheet.
    let gpus = driver::probe().unwrap_or_default();
    let here = gpus.first().filter(|_| arguments.gpu.is_none());
    let here = here.and_then(|found| Some((found, Gpu::of(found)?)));
    let (gpu, gpu_is_here) = match &here {
        Some((_, gpu)) => (gpu.clone(), true),
        None => {
            let key = arguments.gpu.as_deref().unwrap_or(data_sheets::DEFAULT);
            let sheet = data_sheets::find(key);
            let no_such = || usage(format!("There is no data sheet for `{key}`."));
            (sheet.ok_or_else(no_such)?, false)
        }
    };
    let whole = arguments.dimensions.shape(4096);
    // A launch cannot have more, and an empty problem needs no explanation.
    let may_be = 1..=i32::MAX as usize;
    if let Some(size) = [whole.m, whole.n, whole.k]
        .iter()
        .find(|size| !may_be.contains(size))
    {
        return Err(usage(format!("{size} is not in 1..=2147483647.")));
    }
    let reads_c = arguments.beta != 0.0;
    let split = Split::of(whole, arguments.devices.into());
    let first = split.blocks(0).into_iter().next();
    let shape = first.map_or(whole, |block| {
        Shape::new(block.rows.len(), block.columns.len(), whole.k)
    });
    let split = Some(split).filter(|split| split.devices() > 1);
    let reasoned = match asked.contains(&Rung::Auto(())) {
        false => None,
        true => {
            // With the results of `tune`, if that GPU is in this machine.
            let chooser = match &here {
                Some((found, _)) => noted(Chooser::of_properties(found), notes),
                None => Chooser::untuned(DeviceFacts::of_gpu(&gpu)),
            };
            let chooser = arguments.math.chooser(chooser);
            chooser.reasoned(data_type, shape)
        }
    };
    let progress = Progress::start(asked.len() as u64);
    progress.doing("assembling kernels".to_string());
    let explained = parallel::map(asked.len(), |index| {
        let of_gpu = |choice: Choice, auto: Option<Auto>| {
            let question = Question {
                choice,
                auto,
                shape,
                reads_c,
                gpu: gpu.clone(),
                gpu_is_here,
                split: split.clone(),
            };
            Explanation::of(&question).map(Box::new)
        };
        let explained = match (asked[index], &reasoned) {
            (Rung::Cpu(algorithm), _) => Ok(Explained::Cpu(CpuExplanation::of(
                algorithm, data_type, shape, reads_c,
            ))),
            (Rung::Gpu(choice), _) => of_gpu(choice, None).map(Explained::Gpu),
            (Rung::Auto(()), Some(reasoned)) => {
                of_gpu(reasoned.choice, Some(Auto::of(reasoned))).map(Explained::Gpu)
            }
            (Rung::Auto(()), None) => Err(ExplainError::NoChoice(shape)),
        };
        progress.step();
        explained
    });
    drop(progress);
    for (index, explanation) in explained.into_iter().enumerate() {
        let explanation = explanation.map_err(failed)?;
        let written = match arguments.format {
            Format::Text if index > 0 => writeln!(out).and_then(|()| explanation.write(out)),
            Format::Text => explanation.write(out),
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
