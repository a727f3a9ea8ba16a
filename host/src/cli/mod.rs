//! The command line: what may be asked, and the exit code that answers.

mod bench;
mod explain;
mod matrices;
mod multiply;
mod ptx;
mod tune;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::cpu::{self, Schedule, strassen};
use crate::device::DeviceChoice;
use crate::doctor;
use crate::element::DataType;
use crate::evaluate::Baseline;
use crate::interrupt;
use crate::measure::Effort;
use crate::report::{self, Format};
use matrices::MatrixArguments;

/// Runs, proves and times GEMM kernels written in Rust, on an NVIDIA GPU or on this machine's CPU.
///
/// Computes C = alpha * A * B + beta * C, where A is m x k and B is k x n, with random data or the user's, and proves the
/// result: exactly on small integers, and within the bound of rounding errors on other data.
#[derive(Debug, Parser)]
#[command(
    name = "host",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Exit codes: 0 if every result is proven right (and for --list and doctor); 1 if one is wrong or \
                  something failed at run time; 2 if the command line asks for what there is not; 130 if it was \
                  interrupted."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Kernels, variants or CPU rungs to run; `auto` for the kernel that suits the shape, `all` for the GPU's ladder, `cpu` for the CPU's; `--list` shows them [default:
    /// double-buffer, or else the highest rung that multiplies the type]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    kernel: Vec<String>,

    /// Show the kernels with their variants, and the CPU rungs
    #[arg(long)]
    list: bool,

    /// m, n and k, where they are not given themselves
    #[arg(long, default_value_t = 1024, conflicts_with = "a")]
    size: usize,

    /// Rows of A and C
    #[arg(long)]
    m: Option<usize>,

    /// Columns of B and C
    #[arg(long)]
    n: Option<usize>,

    /// Columns of A, rows of B
    #[arg(long)]
    k: Option<usize>,

    /// The type of the elements [default: that of the files, or f32]
    #[arg(long, value_enum)]
    dtype: Option<DataType>,

    /// The factor of A * B
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    alpha: f64,

    /// The factor of the C that was there; 0 does not read it
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    beta: f64,

    /// How to write the report
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    #[command(flatten)]
    running: Running,

    /// Threads of the CPU rungs that share out their work [default: as many as the machine has]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// How CPU rungs share out their work
    #[arg(long, value_enum, default_value_t = Schedule::Static)]
    schedule: Schedule,

    /// The size that `cpu-strassen` no longer halves
    #[arg(long, default_value_t = strassen::CUTOFF)]
    cutoff: usize,

    #[command(flatten)]
    matrices: MatrixArguments,
}

impl Arguments {
    /// What is chosen for the CPU rungs.
    fn cpu(&self) -> cpu::Settings {
        cpu::Settings {
            threads: self.threads.map(usize::from),
            schedule: self.schedule,
            cutoff: self.cutoff,
        }
    }
}

/// Where and how often to run: the same for one call and for a benchmark.
#[derive(Debug, Args)]
struct Running {
    /// The seed of the random data
    #[arg(long, default_value_t = 42)]
    seed: u64,

    /// Where to run: `auto` (a GPU if there is one), `cuda`, `cuda:NUMBER` or `sim`
    #[arg(long, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,

    /// Timed runs [default: up to 20 on a GPU, 1 on the simulator, up to 10 of a CPU rung]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: Option<u32>,

    /// Runs before the timed ones, besides those that prove the result [default: up to 3 on a GPU, else 0]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warmup: Option<u32>,

    /// What to compare times with, on a GPU
    #[arg(long, value_enum, default_value_t = Baseline::Auto)]
    baseline: Baseline,
}

