//! Which matrices to multiply: the options for the user's files and for other data, and the
//! matrices that they select.

use std::fmt::Display;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{Stop, usage};
use super::operands::OperandArguments;
use super::sizes::size;
use super::values;
use crate::data::{Data, Granularity};
use crate::report::Corner;
use crate::rung::Asked;
use crate::source::{Files, Source};
use gpu_gemm::{DataType, Device, Shape};

/// m, n and k.
#[derive(Debug, Args)]
pub struct ShapeArguments {
    /// m, n and k, unless they are given one by one: a number, or 4k for 4096 [default: 4096 where
    /// `rust-gemm` explains kernels or runs them on a CUDA GPU, else 1024]
    #[arg(long, value_parser = size)]
    pub size: Option<usize>,

    /// Rows of A and C
    #[arg(long, value_parser = size)]
    pub m: Option<usize>,

    /// Columns of B and C
    #[arg(long, value_parser = size)]
    pub n: Option<usize>,

    /// Columns of A, rows of B
    #[arg(long, value_parser = size)]
    pub k: Option<usize>,
}

/// The problem: C = alpha * A * B + beta * C, where A is m x k and B is k x n.
#[derive(Debug, Args)]
pub struct ProblemArguments {
    #[command(flatten)]
    pub dimensions: ShapeArguments,

    /// The type of the elements [default: that of the files, else f32, or the first that the kernels
    /// multiply]
    #[arg(long, value_name = "TYPE", value_parser = values::data_type())]
    pub dtype: Option<DataType>,

    #[command(flatten)]
    pub operands: OperandArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Matrices")]
pub struct MatrixArguments {
    /// Read A from this .npy file: a matrix as `numpy.save` writes it, in C or Fortran order, or a
    /// batch of them, in three dimensions. Its shape and type are the problem's
    #[arg(long, value_name = "A.npy", requires = "b", conflicts_with_all = ["size", "padding"])]
    a: Option<PathBuf>,

    /// Read B from this .npy file
    #[arg(long, value_name = "B.npy", requires = "a")]
    b: Option<PathBuf>,

    /// Read the old C from this .npy file, if beta is not 0
    #[arg(long, value_name = "C.npy", requires = "a")]
    c: Option<PathBuf>,

    /// Write the resulting C to this .npy file, in C order, if it passes; otherwise the
    /// file stays unchanged. A pipe or a device, such as /dev/stdout, is written to; the report
    /// then goes to standard error. A CPU rung then has one timed run, unless `--runs` says more
    #[arg(long, value_name = "D.npy")]
    pub out: Option<PathBuf>,

    /// What fills the matrices [default: normal]
    #[arg(long, conflicts_with = "a", value_enum)]
    data: Option<Data>,

    /// Show the top-left corner of the resulting C, such as `5` for 5 rows and columns, or `5x8`
    #[arg(long, value_name = "ROWS[xCOLUMNS]")]
    pub show: Option<Corner>,
}

/// The matrices to multiply.
#[derive(Debug)]
pub struct Matrices {
    pub source: Source,
    pub data_type: DataType,
    /// A note for the user, as a sentence.
    pub note: Option<String>,
}

/// The default of m, n and k: enough to fill the largest GPU, or as much as a CPU multiplies in a
/// few seconds.
pub(super) fn default_size(asked: &[Asked], device: &Device) -> usize {
    match device.gpu() {
        Some(_) if !asked.iter().any(|asked| asked.is_native()) => 4096,
        Some(_) | None => 1024,
    }
}

impl ShapeArguments {
    /// The shape; m, n and k are `default_size` unless they are given.
    pub fn shape(&self, default_size: usize) -> Shape {
        let size = self.size.unwrap_or(default_size);
        let [m, n, k] = [self.m, self.n, self.k].map(|dimension| dimension.unwrap_or(size));
        Shape { m, n, k }
    }
}

impl ProblemArguments {
    /// The shape of these matrices.
    pub fn shape(&self, source: &Source, default_size: usize) -> Shape {
        match source {
            Source::Files(files) => files.shape(),
            Source::Filled(_) => self.dimensions.shape(default_size),
        }
    }
}

/// Reads the options, and the headers of the files. Where neither gives the type, it is
/// `otherwise`; with `scales` it is e4m3, to which the files are quantised.
pub fn matrices(
    problem: &ProblemArguments,
    options: &MatrixArguments,
    otherwise: DataType,
    scales: Option<Granularity>,
) -> Result<Matrices, Stop> {
    let MatrixArguments {
        a, b, c, data, out, ..
    } = options;
    if let Some(out) = out {
        for (option, input) in [("--a", a), ("--b", b), ("--c", c)] {
            let is_input = input.as_deref().is_some_and(|input| is_same(out, input));
            if is_input {
                return Err(usage(format!(
                    "--out would replace `{}`, which is {option}; name another file.",
                    out.display()
                )));
            }
        }
    }
    let (Some(a), Some(b)) = (a, b) else {
        return Ok(Matrices {
            source: Source::Filled(data.unwrap_or(Data::Normal)),
            data_type: match scales {
                Some(_) => DataType::E4M3,
                None => problem.dtype.unwrap_or(otherwise),
            },
            note: None,
        });
    };
    let transposes = problem.operands.transposes();
    let files = Files::open(a, b, c.as_deref(), transposes, problem.operands.beta)?;
    let (shape, data_type) = (files.shape(), files.data_type());
    for (option, name, asked, found) in [
        ("--m", "m", problem.dimensions.m, shape.m),
        ("--n", "n", problem.dimensions.n, shape.n),
        ("--k", "k", problem.dimensions.k, shape.k),
    ] {
        agree(option, name, asked, found)?;
    }
    let batch = Some(problem.operands.batch).filter(|batch| *batch > 1);
    agree("--batch", "the batch size", batch, files.batch())?;
    let data_type = match problem.dtype {
        _ if scales.is_some() && files.can_be_quantised() => DataType::E4M3,
        _ if scales.is_some() => {
            return Err(usage(format!(
                "--scales quantises f32, f64, bf16 and f16, but the files hold {}; leave out --scales.",
                data_type.inputs
            )));
        }
        Some(asked) if files.can_be(asked) => asked,
        asked => {
            agree("--dtype", "the type", asked, data_type)?;
            data_type
        }
    };
    let note = c.as_ref().filter(|_| problem.operands.beta == 0.0);
    Ok(Matrices {
        source: Source::Files(files),
        data_type,
        note: note.map(|c| format!("`{}` is not read, because beta is 0.", c.display())),
    })
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path| Some(fs::metadata(path).ok()?).map(|file| (file.dev(), file.ino()));
    identity(one).is_some_and(|file| identity(other) == Some(file))
}

/// Checks that an option, if it is given, agrees with the files.
fn agree<T: PartialEq + Display>(
    option: &str,
    name: &str,
    asked: Option<T>,
    found: T,
) -> Result<(), Stop> {
    match asked {
        Some(asked) if asked != found => Err(usage(format!(
            "{option} is {asked}, but in the files {name} is {found}; leave out {option}."
        ))),
        _ => Ok(()),
    }
}
