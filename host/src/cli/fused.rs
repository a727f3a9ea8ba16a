//! `--epilogue`, which one call and a benchmark share, and `--scales`: options that choose among
//! kernels by what these do beside multiplying.

use std::io::Write;

use clap::Args;
use gpu_gemm::{DataType, Device, Variant};

use super::exit::{Stop, note, usage};
use super::matrices::ProblemArguments;
use super::running::{Running, not_run};
use crate::data::{Granularity, Storage};
use crate::epilogue::Epilogue;
use crate::rung::{Asked, Rung};

/// The epilogue.
#[derive(Clone, Copy, Debug, Args)]
pub struct EpilogueArguments {
    /// What kernels do to each element of C before they store it; `bias` adds an integer for each
    /// column, and gelu is that by tanh, as cublasLt's
    #[arg(long, value_enum)]
    pub epilogue: Option<Epilogue>,
}

impl EpilogueArguments {
    /// The kernels that are compiled with the epilogue, or all if there is none. A note names the
    /// others, unless `all` were asked for.
    ///
    /// # Errors
    ///
    /// No kernel of this type is compiled with it, or the device takes no epilogues.
    pub fn able(
        self,
        asked: Vec<Asked>,
        names: &[String],
        (data_type, device): (DataType, &Device),
        notes: &mut dyn Write,
    ) -> Result<Vec<Asked>, Stop> {
        let Some(epilogue) = self.epilogue else {
            return Ok(asked);
        };
        on_one("--epilogue", device)?;
        let variants = epilogue.variants();
        if compiled(variants, data_type).next().is_none() {
            return Err(usage(format!(
                "--epilogue takes f32, bf16 and f16, not {data_type}: choose one by `--dtype`."
            )));
        }
        compiled_with("an epilogue", asked, names, (variants, data_type), notes)
    }
}

/// The scales.
#[derive(Clone, Copy, Debug, Args)]
pub struct ScaleArguments {
    /// Quantise A and B to e4m3, multiply them, and say what that costs. They are files of f32,
    /// f64, bf16 or f16, or generated; a scale is the largest magnitude of its elements over 448
    #[arg(long, value_enum, conflicts_with_all = ["list", "groups", "epilogue", "batch"])]
    pub scales: Option<Granularity>,
}

impl ScaleArguments {
    /// The kernels that apply such scales. A note names the others, unless `all` were asked for.
    ///
    /// # Errors
    ///
    /// Another option excludes scales, or no named kernel applies them.
    pub fn able(
        self,
        asked: Vec<Asked>,
        names: &[String],
        (problem, storage, running): (&ProblemArguments, &Storage, &Running),
        device: &Device,
        notes: &mut dyn Write,
    ) -> Result<Vec<Asked>, Stop> {
        let Some(scales) = self.scales else {
            return Ok(asked);
        };
        on_one("--scales", device)?;
        let operands = &problem.operands;
        let why = match problem.dtype {
            Some(other) if other != DataType::E4M3 => &format!(
                "--scales quantises to e4m3, with a C of f32, and not to {other}; leave out --dtype."
            ),
            _ if operands.alpha == 0.0 => {
                "--alpha is 0, so nothing is quantised; leave out --scales."
            }
            _ if operands.beta != 0.0 && scales == Granularity::Row => {
                "--scales row multiplies C after the kernel, which would have added the old C to it; \
                 leave out --beta, or choose `--scales tensor` or `--scales block`."
            }
            _ if storage.batch > 1 => {
                "--scales quantises one product, and these files hold a batch; save its matrices one by one."
            }
            _ if running.baseline.needs_gpu() => {
                "--scales is compared with no library; leave out --baseline."
            }
            _ => "",
        };
        match (why, scales.variants()) {
            ("", None) => Ok(asked),
            ("", Some(variants)) => {
                let variants = (variants, DataType::E4M3);
                compiled_with("scales of blocks", asked, names, variants, notes)
            }
            (why, _) => Err(usage(why)),
        }
    }
}

/// Refuses several devices and OpenCL for an option.
fn on_one(option: &str, device: &Device) -> Result<(), Stop> {
    match device.several().is_some() || device.backend() == "opencl" {
        true => Err(usage(format!(
            "{option} runs on one GPU or in the simulator: name one by `--device`, such as `--device sim`."
        ))),
        false => Ok(()),
    }
}

/// The names of the variants for a type.
fn compiled(
    variants: &'static [Variant],
    data_type: DataType,
) -> impl Iterator<Item = &'static str> {
    let of_type = move |one: &&Variant| one.types.data_type() == data_type;
    variants.iter().filter(of_type).map(|one| one.name)
}

/// The kernels that are among these variants, which are compiled `with` something.
fn compiled_with(
    with: &str,
    mut asked: Vec<Asked>,
    names: &[String],
    (variants, data_type): (&'static [Variant], DataType),
    notes: &mut dyn Write,
) -> Result<Vec<Asked>, Stop> {
    let able: Vec<&str> = compiled(variants, data_type).collect();
    let mut left_out = Vec::new();
    asked.retain(|one| {
        let is_able = matches!(one, Rung::Auto(())) || able.contains(&one.name());
        left_out.extend((!is_able).then(|| one.name()));
        is_able
    });
    let able = able.join(", ");
    match &left_out[..] {
        [first, ..] if asked.is_empty() => Err(usage(format!(
            "Kernel `{first}` is not compiled with {with}. In {data_type} these are: auto, {able}."
        ))),
        [_, ..] if !names.iter().any(|name| name.eq_ignore_ascii_case("all")) => {
            let why = format!("not compiled with {with}");
            note(notes, not_run(&left_out, &why));
            Ok(asked)
        }
        _ => Ok(asked),
    }
}
