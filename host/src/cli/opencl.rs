//! `rust-gemm opencl KERNEL`: a kernel in OpenCL C, beside the Rust lines it came from.

use std::io::Write;

use clap::Args;
use gpu_gemm::device::compiled;
use gpu_gemm::device::opencl::source::{self, Absent};

use super::exit::{PASSED, Stop, failed, finish, note};
use super::values::KernelArguments;
use crate::listing::opencl;

#[derive(Debug, Args)]
pub(super) struct OpenCl {
    #[command(flatten)]
    kernels: KernelArguments,

    /// Only the program, without the lines, as it is given to OpenCL
    #[arg(long)]
    raw: bool,
}

pub(super) fn opencl(
    asked: &OpenCl,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    let mut texts = Vec::new();
    let mut refused = Vec::new();
    for variant in asked.kernels.variants()? {
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
    Ok(finish(written, notes, PASSED))
}