impl Running {
    fn effort(&self) -> Effort {
        Effort {
            runs: self.runs,
            warmup: self.warmup,
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prove and time kernels at several sizes, beside cuBLAS: a table, JSON, CSV, Markdown and plots
    Bench(Box<bench::Arguments>),
    /// Explain a kernel: traffic, roofline, registers, occupancy, and a drawing of its tiles
    Explain(explain::Arguments),
    /// Measure which kernels `--kernel auto` is to run on this GPU, and keep the answer
    Tune(tune::Arguments),
    /// Say what is there of driver, GPUs, PTX, libNVVM and cuBLAS, and what to do about what is not
    Doctor,
    /// Show the PTX or the machine code of a kernel beside the Rust lines it came from
    Ptx(ptx::Ptx),
}

/// Every result is proven right.
const PROVEN: u8 = 0;
/// A result is wrong, or something failed at run time.
const FAILED: u8 = 1;
/// The command line asks for what there is not.
const USAGE: u8 = 2;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    if let Err(error) = interrupt::watch() {
        // A note that nobody reads changes nothing.
        let _ = writeln!(
            io::stderr(),
            "note: Ctrl-C may leave a temporary file behind, as it cannot be watched for: {error}."
        );
    }
    ExitCode::from(run(
        std::env::args_os(),
        &mut io::stdout().lock(),
        &mut io::stderr(),
    ))
}

/// Runs a command line, the report going to `out` and notes and errors to `notes`. A reader of either that goes away early
/// changes nothing.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let text = error.render();
            let written = match error.use_stderr() {
                true => write!(notes, "{text}"),
                false => write!(out, "{text}"),
            };
            return finish(written, notes, error.exit_code() as u8);
        }
    };
    match &arguments.command {
        Some(Command::Bench(arguments)) => return bench::bench(arguments, out, notes),
        Some(Command::Explain(arguments)) => return explain::explain(arguments, out, notes),
        Some(Command::Tune(arguments)) => return tune::tune(arguments, out, notes),
        Some(Command::Doctor) => {
            let written = doctor::examine(out);
            return finish(written, notes, PROVEN);
        }
        Some(Command::Ptx(asked)) => return ptx::ptx(asked, out, notes),
        None => {}
    }
    if arguments.list {
        let kernels = report::list(gpu_kernels::KERNELS);
        let written = writeln!(out, "{kernels}\n\n{}", report::list_cpu(cpu::RUNGS));
        return finish(written, notes, PROVEN);
    }
    multiply::multiply(&arguments, out, notes)
}

fn fail(notes: &mut dyn Write, error: &dyn std::error::Error, code: u8) -> u8 {
    // Nobody reads the notes: the exit code still says it.
    let _ = writeln!(notes, "error: {error}");
    code
}

/// The exit code, unless the report could not be written. A reader that has gone away has read what it wanted.
fn finish(written: io::Result<()>, notes: &mut dyn Write, code: u8) -> u8 {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(notes, "error: The report cannot be written: {error}.");
            FAILED
        }
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(arguments: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once(&"host").chain(arguments))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_as_documented() {
        let arguments = parse(&[]).unwrap();
        assert_eq!(arguments.kernel, [""; 0]);
        assert_eq!(crate::select::DEFAULT, "double-buffer"); // as the help says
        assert_eq!(arguments.size, 1024);
        assert_eq!(arguments.dtype, None);
        assert_eq!((arguments.alpha, arguments.beta), (1.0, 0.0));
        assert_eq!(arguments.running.device, DeviceChoice::Auto);
        assert_eq!(arguments.format, Format::Table);
        assert_eq!(arguments.running.baseline, Baseline::Auto);
        assert_eq!(arguments.cpu(), cpu::Settings::default());
    }

    #[test]
    fn kernels_are_separated_by_commas_and_scalars_may_be_negative() {
        let arguments = parse(&[
            "--kernel",
            "naive,tiled",
            "--alpha",
            "-1.5",
            "--beta=-2",
            "--m",
            "3",
        ])
        .unwrap();
        assert_eq!(arguments.kernel, ["naive", "tiled"]);
        assert_eq!((arguments.alpha, arguments.beta), (-1.5, -2.0));
        assert_eq!((arguments.m, arguments.n), (Some(3), None));
    }

    #[test]
    fn nonsense_is_refused_with_the_exit_code_for_usage() {
        for arguments in [
            &["--size", "-1"][..],
            &["--runs", "0"],
            &["--threads", "0"],
            &["--schedule", "fair"],
            &["--dtype", "f16"],
            &["--device", "gpu"],
            &["--format", "xml"],
            &["--unknown"],
            &["doctor", "--size", "3"],
            &["--a", "a.npy"],
            &["--b", "b.npy"],
            &["--c", "c.npy"],
            &["--a", "a.npy", "--b", "b.npy", "--size", "3"],
            &["--a", "a.npy", "--b", "b.npy", "--data", "normal"],
            &["--data", "zeros"],
            &["--show", "0"],
        ] {
            assert_eq!(
                parse(arguments).unwrap_err().exit_code(),
                i32::from(USAGE),
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn a_reader_that_goes_away_does_not_change_the_exit_code() {
        let gone = || Err(io::ErrorKind::BrokenPipe.into());
        assert_eq!(finish(gone(), &mut io::sink(), PROVEN), PROVEN);
        assert_eq!(finish(gone(), &mut io::sink(), FAILED), FAILED);
        let full = Err(io::ErrorKind::StorageFull.into());
        assert_eq!(finish(full, &mut io::sink(), PROVEN), FAILED);
    }
}
