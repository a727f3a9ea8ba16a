//! Where and how often to run: options that one call and a benchmark share.

use std::io::Write;

use clap::{Args, ValueEnum};
use gpu_gemm::gpu_kernels::spec::Rounding;
use gpu_gemm::{Chooser, Device, DeviceChoice, DeviceError};

use super::exit::{Stop, failed, note, usage};
use crate::check::Baseline;
use crate::measure::{Effort, Origin};
use crate::rung::{Asked, Rung};

/// Where and how often to run: the same for one call and for a benchmark.
#[derive(Debug, Args)]
pub(super) struct Running {
    /// The seed of the random data
    #[arg(long, default_value_t = 42)]
    pub(super) seed: u64,

    /// Where to run: `auto` (a GPU if there is one), `cuda`, `cuda:NUMBER`, `opencl`,
    /// `opencl:NUMBER` or `sim`. `cuda:all` is all GPUs together, and `+` joins devices into one
    /// that multiplies parts on each: `cuda:0+1`, `sim+sim`, and for one GPU as two parts
    /// `cuda:0+0`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(super) device: DeviceChoice,

    /// Where the matrices are before a timed product on several devices, and C after it [default:
    /// spread]
    #[arg(long, value_enum)]
    start: Option<Origin>,

    /// Timed runs [default: up to 20 on a GPU, 1 on the simulator, up to 10 of a CPU rung and by
    /// OpenCL]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: Option<u32>,

    /// Runs before the timed ones, besides those that check the result [default: up to 3 on a
    /// GPU and by OpenCL, else 0]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warmup: Option<u32>,

    /// What to compare times with, on a GPU
    #[arg(long, value_enum, default_value_t = Baseline::Auto)]
    pub(super) baseline: Baseline,

    /// The arithmetic that kernels may use for f32; `all` leaves out those that need more
    #[arg(long, value_enum, default_value_t = Math::Ieee)]
    pub(super) math: Math,
}

/// The arithmetic that is allowed for f32. Each also allows what those before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, ValueEnum)]
pub(super) enum Math {
    /// IEEE 754 in every step
    Ieee,
    /// And tensor cores, for which each element is split into two f16: nearly the same results
    Split,
    /// And tensor cores, for which elements are rounded to tf32 (11 of 24 bits)
    Tf32,
}

impl Math {
    /// The chooser of kernels that may use this arithmetic.
    pub(super) fn chooser(self, chooser: Chooser) -> Chooser {
        match self {
            Math::Ieee => chooser,
            Math::Split => chooser.allowing_split(),
            Math::Tf32 => chooser.allowing_tf32(),
        }
    }
}

impl Running {
    /// Where the matrices start. Only several devices have this option.
    pub(super) fn origin(&self, device: &Device) -> Result<Origin, Stop> {
        match self.start {
            Some(_) if device.several().is_none() => Err(usage(
                "--start needs several devices, as in `--device cuda:0+1`.",
            )),
            start => Ok(start.unwrap_or_default()),
        }
    }

    /// The device to open for these, and whether all are CPU rungs, which need none.
    pub(super) fn device_for(&self, asked: &[Asked]) -> (DeviceChoice, bool) {
        let is_native = asked.iter().all(Asked::is_native) && !self.baseline.needs_gpu();
        match is_native {
            true => (DeviceChoice::Simulator, true),
            false => (self.device.clone(), false),
        }
    }

    pub(super) fn effort(&self) -> Effort {
        Effort::of(self.runs, self.warmup)
    }
}

