//! What the ladder's machine code consists of, and the law that follows from it.
//!
//! Counting needs nvdisasm, which few machines have. So the counts are kept in [`RECORD`]: where
//! ptxas and nvdisasm are, `cargo run -p book` writes that file, and the tests compare it.

use std::path::Path;

use gpu_gemm::device::ptx::with_one_kernel;
use gpu_gemm::gpu::Capability;
use gpu_gemm::gpu::occupancy::{Needs, Occupancy};
use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Kernel, Unit};
use host::explain::data_sheets;
use host::listing::sass;
use host::listing::statistics::Statistics;
use nvvm::{NvvmArch, Toolkit, nvdisasm, ptxas};

use crate::figures;
use crate::ladder::{kernel, of_floats};
use crate::listings::OUT_DIR;
use crate::repository::{at_root, read};

/// The counts, relative to the root of the repository.
pub const RECORD: &str = "docs/tool/machine-code.csv";

/// The variants that are counted: the first of each kernel, and others that chapters quote.
const ALSO: [&str; 5] = [
    "naive-1d-rows",
    "tiled-16",
    "register-blocked-sn16",
    "conflict-free-sn16",
    "double-buffer-sn16",
];

/// What a variant's machine code consists of.
#[derive(Debug)]
struct Counts {
    variant: String,
    registers: u32,
    instructions: usize,
    fmas: usize,
}

impl Counts {
    /// The share of FMAs among the instructions of the main loop.
    fn share(&self) -> f64 {
        self.fmas as f64 / self.instructions as f64
    }
}

/// Counts again, where that is possible: `None` where ptxas or nvdisasm is missing.
///
/// # Errors
///
/// A kernel is missing, or one of the two programs fails.
pub fn count() -> Result<Option<String>, String> {
    let (Some(toolkit), Some(nvdisasm)) = (Toolkit::find(), nvdisasm::find()) else {
        return Ok(None);
    };
    if toolkit.ptxas.is_none() {
        return Ok(None);
    }
    let ptx = read(&Path::new(OUT_DIR).join("kernels.ptx"))?;
    let mut text = "variant,registers,instructions,fmas\n".to_string();
    // The law is about CUDA cores.
    let on_cuda_cores = |kernel: &&&Kernel| {
        let mut variants = kernel.variants.iter();
        variants.all(|variant| variant.unit == Unit::CudaCores)
    };
    for &kernel in KERNELS.iter().filter(on_cuda_cores) {
        let first = of_floats(kernel).next().map(|variant| variant.name);
        let counted =
            of_floats(kernel).filter(|one| Some(one.name) == first || ALSO.contains(&one.name));
        for variant in counted {
            let entry = variant.entry.name;
            let alone =
                with_one_kernel(&ptx, entry).ok_or_else(|| format!("there is no `{entry}`"))?;
            let assembled = ptxas::assemble(&toolkit, &alone, NvvmArch::Compute90);
            let assembled = assembled.map_err(|error| error.to_string())?;
            let code = nvdisasm::disassemble(&nvdisasm, &assembled.cubin);
            let code = sass::parse(&code.map_err(|error| error.to_string())?, entry);
            let main_loop = Statistics::of(&code).main_loop;
            let main_loop = main_loop.ok_or_else(|| format!("`{entry}` has no main loop"))?;
            let mut reports = assembled.kernels.iter();
            let report = reports
                .find(|report| report.entry == entry)
                .ok_or_else(|| format!("ptxas reports nothing about `{entry}`"))?;
            text += &format!(
                "{},{},{},{}\n",
                variant.name, report.registers, main_loop.instructions, main_loop.multiply_adds
            );
        }
    }
    Ok(Some(text))
}

/// A figure of a variant's machine code: its `registers`, the `instructions` and `fmas` of its
/// main loop, or the `share` of FMAs among them.
///
/// # Errors
///
/// There is no such figure.
pub fn figure(arguments: &str) -> Result<String, String> {
    let (name, what) = arguments
        .split_once(' ')
        .ok_or_else(|| format!("`code {arguments}` is not `code VARIANT WHAT`"))?;
    let counts = record()?;
    let own = of(&counts, name)?;
    match what {
        "registers" => Ok(own.registers.to_string()),
        "instructions" => Ok(own.instructions.to_string()),
        "fmas" => Ok(own.fmas.to_string()),
        "share" => Ok(format!("{:.1} %", 100.0 * own.share())),
        _ => match what.strip_prefix("share-over ") {
            Some(other) => Ok(format!("{:.2}", own.share() / of(&counts, other)?.share())),
            None => Err(format!("`{what}` is no figure of machine code")),
        },
    }
}

