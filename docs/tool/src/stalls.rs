//! Why warps wait: a profiler's counts in one launch of each rung, from [`FILE`].
//!
//! The profiler counts, in every clock, the warps of a scheduler that wait for a *stall reason*,
//! and divides by the instructions that it issues. That is the clocks that a warp waits for each of
//! its instructions. So all reasons together, with the clock in which it is selected, are the time
//! from one instruction of a warp to its next; times the share of the clocks in which a scheduler
//! issues, they are the warps that it holds.

use std::collections::BTreeMap;

use gpu_kernels::KERNELS;
use gpu_kernels::spec::Unit;
use serde::Deserialize;

use crate::ladder::{kernel, of_floats};
use crate::machine_code;
use crate::parts::unbroken;
use crate::repository::{at_root, read};

/// The file, relative to the root of the repository.
pub const FILE: &str = "results/h200-stalls.json";

/// The warp whose instruction is issued. It does not wait.
const SELECTED: &str = "selected";

const SCHEDULERS_PER_SM: f64 = 4.0;

#[derive(Deserialize)]
struct Profile {
    /// M = N = K, where a kernel has no shape of its own.
    size: usize,
    kernels: Vec<Counts>,
}

/// The counts of one launch.
#[derive(Deserialize)]
struct Counts {
    variant: String,
    /// m, n, k, if the kernel is not made for squares.
    shape: Option<[usize; 3]>,
    time_ns: f64,
    /// Those of warps.
    instructions: f64,
    /// In how many of 100 clocks a scheduler issues.
    issue_active_percent: f64,
    warps_per_scheduler: f64,
    /// By reason, the clocks that a warp waits for an instruction, and those in which it could be
    /// issued or is. The key has the profiler's unit.
    #[serde(rename = "warps_per_issued_instruction")]
    clocks_per_instruction: BTreeMap<String, f64>,
}

impl Counts {
    fn of_reason(&self, reason: &str) -> f64 {
        let clocks = self.clocks_per_instruction.get(reason);
        clocks.copied().unwrap_or_default()
    }

    /// The reasons, the most frequent first, without the warp that is issued.
    fn reasons(&self) -> Vec<(&str, f64)> {
        let all = self.clocks_per_instruction.iter();
        let mut reasons: Vec<_> = all
            .map(|(reason, clocks)| (reason.as_str(), *clocks))
            .filter(|(reason, _)| *reason != SELECTED)
            .collect();
        reasons.sort_by(|one, other| other.1.total_cmp(&one.1));
        reasons
    }

    /// The instructions that an SM issues in a clock, of the four that it could.
    fn issued_per_clock(&self) -> f64 {
        SCHEDULERS_PER_SM * self.issue_active_percent / 100.0
    }

    /// `4096`, or `1 × 24576 × 1536`.
    fn shape(&self, size: usize) -> String {
        match self.shape {
            None => size.to_string(),
            Some(shape) => unbroken(&shape.map(|size| size.to_string()).join(" × ")),
        }
    }

    fn issued_percent(&self) -> String {
        unbroken(&format!("{:.0} %", self.issue_active_percent))
    }
}

impl Profile {
    fn read() -> Result<Profile, String> {
        serde_json::from_str(&read(&at_root(FILE))?)
            .map_err(|error| format!("{FILE} holds no profile: {error}"))
    }

    fn of(&self, variant: &str) -> Result<&Counts, String> {
        let mut kernels = self.kernels.iter();
        kernels
            .find(|one| one.variant == variant)
            .ok_or_else(|| format!("{FILE} has no `{variant}`"))
    }

    /// The counts of a kernel: those of one of its variants.
    fn of_kernel(&self, name: &str) -> Result<&Counts, String> {
        of_floats(kernel(name)?)
            .find_map(|variant| self.of(variant.name).ok())
            .ok_or_else(|| format!("{FILE} has no variant of `{name}`"))
    }
}

/// The kernels that were profiled, in the order of the ladder.
fn profiled() -> Result<Vec<&'static str>, String> {
    let profile = Profile::read()?;
    let names = KERNELS.iter().map(|kernel| kernel.name);
    Ok(names
        .filter(|name| profile.of_kernel(name).is_ok())
        .collect())
}

