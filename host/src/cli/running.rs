//! Where and how often to run: options that one call and a benchmark share.

use std::io::Write;

use clap::Args;
use gpu_gemm::{Device, DeviceChoice};

use super::exit::{Stop, failed, note};
use crate::measure::Effort;
use crate::prove::Baseline;
use crate::rung::Rung;
use crate::select::Asked;

/// Where and how often to run: the same for one call and for a benchmark.
#[derive(Debug, Args)]
pub(super) struct Running {
    /// The seed of the random data
    #[arg(long, default_value_t = 42)]
    pub(super) seed: u64,

    /// Where to run: `auto` (a GPU if there is one), `cuda`, `cuda:NUMBER`, `opencl`, `opencl:NUMBER` or
    /// `sim`
    #[arg(long, default_value_t = DeviceChoice::Auto)]
    pub(super) device: DeviceChoice,

    /// Timed runs [default: up to 20 on a GPU, 1 on the simulator, up to 10 of a CPU rung and by OpenCL]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: Option<u32>,

    /// Runs before the timed ones, besides those that prove the result [default: up to 3 on a
    /// GPU, else 0]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warmup: Option<u32>,

    /// What to compare times with, on a GPU
    #[arg(long, value_enum, default_value_t = Baseline::Auto)]
    pub(super) baseline: Baseline,
}

impl Running {
    pub(super) fn effort(&self) -> Effort {
        Effort {
            runs: self.runs,
            warmup: self.warmup,
        }
    }
}

/// What was asked for, without the kernels that a device of OpenCL cannot run; a note says why.
/// If none is left, that is an error.
pub(super) fn runnable(
    asked: Vec<Asked>,
    device: &Device,
    notes: &mut dyn Write,
) -> Result<Vec<Asked>, Stop> {
    let Device::OpenCl(device) = device else {
        return Ok(asked);
    };
    let mut reasons = Vec::new();
    let mut runnable = asked;
    runnable.retain(|asked| {
        let Asked::Rung(rung @ Rung::Gpu(_)) = asked else {
            return true;
        };
        let why = rung
            .choice()
            .and_then(|choice| device.why_not(choice.variant));
        let runs = why.is_none();
        reasons.extend(why);
        runs
    });
    if runnable.is_empty()
        && let Some(first) = reasons.first()
    {
        return Err(failed(first));
    }
    for reason in reasons {
        note(notes, format!("not run: {reason}"));
    }
    Ok(runnable)
}