/// The issue rate that the law leaves: instructions per clock of an SM, from speed and share.
///
/// # Errors
///
/// The variant was not measured or not counted.
pub fn issued(name: &str) -> Result<String, String> {
    let rate = 4.0 * figures::of_peak(name)? / of(&record()?, name)?.share();
    Ok(format!("{rate:.2}"))
}

/// The law, rung by rung: instructions, share of FMAs, speed as a share of peak, and the issue
/// rate that follows.
///
/// # Errors
///
/// A variant was not measured.
pub fn law() -> Result<String, String> {
    let mut table = "\n| kernel | FMAs / instructions of the main loop | share of FMAs | measured share of peak | issued per clock, by the law |\n| --- | --- | --- | --- | --- |\n".to_string();
    for counts in record()? {
        let name = counts.variant.as_str();
        if kernel("few-rows").is_ok_and(|few| of_floats(few).any(|one| one.name == name)) {
            continue; // not made for squares
        }
        table += &format!(
            "| `{name}` | {} / {} | {:.1} % | {:.1} % | {} |\n",
            counts.fmas,
            counts.instructions,
            100.0 * counts.share(),
            100.0 * figures::of_peak(name)?,
            issued(name)?
        );
    }
    Ok(table + "\n")
}

/// The occupancy of blocks of 8 x 8 and 16 x 16 threads with thread tiles of 8 x 8 and 128 registers,
/// on several GPUs.
///
/// # Errors
///
/// A GPU is missing.
pub fn occupancy() -> Result<String, String> {
    const GPUS: [&str; 3] = ["t4", "rtx4070", "h200"];
    const REGISTERS: u32 = 128;
    let gpus: Result<Vec<_>, String> = GPUS
        .iter()
        .map(|key| data_sheets::find(key).ok_or_else(|| format!("there is no `{key}`")))
        .collect();
    let gpus = gpus?;
    let mut table = "\n| block | block tile | shared memory, bytes |".to_string();
    for gpu in &gpus {
        let Capability { major, minor, .. } = gpu.capability;
        let name = gpu.name.trim_start_matches("NVIDIA ");
        table += &format!(" {name} ({major}.{minor}) |");
    }
    table += "\n| --- | --- | --- | --- | --- | --- |\n";
    for side in [16, 8] {
        for bk in [8, 16] {
            let tile = 8 * side;
            let shared_bytes = 4 * 2 * tile * bk;
            table += &format!("| {side} × {side} | {tile} × {tile} × {bk} | {shared_bytes} |");
            for gpu in &gpus {
                let needs = Needs {
                    threads: side * side,
                    registers: REGISTERS,
                    shared_bytes,
                };
                let Occupancy {
                    ctas, occupancy, ..
                } = Occupancy::of(gpu.capability, needs);
                table += &format!(" {:.0} %, {ctas} blocks |", 100.0 * occupancy);
            }
            table += "\n";
        }
    }
    Ok(table + "\n")
}

fn of<'a>(counts: &'a [Counts], name: &str) -> Result<&'a Counts, String> {
    let mut counts = counts.iter();
    counts
        .find(|one| one.variant == name)
        .ok_or_else(|| format!("{RECORD} has no `{name}`"))
}

fn record() -> Result<Vec<Counts>, String> {
    let text = read(&at_root(RECORD))?;
    let lines = text.lines().skip(1).map(|line| {
        let wrong = || format!("{RECORD}: `{line}`");
        let [variant, registers, instructions, fmas] = line.split(',').collect::<Vec<_>>()[..]
        else {
            return Err(wrong());
        };
        Ok(Counts {
            variant: variant.to_string(),
            registers: registers.parse().map_err(|_| wrong())?,
            instructions: instructions.parse().map_err(|_| wrong())?,
            fmas: fmas.parse().map_err(|_| wrong())?,
        })
    });
    lines.collect()
}
