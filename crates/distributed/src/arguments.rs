//! What may be asked on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use gpu_gemm::{DeviceChoice, Shape};
use host::cli::matrices::{MatrixArguments, ProblemArguments};
use host::cli::native::NativeArguments;
use host::cli::sizes::{shape, size};

use crate::comm::LARGEST;
use crate::layout::{Layout, layouts};

/// The kernel by default: it takes every type of more than 16 bits, and needs neither a GPU nor
/// patience.
pub const KERNEL: &str = "cpu-rows";

/// What `--threads` says here: `mpirun` starts a rank for each core.
const THREADS: &str =
    "Threads of each rank's CPU rung, if it is one that shares out its work [default: 1]";

/// What `--layout` takes for all of them.
const ALL: &str = "all";

/// Multiplies matrices on many ranks over MPI, in five layouts: checks each result, measures where
/// the time of each rank goes and what it sends, and compares both with formulas.
///
/// Start it with mpirun: `mpirun -n 4 gemm-mpi --layout summa --size 2048`. Rank 0 reads or fills
/// A and B, checks C as `rust-gemm` does, and writes the report.
#[derive(Debug, Parser)]
#[command(name = "gemm-mpi", version)]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub struct Arguments {
    /// Layouts, or `all`
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values = ["scatter-rows"], value_parser = layout_names())]
    pub layout: Vec<String>,

    /// What multiplies on each rank: a CPU rung, a GPU kernel or `auto`; `rust-gemm --list` shows
    /// them
    #[arg(long, value_name = "NAME", default_value = KERNEL)]
    pub kernel: String,

    #[command(flatten)]
    pub problem: ProblemArguments,

    /// Several shapes, such as `1000x777x123,2048x2048x2048` (m x n x k)
    #[arg(long, value_name = "MxNxK", value_delimiter = ',', conflicts_with_all = ["size", "m", "n", "k", "a"], value_parser = shape)]
    pub shapes: Vec<Shape>,

    /// Columns of A and rows of B in one panel, for the layouts that have panels [default: 256;
    /// where ranks multiply on GPUs, a quarter of k, but at least 256]
    #[arg(long, value_parser = panel)]
    pub panel: Option<usize>,

    /// Numbers of ranks to measure, such as `1,2,4`: each on the first ranks of the job, while the
    /// others sleep [default: all ranks of the job]
    #[arg(long, value_name = "RANKS", value_delimiter = ',', value_parser = ranks)]
    pub scaling: Vec<usize>,

    #[command(flatten)]
    pub native: NativeArguments,

    /// Where GPU kernels run: `auto` (the GPU with the rank's number on its host, if there is one),
    /// `cuda:NUMBER` or `sim`
    #[arg(long, default_value_t = DeviceChoice::Auto)]
    pub device: DeviceChoice,

    #[command(flatten)]
    pub matrices: MatrixArguments,

    /// The seed of the random data
    #[arg(long, default_value_t = 42)]
    pub seed: u64,

    /// Timed runs [default: 3 to 10, as many as fit into two seconds]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,

    /// How to write the report
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Where C is checked [default: `gathered`, unless it does not fit into rank 0's memory]
    #[arg(long, value_name = "WHERE", value_enum)]
    pub check: Option<CheckPlace>,

    #[command(flatten)]
    pub files: FileArguments,

    #[command(flatten)]
    pub model: ModelArguments,

    /// Say which process on which host is which rank, for debuggers, before anything is multiplied
    #[arg(long)]
    pub show_ranks: bool,

    /// Makes this rank panic, so that tests see what becomes of the others
    #[arg(long, value_name = "RANK", hide = true)]
    pub panic_on_rank: Option<usize>,

    /// Makes an element of this rank's block wrong where C is not gathered, so that tests see that
    /// it is noticed
    #[arg(long, value_name = "RANK", hide = true)]
    pub plant_on_rank: Option<usize>,
}

/// The values of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

/// The values of `--check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckPlace {
    /// On rank 0, which collects C
    Gathered,
    /// Each rank keeps its block and says its sums, which rank 0 judges: vectors travel, C does not
    Distributed,
}

/// Files besides the matrices.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub struct FileArguments {
    /// Write the report to this file as JSON, too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write plots to this folder: where the time goes, and strong scaling; or what is predicted
    #[arg(long, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,
}

/// What the model is to predict.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArguments {
    /// Only predict: time and memory of every layout on 1 to 65536 ranks. What is not given of the
    /// machine is measured: messages between two ranks, and products while all multiply
    #[arg(long, conflicts_with_all = ["layout", "shapes", "scaling", "runs", "format", "json", "out", "show"])]
    pub predict: bool,

    /// Latency of a message, in microseconds
    #[arg(long, value_name = "MICROSECONDS", value_parser = positive, requires = "predict")]
    pub latency: Option<f64>,

    /// Bandwidth between two ranks, in GB/s (10^9 bytes)
    #[arg(long, value_name = "GB/S", value_parser = positive, requires = "predict")]
    pub bandwidth: Option<f64>,

    /// Speed of one rank's product, in GFLOP/s
    #[arg(long, value_name = "GFLOP/S", value_parser = positive, requires = "predict")]
    pub flops: Option<f64>,

    /// Memory of one rank, in GiB [default: this machine's over the ranks on it]
    #[arg(long, value_name = "GIB", value_parser = positive, requires = "predict")]
    pub memory: Option<f64>,
}

fn layout_names() -> clap::builder::PossibleValuesParser {
    let names = layouts::<f32>()
        .map(|layout| clap::builder::PossibleValue::new(layout.name()).help(layout.idea()));
    let all = clap::builder::PossibleValue::new(ALL).help("Each of them");
    clap::builder::PossibleValuesParser::new(names.into_iter().chain([all]))
}

impl Arguments {
    /// The names of the layouts that are asked for, each once.
    pub fn layouts(&self) -> Vec<&'static str> {
        let is_asked = |name: &&str| {
            self.layout
                .iter()
                .any(|asked| asked == name || asked == ALL)
        };
        layouts::<f32>()
            .map(Layout::name)
            .into_iter()
            .filter(is_asked)
            .collect()
    }
}

fn panel(text: &str) -> Result<usize, String> {
    size(text).and_then(|width| match width {
        0 => Err("a panel has at least one column".to_string()),
        width if width > LARGEST => Err(format!("MPI counts at most {LARGEST} columns")),
        width => Ok(width),
    })
}

fn ranks(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|ranks| *ranks > 0)
        .ok_or_else(|| "a number of ranks is at least 1".to_string())
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or_else(|| "it must be a number above 0".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(text: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("gemm-mpi").chain(text.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn all_is_every_layout_and_each_is_measured_once() {
        let names = |text| parse(text).unwrap().layouts();
        assert_eq!(names(""), ["scatter-rows"]);
        assert_eq!(
            names("--layout summa,point-to-point,summa"),
            ["point-to-point", "summa"]
        );
        assert_eq!(names("--layout all").len(), layouts::<f32>().len());
    }

    #[test]
    fn nonsense_is_refused() {
        let wrong = "--layout rows|--shapes 3x4|--shapes 3x4x5 --size 9|--scaling 0|--panel 0|\
            --panel 2147483648|--predict --layout all|--predict --json report.json|--latency 3|\
            --predict --latency -3|--runs 0";
        for text in wrong.split('|') {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(
            parse("--shapes 1kx2x0").unwrap().shapes,
            [Shape::new(1024, 2, 0)]
        );
    }
}
