//! `rust-gemm explain KERNEL`: a kernel's numbers for a shape and a GPU, or the description of a
//! CPU rung.

use std::io::Write;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::exit::{PASSED, Stop, failed, finish, noted, usage};
use super::matrices::ShapeArguments;
use super::running::Math;
use super::values::KernelArguments;
use crate::explain::data_sheets;
use crate::explain::{self, ExplainError, Explanation, Question};
use crate::parallel;
use crate::progress::Progress;
use crate::report::folded;
use crate::rung::Rung;
use gpu_gemm::device::driver;
use gpu_gemm::gpu::Gpu;
use gpu_gemm::{Choice, Chooser, DeviceFacts};

/// Explains a kernel: its idea, its traffic and arithmetic, and how it runs on a GPU.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    kernels: KernelArguments,

    #[command(flatten)]
    dimensions: ShapeArguments,

    /// The arithmetic that `auto` may use for f32
    #[arg(long, value_enum, default_value_t = Math::Ieee)]
    math: Math,

    /// The factor of the old C, which is not read if this is 0
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    beta: f64,

    /// The GPU to explain it for [default: the GPU here, else h200]
    #[arg(long, value_name = "GPU", value_parser = PossibleValuesParser::new(data_sheets::keys()))]
    gpu: Option<String>,
}

pub(super) fn explain(
    arguments: &Arguments,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    let (asked, data_type) = arguments.kernels.asked()?;
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
    let shape = arguments.dimensions.shape(4096);
    // A launch cannot have more, and an empty problem needs no explanation.
    let may_be = 1..=i32::MAX as usize;
    if let Some(size) = [shape.m, shape.n, shape.k]
        .iter()
        .find(|size| !may_be.contains(size))
    {
        return Err(usage(format!("{size} is not in 1..=2147483647.")));
    }
    let reads_c = arguments.beta != 0.0;
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
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let of_gpu = |choice: Choice, text: &mut Vec<u8>| {
            let question = Question {
                choice,
                shape,
                reads_c,
                gpu: gpu.clone(),
                gpu_is_here,
            };
            let _ = explain::write(&Explanation::of(&question)?, text);
            Ok(())
        };
        let explained = match (asked[index], &reasoned) {
            (Rung::Cpu(algorithm), _) => {
                let _ = explain::write_cpu(algorithm, data_type, shape, reads_c, &mut text);
                Ok(())
            }
            (Rung::Gpu(choice), _) => of_gpu(choice, &mut text),
            (Rung::Auto(()), Some(reasoned)) => {
                let _ = explain::write_choice(reasoned, &gpu.name, &mut text);
                of_gpu(reasoned.choice, &mut text)
            }
            (Rung::Auto(()), None) => Err(ExplainError::NoChoice(shape)),
        };
        progress.step();
        explained.map(|()| text)
    });
    drop(progress);
    let mut separator = "";
    for text in explained {
        let text = String::from_utf8_lossy(&text.map_err(failed)?).into_owned();
        let lines: Vec<String> = text.lines().map(folded).collect();
        if let Err(error) = writeln!(out, "{separator}{}", lines.join("\n")) {
            return Ok(finish(Err(error), notes, PASSED));
        }
        separator = "\n";
    }
    Ok(PASSED)
}
