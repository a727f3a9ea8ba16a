//! The arguments of the program, and its subcommands.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::{Arg, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use super::fused::{EpilogueArguments, ScaleArguments};
use super::groups::GroupArguments;
use super::matrices::{MatrixArguments, ProblemArguments};
use super::native::NativeArguments;
use super::running::Running;
use super::{bench, environment, explain, opencl, ptx, tune};
use crate::report::Format;
use crate::select;

const EXIT_CODES: &str = "Exit codes: 0 if every result passes (and for --list and doctor); 1 if one is wrong \
                          or something failed at run time; 2 if the command line requests something that does not exist. \
                          SIGINT (Ctrl-C), SIGTERM and SIGHUP end it as signals do: a shell reports 130, 143 and 129.";

/// Runs, checks and times GEMM kernels written in Rust, on an NVIDIA GPU or on this machine's CPU.
///
/// Computes C = alpha * A * B + beta * C, where A is m x k and B is k x n, with random data or
/// the user's, and checks the result: exactly on integers, and within the bound of
/// rounding errors on other data.
#[derive(Debug, Parser)]
#[command(
    name = "rust-gemm",
    version,
    args_conflicts_with_subcommands = true,
    after_help = EXIT_CODES,
    after_long_help = format!("{EXIT_CODES}\n\n{}", environment::help())
)]
pub struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,

    /// Kernels, variants or CPU rungs to run; `auto` for the kernel that suits the shape, `all`
    /// for the GPU's ladder, `cpu` for the CPU's, a pattern such as `async-*` for all that it
    /// matches; `--list` shows them [default: double-buffer, or else the highest rung that
    /// multiplies the type; for files the fastest, `auto` on a GPU and a CPU rung without one]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) kernel: Vec<String>,

    /// Show the kernels with their variants, and the CPU rungs, in the format of `--format`
    #[arg(long)]
    pub(super) list: bool,

    #[command(flatten)]
    pub(super) problem: ProblemArguments,

    #[command(flatten)]
    pub(super) grouped: GroupArguments,

    #[command(flatten)]
    pub(super) fused: EpilogueArguments,

    #[command(flatten)]
    pub(super) quantised: ScaleArguments,

    /// How to write the report
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,

    #[command(flatten)]
    pub(super) running: Running,

    #[command(flatten)]
    pub(super) native: NativeArguments,

    #[command(flatten)]
    pub(super) matrices: MatrixArguments,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Prove and time kernels at several sizes, beside cuBLAS: a table, JSON, Markdown and plots
    Bench(Box<bench::Arguments>),
    /// Explain a kernel: launches, traffic, roofline, registers and occupancy
    Explain(explain::Arguments),
    /// Measure the fastest kernels on this GPU for `--kernel auto`, and store the result
    Tune(tune::Arguments),
    /// Check for driver, GPUs, PTX, libNVVM and cuBLAS, and say how to get those that are missing
    Doctor,
    /// Show the PTX or the machine code of a kernel beside the Rust lines it came from
    Ptx(ptx::Ptx),
    /// Show a kernel in OpenCL C beside the Rust lines it came from
    #[command(name = "opencl")]
    OpenCl(opencl::OpenCl),
    /// Write a script for completions: `rust-gemm completions bash`
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// An option for kernels, which the shell completes. The program itself also takes patterns.
fn kernels(option: Arg) -> Arg {
    option.value_parser(PossibleValuesParser::new(select::names()))
}

/// Writes a script that makes the shell complete options, subcommands and kernels.
pub(super) fn completions(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let mut script = Vec::new();
    let mut command = Arguments::command().mut_arg("kernel", kernels);
    for subcommand in ["bench", "explain", "ptx", "opencl"] {
        command = command.mut_subcommand(subcommand, |of| of.mut_arg("kernel", kernels));
    }
    // It panics if it cannot write, so it writes to memory.
    clap_complete::generate(shell, &mut command, "rust-gemm", &mut script);
    out.write_all(&script)
}
