//! `rust-gemm opencl KERNEL`: a kernel in OpenCL C, beside the Rust lines it came from.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{PROVEN, Stop, failed, finish, note, usage};
use super::values;
use crate::listing::opencl;
use crate::output::Output;
use crate::select;
use gpu_gemm::device::compiled;
use gpu_gemm::device::opencl::source::{self, Absent};
use gpu_gemm::text::plural;
use gpu_gemm::{DataType, DeviceChoice, KERNELS, OpenClDevice, Variant};

#[derive(Debug, Args)]
pub(super) struct OpenCl {
    /// A kernel or a variant, as `--list` shows them, `all`, or a pattern such as `tiled-*`
    #[arg(value_name = "KERNEL")]
    kernel: String,

    /// The type of the elements [default: f32, or the first that the kernels multiply]
    #[arg(long, value_name = "TYPE", value_parser = values::data_type())]
    dtype: Option<DataType>,

    /// Only the program, without the lines, as it is given to OpenCL
    #[arg(long)]
    raw: bool,

    /// Write the kernel's binary from an OpenCL device's compiler: PTX from NVIDIA's, machine code
    /// from others
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    binary: Option<PathBuf>,

    /// The device of `--binary`
    #[arg(long, value_name = "DEVICE", default_value = "opencl")]
    device: DeviceChoice,
}

pub(super) fn opencl(
    asked: &OpenCl,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    let names = std::slice::from_ref(&asked.kernel);
    let data_type = select::type_for(asked.dtype, KERNELS, &[], names);
    let variants = select::kernels(KERNELS, names, data_type).map_err(usage)?;
    if let Some(path) = &asked.binary {
        return binary(&variants, asked.device.clone(), path, notes);
    }
    let mut texts = Vec::new();
    let mut refused = Vec::new();
    for variant in variants {
        let entry = variant.entry.name;
        match source::of(entry) {
            Ok(program) if asked.raw => texts.push(program.to_owned()),
            Ok(program) => texts.push(opencl::with_sources(program)),
            Err(Absent::Refused(reason)) => refused.push(format!(
                "The kernel `{entry}` cannot be expressed in OpenCL C: {reason}."
            )),
            Err(Absent::Failed(error)) => return Err(failed(error)),
            Err(Absent::NotBuilt) => {
                let reason = compiled::why_absent();
                let reason = reason.unwrap_or("Run `cargo clean -p gpu_gemm` and build again.");
                return Err(failed(format!(
                    "There is no OpenCL C in this build. {reason}"
                )));
            }
        }
    }
    let written = out.write_all(texts.join("\n").as_bytes());
    if let (true, Some(first)) = (texts.is_empty(), refused.first()) {
        return Err(failed(first));
    }
    for error in refused {
        note(notes, error);
    }
    Ok(finish(written, notes, PROVEN))
}

/// Writes the binary of a kernel.
fn binary(
    variants: &[&'static Variant],
    device: DeviceChoice,
    path: &Path,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    let DeviceChoice::OpenCl(ordinal) = device else {
        return Err(usage(format!(
            "`--binary` needs an OpenCL device, and {device} is none: name `opencl` or `opencl:NUMBER`."
        )));
    };
    let &[variant] = variants else {
        let count = variants.len();
        return Err(usage(format!(
            "--binary takes one kernel, but {count} are named; name one."
        )));
    };
    let output = Output::open(path).map_err(failed)?;
    let device = OpenClDevice::open(ordinal).map_err(failed)?;
    let binary = device.binary(variant.entry.name).map_err(failed)?;
    let written = output.finish(|out| out.write_all(&binary));
    written.map_err(failed)?;
    let bytes = plural(binary.len(), "byte");
    note(notes, format!("{bytes} of `{}`.", variant.name));
    Ok(PROVEN)
}
