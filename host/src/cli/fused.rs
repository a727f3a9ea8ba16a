//! `--epilogue`, which one call and a benchmark share.

use std::io::Write;

use clap::Args;
use gpu_gemm::{DataType, Device};

use super::exit::{Stop, note, usage};
use super::running::not_run;
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
        mut asked: Vec<Asked>,
        names: &[String],
        (data_type, device): (DataType, &Device),
        notes: &mut dyn Write,
    ) -> Result<Vec<Asked>, Stop> {
        let Some(epilogue) = self.epilogue else {
            return Ok(asked);
        };
        if device.several().is_some() || device.backend() == "opencl" {
            return Err(usage(
                "--epilogue runs on one GPU or in the simulator: name one by `--device`, such as `--device sim`.",
            ));
        }
        let variants = epilogue.variants().iter();
        let of_type = variants.filter(|one| one.types.data_type() == data_type);
        let able: Vec<&str> = of_type.map(|one| one.name).collect();
        if able.is_empty() {
            return Err(usage(format!(
                "--epilogue takes f32, bf16 and f16, not {data_type}: choose one by `--dtype`."
            )));
        }
        let mut left_out = Vec::new();
        asked.retain(|one| {
            let is_able = matches!(one, Rung::Auto(())) || able.contains(&one.name());
            left_out.extend((!is_able).then(|| one.name()));
            is_able
        });
        let able = able.join(", ");
        match &left_out[..] {
            [first, ..] if asked.is_empty() => Err(usage(format!(
                "Kernel `{first}` is not compiled with an epilogue. In {data_type} these are: auto, {able}."
            ))),
            [_, ..] if !names.iter().any(|name| name.eq_ignore_ascii_case("all")) => {
                note(notes, not_run(&left_out, "not compiled with an epilogue"));
                Ok(asked)
            }
            _ => Ok(asked),
        }
    }
}