/// Why the warps of a kernel wait, below those of another one: `KERNEL` or `KERNEL OTHER`. The
/// columns are the three largest reasons of each.
pub fn waits(arguments: &str) -> Result<String, String> {
    let profile = Profile::read()?;
    let names: Vec<&str> = arguments.split(' ').rev().collect();
    let rows: Result<Vec<&Counts>, String> =
        names.iter().map(|name| profile.of_kernel(name)).collect();
    let rows = rows?;
    let shapes: Vec<String> = rows.iter().map(|row| row.shape(profile.size)).collect();
    if shapes.iter().any(|shape| *shape != shapes[0]) {
        return Err(format!(
            "{FILE}: {arguments} differ in their shapes: {shapes:?}"
        ));
    }
    let mut reasons: Vec<(&str, f64)> = Vec::new();
    for (reason, clocks) in rows
        .iter()
        .flat_map(|row| row.reasons().into_iter().take(3))
    {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, most)) => *most = most.max(clocks),
            None => reasons.push((reason, clocks)),
        }
    }
    reasons.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut table = format!(
        "\n| at {}, on an H200; waits in clocks for each instruction | clocks that issue | warps a scheduler |",
        shapes[0]
    );
    for (reason, _) in &reasons {
        table += &format!(" {} |", words(reason));
    }
    let columns = 3 + reasons.len();
    table += &format!("\n|{}\n", " --- |".repeat(columns));
    for row in rows {
        table += &format!(
            "| `{}` | {} | {:.1} |",
            row.variant,
            row.issued_percent(),
            row.warps_per_scheduler
        );
        for (reason, _) in &reasons {
            table += &format!(" {:.2} |", row.of_reason(reason));
        }
        table += "\n";
    }
    Ok(table + "\n")
}

/// All kernels that multiplied a square: the issued instructions, beside those by the law, and the
/// four largest reasons.
pub fn all() -> Result<String, String> {
    let profile = Profile::read()?;
    let mut table = "\n| kernel | clocks that issue | issued per clock | by the law | warps a scheduler | clocks that a warp waits, for each instruction |\n| --- | --- | --- | --- | --- | --- |\n".to_string();
    for name in profiled()? {
        let counts = profile.of_kernel(name)?;
        if counts.shape.is_some() {
            continue;
        }
        let on_cuda_cores = of_floats(kernel(name)?).all(|variant| variant.unit == Unit::CudaCores);
        let by_the_law = match on_cuda_cores {
            true => machine_code::issued(&counts.variant)?,
            false => "-".to_string(),
        };
        let reasons: Vec<String> = counts
            .reasons()
            .into_iter()
            .take(4)
            .map(|(reason, clocks)| unbroken(&format!("{} {clocks:.2}", words(reason))))
            .collect();
        table += &format!(
            "| `{}` | {} | {:.2} | {by_the_law} | {:.1} | {} |\n",
            counts.variant,
            counts.issued_percent(),
            counts.issued_per_clock(),
            counts.warps_per_scheduler,
            reasons.join(", ")
        );
    }
    Ok(table + "\n")
}

/// A figure of a variant's profile: `VARIANT issue`, the clocks that issue; `VARIANT time`;
/// `VARIANT instructions OTHER`, its instructions as a multiple of the other's; or `VARIANT
/// REASON`.
pub fn figure(arguments: &str) -> Result<String, String> {
    let profile = Profile::read()?;
    let words: Vec<&str> = arguments.split(' ').collect();
    match words[..] {
        [variant, "issue"] => Ok(profile.of(variant)?.issued_percent()),
        [variant, "time"] => Ok(match profile.of(variant)?.time_ns {
            long if long > 1e6 => unbroken(&format!("{:.1} ms", long / 1e6)),
            short => unbroken(&format!("{:.1} µs", short / 1e3)),
        }),
        [variant, "instructions", other] => {
            let [own, other] = [profile.of(variant)?, profile.of(other)?];
            Ok(format!("{:.2}", own.instructions / other.instructions))
        }
        [variant, reason] => {
            let counts = profile.of(variant)?;
            let clocks = counts.clocks_per_instruction.get(reason);
            let clocks = clocks.ok_or_else(|| format!("`{variant}` has no `{reason}`"))?;
            Ok(format!("{clocks:.2}"))
        }
        _ => Err(format!("`profiled {arguments}` is not `VARIANT WHAT`")),
    }
}

/// A reason in the field's words: `mio_throttle` is "MIO throttle".
fn words(reason: &str) -> String {
    let words = reason.split('_').map(|word| match word {
        "mio" | "lg" | "imc" => word.to_uppercase(),
        _ => word.to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}
