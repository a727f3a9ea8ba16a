//! `rust-gemm opencl KERNEL`: a kernel in OpenCL C, beside the Rust lines it came from.

use std::io::Write;

use clap::Args;
use thiserror::Error;

use super::exit::{PROVEN, Stop, failed, finish, usage};
use super::values;
use crate::listing::opencl;
use crate::select;
use gpu_gemm::device::opencl::source::{self, Absent};
use gpu_gemm::device::ptx;
use gpu_gemm::{ElementType, KERNELS};

#[derive(Debug, Args)]
pub(super) struct OpenCl {
    /// A kernel or a variant, as `--list` shows them, `all`, or a pattern such as `tiled-*`
    #[arg(value_name = "KERNEL")]
    kernel: String,

    /// The type of the elements
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = values::element_type())]
    dtype: ElementType,

    /// Only the program, without the lines, as it is given to OpenCL
    #[arg(long)]
    raw: bool,
}

/// Why there is no listing.
#[derive(Debug, Error)]
enum OpenClError {
    #[error("There is no OpenCL C in this build. {reason}")]
    NotBuilt { reason: &'static str },
    #[error("The kernel `{entry}` has no meaning in OpenCL C: {reason}.")]
    Refused {
        entry: &'static str,
        reason: &'static str,
    },
}

pub(super) fn opencl(
    asked: &OpenCl,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    let names = std::slice::from_ref(&asked.kernel);
    let variants = select::kernels(KERNELS, names, asked.dtype).map_err(usage)?;
    let mut texts = Vec::new();
    let mut refused = Vec::new();
    for variant in variants {
        let entry = variant.entry.name;
        match source::of(entry) {
            Ok(program) if asked.raw => texts.push(program.to_owned()),
            Ok(program) => texts.push(opencl::with_sources(program)),
            Err(Absent::Refused(reason)) => refused.push(OpenClError::Refused { entry, reason }),
            Err(Absent::NotBuilt) => {
                let reason = ptx::why_absent();
                let reason = reason.unwrap_or("Run `cargo clean -p gpu_gemm` and build again.");
                return Err(failed(OpenClError::NotBuilt { reason }));
            }
        }
    }
    let written = out.write_all(texts.join("\n").as_bytes());
    if let (true, Some(first)) = (texts.is_empty(), refused.first()) {
        return Err(failed(first));
    }
    for error in refused {
        super::exit::note(notes, error.to_string());
    }
    Ok(finish(written, notes, PROVEN))
}
