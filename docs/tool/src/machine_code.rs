//! The instructions of the ladder's machine code, and the law of speed.
//!
//! The host keeps the counts in [`record::FILE`]. Where ptxas and nvdisasm are, `cargo run -p book`
//! writes that file, and the tests compare it.

use gpu_gemm::device::ptx::with_one_kernel;
use gpu_kernels::KERNELS;
use host::listing::record::{self, Counts};
use host::listing::sass;
use host::listing::statistics::Statistics;
use nvvm::{NvvmArch, nvdisasm, ptxas};

use crate::figures;
use crate::ladder::{of_floats, on_cuda_cores};
use crate::listings::{counted, counted_ptx, tools};
use crate::parts::unbroken;
use crate::repository::{at_root, read};

/// The law is shown for the first variant of each kernel, and for these.
const ALSO: &str = "\
    naive-1d-rows tiled-16 register-blocked-k16 conflict-free-k16 double-buffer-k16";

/// Counts again, where that is possible; `None` where it is not.
pub fn count() -> Result<Option<String>, String> {
    let Some((toolkit, nvdisasm)) = tools() else {
        return Ok(None);
    };
    let ptx = counted_ptx()?;
    let mut counts = Vec::new();
    for variant in counted() {
        let entry = variant.entry.name;
        let alone = with_one_kernel(&ptx, entry).ok_or_else(|| format!("there is no `{entry}`"))?;
        let assembled = ptxas::assemble(&toolkit, &alone, NvvmArch::Compute90);
        let assembled = assembled.map_err(|error| error.to_string())?;
        let code = nvdisasm::disassemble(&nvdisasm, &assembled.cubin);
        let code = sass::parse(&code.map_err(|error| error.to_string())?, entry);
        let main_loop = Statistics::of(&code).main_loop;
        let main_loop = main_loop.ok_or_else(|| format!("`{entry}` has no mainloop"))?;
        let mut reports = assembled.kernels.iter();
        let report = reports
            .find(|report| report.entry == entry)
            .ok_or_else(|| format!("ptxas reports nothing about `{entry}`"))?;
        counts.push(Counts::of(variant.name, report.registers, &main_loop));
    }
    record::write(&counts)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// A figure of a variant's machine code: its `registers`, the `instructions` and `fmas` of its
/// mainloop, or the `share` of FMAs among them.
pub fn figure(arguments: &str) -> Result<String, String> {
    let (name, what) = arguments
        .split_once(' ')
        .ok_or_else(|| format!("`code {arguments}` is not `code VARIANT WHAT`"))?;
    let counts = counts()?;
    let own = of(&counts, name)?;
    match what {
        "registers" => Ok(own.registers.to_string()),
        "instructions" => Ok(own.instructions.to_string()),
        "fmas" => Ok(own.fmas.to_string()),
        "share" => Ok(unbroken(&format!("{:.1} %", 100.0 * own.share()))),
        _ => match what.strip_prefix("share-over ") {
            Some(other) => Ok(format!("{:.2}", own.share() / of(&counts, other)?.share())),
            None => Err(format!("`{what}` is no figure of machine code")),
        },
    }
}

/// The issue rate that the law leaves: instructions per clock of an SM, from speed and share.
pub fn issued(name: &str) -> Result<String, String> {
    let rate = 4.0 * figures::of_peak(name)? / of(&counts()?, name)?.share();
    Ok(format!("{rate:.2}"))
}

/// The law, rung by rung: instructions, share of FMAs, speed as a share of peak, and the issue
/// rate that follows.
pub fn law() -> Result<String, String> {
    let mut table = "\n| kernel | FMAs / instructions of the mainloop | share of FMAs | measured share of peak | issued per clock, by the law |\n| --- | --- | --- | --- | --- |\n".to_string();
    let shown = on_cuda_cores().flat_map(|kernel| {
        let is_first = |index: usize| index == 0 && kernel.name != "few-rows"; // not made for squares
        let variants = of_floats(kernel).enumerate();
        variants.filter(move |(index, one)| {
            is_first(*index) || ALSO.split(' ').any(|name| name == one.name)
        })
    });
    let counts = counts()?;
    for (_, variant) in shown {
        let name = variant.name;
        let counts = of(&counts, name)?;
        table += &format!(
            "| `{name}` | {} / {} | {:.1}\u{a0}% | {:.1}\u{a0}% | {} |\n",
            counts.fmas,
            counts.instructions,
            100.0 * counts.share(),
            100.0 * figures::of_peak(name)?,
            issued(name)?
        );
    }
    Ok(table + "\n")
}

/// The issue slots that FMAs take, and those that other instructions take, at 4096, by the law:
/// for each kernel whose mainloop is counted whole, in its first variant.
pub fn slots() -> Result<Vec<Slots>, String> {
    let counts = counts()?;
    let mut all = Vec::new();
    for kernel in KERNELS
        .iter()
        .filter(|one| !PARTLY_COUNTED.split(' ').any(|name| name == one.name))
    {
        let Some(variant) = of_floats(kernel)
            .map(|one| one.name)
            .find(|name| of(&counts, name).is_ok())
        else {
            continue;
        };
        let fmas = figures::of_peak(variant)?;
        all.push(Slots {
            variant: variant.to_string(),
            fmas,
            others: fmas / of(&counts, variant)?.share() - fmas,
        });
    }
    Ok(all)
}

/// The kernels whose loop with the FMAs is not all that an FMA costs, or where a product takes
/// several instructions; and the one that is not made for squares.
const PARTLY_COUNTED: &str = "naive-kahan row-shared pitched tiled-kahan vectorized few-rows";

/// The use of the issue slots of an SM, as shares of them.
pub struct Slots {
    pub variant: String,
    /// Also the speed, as a share of the peak.
    pub fmas: f64,
    pub others: f64,
}

fn of<'a>(counts: &'a [Counts], name: &str) -> Result<&'a Counts, String> {
    let mut counts = counts.iter();
    counts
        .find(|one| one.variant == name)
        .ok_or_else(|| format!("{} has no `{name}`", record::FILE))
}

/// From the file, which may be newer than the host's built-in copy.
fn counts() -> Result<Vec<Counts>, String> {
    let text = read(&at_root(record::FILE))?;
    record::parse(&text).map_err(|error| format!("{}: {error}", record::FILE))
}