/// Leaves out the kernels whose arithmetic `--math` does not allow. `all` means all that are
/// allowed; for a pattern, a note names those that are left out. A kernel named in full is an
/// error: naming a kernel alone does not allow fewer bits.
pub(super) fn allowed(
    mut asked: Vec<Asked>,
    names: &[String],
    math: Math,
    notes: &mut dyn Write,
) -> Result<Vec<Asked>, Stop> {
    let mut left_out = Vec::new();
    asked.retain(|asked| match asked {
        rung @ Rung::Gpu(choice) if needed(choice.variant.rounding) > math => {
            left_out.push((rung.name(), needed(choice.variant.rounding)));
            false
        }
        _ => true,
    });
    let has = |name: &str| names.iter().any(|named| named.eq_ignore_ascii_case(name));
    for (math, what, option) in [
        (
            Math::Split,
            "splits f32 into two f16, with an error bound of its own",
            "split",
        ),
        (
            Math::Tf32,
            "rounds f32 to tf32, which has 11 of its 24 bits",
            "tf32",
        ),
    ] {
        let of_math = left_out.iter().filter(|(_, needed)| *needed == math);
        let kernels: Vec<&str> = of_math.map(|(name, _)| *name).collect();
        if let Some(name) = kernels.iter().find(|name| has(name)) {
            return Err(usage(format!(
                "Kernel `{name}` {what}: allow it with `--math {option}`."
            )));
        }
        if !kernels.is_empty() && !has("all") {
            let kernels = kernels.join(", ");
            note(
                notes,
                format!("not run: {kernels}, which {what}; `--math {option}` allows it."),
            );
        }
    }
    Ok(asked)
}

/// The strictest `--math` that allows this rounding.
fn needed(rounding: Rounding) -> Math {
    match rounding {
        Rounding::Tf32 => Math::Tf32,
        Rounding::Split => Math::Split,
        _ => Math::Ieee,
    }
}

/// Leaves out the kernels that the device cannot run; a note for each reason names them. If none
/// is left, that is an error.
pub(super) fn runnable(
    asked: Vec<Asked>,
    device: &Device,
    notes: &mut dyn Write,
) -> Result<Vec<Asked>, Stop> {
    let mut left_out = Vec::new();
    let mut runnable = asked;
    runnable.retain(|asked| {
        let choice = asked.fixed_choice();
        let why = choice.and_then(|choice| device.why_not(choice.variant));
        let runs = why.is_none();
        left_out.extend(why.map(|error| (asked.name(), error)));
        runs
    });
    if runnable.is_empty()
        && let Some((_, first)) = left_out.first()
    {
        return Err(failed(first));
    }
    for text in by_reason(&left_out) {
        note(notes, text);
    }
    Ok(runnable)
}

/// A sentence for each reason why kernels are left out.
fn by_reason(left_out: &[(&str, DeviceError)]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, error) in left_out {
        let reason = reason(error);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let reasons = reasons.iter();
    reasons
        .map(|(reason, names)| not_run(names, reason))
        .collect()
}

/// The sentence for kernels that are left out.
pub(super) fn not_run(names: &[&str], reason: &str) -> String {
    format!("not run: {}: {reason}.", names.join(", "))
}

/// Why a device cannot run a kernel: the error without the kernel's name, its place in the source,
/// and the advice.
fn reason(error: &DeviceError) -> String {
    let text = error.to_string();
    let (_, why) = text.split_once("` ").unwrap_or(("", &text));
    let (why, _) = why.split_once(". ").unwrap_or((why, ""));
    let why = why.trim_end_matches('.');
    match why.rsplit_once(" (") {
        Some((problem, place)) if place.contains(".rs:") => problem.to_owned(),
        _ => why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_are_left_out_share_a_sentence_for_each_reason() {
        let refused = |kernel: &str, reason: &str| DeviceError::NotInOpenCl {
            kernel: kernel.to_owned(),
            reason: reason.to_owned(),
        };
        let no_warps = |place| format!("OpenCL C has no warps (`shfl`) (src/{place}.rs:5:9)");
        let no_doubles = "it computes with f64 (cl_khr_fp64). Use another device";
        let left_out = [
            ("a", refused("a", &no_warps("one"))),
            ("b", refused("b", no_doubles)),
            ("c", refused("c", &no_warps("two"))),
        ];
        assert_eq!(
            by_reason(&left_out),
            [
                "not run: a, c: does not run with OpenCL: OpenCL C has no warps (`shfl`).",
                "not run: b: does not run with OpenCL: it computes with f64 (cl_khr_fp64).",
            ]
        );
    }
}
