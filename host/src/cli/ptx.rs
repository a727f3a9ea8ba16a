//! `rust-gemm ptx KERNEL`: the code compiled from a kernel, beside the Rust lines it came from.

use std::error::Error;
use std::io::{self, Write};

use clap::Args;
use nvvm::{NvvmArch, nvdisasm};

use super::exit::{PASSED, Stop, failed, finish};
use super::values::KernelArguments;
use crate::listing::{self, assembled, ptx, sass, statistics::Statistics};
use gpu_gemm::device::{driver, ptx as text};

#[derive(Debug, Args)]
pub(super) struct Ptx {
    #[command(flatten)]
    kernels: KernelArguments,

    /// Only the PTX, without the lines: a module that ptxas takes
    #[arg(long, conflicts_with = "sass")]
    raw: bool,

    /// The machine code that ptxas makes of the PTX
    #[arg(long)]
    sass: bool,

    /// Only counts of the instructions in the mainloop's machine code
    #[arg(long, requires = "sass")]
    statistics: bool,

    /// The GPUs that the code is for, such as `sm_90` [default: the GPU here, else sm_90]
    #[arg(long, value_parser = architecture)]
    arch: Option<NvvmArch>,
}

const NO_NVDISASM: &str = "There is no nvdisasm here to write machine code as text; install a CUDA toolkit or the \
                           Python package nvidia-cuda-nvdisasm, or put nvdisasm into PATH.";

pub(super) fn ptx(asked: &Ptx, out: &mut dyn Write, notes: &mut dyn Write) -> Result<u8, Stop> {
    let variants = asked.kernels.variants()?;
    let listings = variants.iter();
    let listings = listings.map(|variant| listing_of(variant.entry.name, asked));
    let listings: Result<Vec<Vec<u8>>, Box<dyn Error>> = listings.collect();
    let text = listings.map_err(failed)?.join(&b'\n');
    Ok(finish(out.write_all(&text), notes, PASSED))
}

fn listing_of(entry: &'static str, asked: &Ptx) -> Result<Vec<u8>, Box<dyn Error>> {
    let arch = asked.arch.unwrap_or_else(architecture_here);
    let module = assembled::module(entry, arch)?;
    if asked.raw {
        return Ok(text::without_lines(&module).into_bytes());
    }
    let mut lines = ptx::kernel(&module, entry);
    if asked.sass {
        let assembled = assembled::of(&module, arch)?;
        let nvdisasm = nvdisasm::find().ok_or(NO_NVDISASM)?;
        let text = nvdisasm::disassemble(&nvdisasm, &assembled.cubin)?;
        let mut code = sass::parse(&text, entry);
        sass::correct_files(&mut code, &lines);
        if asked.statistics {
            let (sm, statistics) = (assembled.sm, Statistics::of(&code));
            return Ok(format!("{entry} for {sm}\n{statistics}").into_bytes());
        }
        lines = sass::listing(&code);
    }
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _: io::Result<()> = listing::write(&lines, &mut text);
    Ok(text)
}

/// Reads `sm_90`.
fn architecture(name: &str) -> Result<NvvmArch, String> {
    assembled::architecture(name).ok_or_else(|| {
        let known = NvvmArch::ALL.map(NvvmArch::sm);
        format!("choose one of {}", known.join(", "))
    })
}

/// The architecture of the first GPU, or the newest known one whose code it runs; without a GPU,
/// that of an H200.
fn architecture_here() -> NvvmArch {
    let capability = driver::probe()
        .ok()
        .and_then(|gpus| gpus.first().map(|gpu| gpu.capability))
        .unwrap_or((9, 0));
    for_capability(capability)
}

fn for_capability((major, minor): (i32, i32)) -> NvvmArch {
    let of_this_generation = |arch: &NvvmArch| {
        let number = arch.sm().trim_start_matches("sm_").parse::<i32>();
        number.is_ok_and(|number| number / 10 == major && number % 10 <= minor)
    };
    NvvmArch::ALL
        .into_iter()
        .rfind(of_this_generation)
        .unwrap_or(NvvmArch::Compute90)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_gets_code_that_it_runs() {
        for (capability, expected) in [
            ((7, 5), NvvmArch::Compute75),
            ((8, 8), NvvmArch::Compute87),
            ((9, 0), NvvmArch::Compute90),
            ((10, 0), NvvmArch::Compute100),
            ((12, 1), NvvmArch::Compute121),
            ((99, 0), NvvmArch::Compute90),
        ] {
            // 8.8 runs code of 8.7; 8.9 is a sibling that it does not run.
            assert_eq!(for_capability(capability), expected, "{capability:?}");
        }
    }

    #[test]
    fn architectures_have_the_names_that_ptxas_knows() {
        assert_eq!(architecture("sm_90a"), Ok(NvvmArch::Compute90a));
        let error = architecture("sm_35").unwrap_err();
        assert!(error.starts_with("choose one of sm_75, sm_80"), "{error}");
    }
}
