//! Which matrices to multiply: the options for the user's files and for what fills matrices else, and what they come to.

use std::path::PathBuf;

use clap::Args;
use thiserror::Error;

use super::{Arguments, FAILED, USAGE};
use crate::element::DataType;
use crate::problem::Shape;
use crate::report::Corner;
use crate::source::{Files, FilesError, Filling, Source};

#[derive(Debug, Args)]
#[command(next_help_heading = "Matrices")]
pub(super) struct MatrixArguments {
    /// Read A from this .npy file: a matrix as `numpy.save` writes it, in C or Fortran order. Its shape and type are the
    /// problem's
    #[arg(long, value_name = "A.npy", requires = "b")]
    a: Option<PathBuf>,

    /// Read B from this .npy file
    #[arg(long, value_name = "B.npy", requires = "a")]
    b: Option<PathBuf>,

    /// Read the C that was there from this .npy file, where beta is not 0
    #[arg(long, value_name = "C.npy", requires = "a")]
    c: Option<PathBuf>,

    /// Write the resulting C to this .npy file, in C order, if it is proven right; else the file stays as it was
    #[arg(long, value_name = "D.npy")]
    pub(super) out: Option<PathBuf>,

    /// What fills the matrices [default: `uniform` to prove with and `normal` to time]
    #[arg(long, value_enum, conflicts_with = "a")]
    data: Option<Filling>,

    /// Show the top-left corner of the resulting C: so many rows and columns, such as `5` or `5x8`
    #[arg(long, value_name = "ROWS[xCOLUMNS]")]
    pub(super) show: Option<Corner>,
}

/// The matrices to multiply.
#[derive(Debug)]
pub(super) struct Matrices {
    pub(super) source: Source,
    pub(super) shape: Shape,
    pub(super) data_type: DataType,
    /// What the user may not expect: a sentence.
    pub(super) note: Option<String>,
}

/// Why the options come to nothing.
#[derive(Debug, Error)]
pub(super) enum MatricesError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error("{option} is {asked}, but in the files {name} is {found}; leave out {option}.")]
    Contradiction {
        option: &'static str,
        name: &'static str,
        asked: String,
        found: String,
    },
}

impl MatricesError {
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            MatricesError::Files(FilesError::File(_)) => FAILED,
            _ => USAGE,
        }
    }
}

/// Reads the options, and the headers of the files.
pub(super) fn matrices(arguments: &Arguments) -> Result<Matrices, MatricesError> {
    let MatrixArguments { a, b, c, data, .. } = &arguments.matrices;
    let (Some(a), Some(b)) = (a, b) else {
        let size = arguments.size;
        return Ok(Matrices {
            source: data.map_or(Source::Suitable, Source::Filled),
            shape: Shape {
                m: arguments.m.unwrap_or(size),
                n: arguments.n.unwrap_or(size),
                k: arguments.k.unwrap_or(size),
            },
            data_type: arguments.dtype.unwrap_or(DataType::F32),
            note: None,
        });
    };
    let files = Files::open(a, b, c.as_deref(), arguments.beta)?;
    let (shape, data_type) = (files.shape(), files.data_type());
    for (option, name, asked, found) in [
        ("--m", "m", arguments.m, shape.m),
        ("--n", "n", arguments.n, shape.n),
        ("--k", "k", arguments.k, shape.k),
    ] {
        agree(option, name, asked, found)?;
    }
    agree("--dtype", "the type", arguments.dtype, data_type)?;
    let note = c.as_ref().filter(|_| arguments.beta == 0.0);
    Ok(Matrices {
        source: Source::Files(files),
        shape,
        data_type,
        note: note.map(|c| format!("`{}` is not read, because beta is 0.", c.display())),
    })
}

/// Whether an option says what the files say, if it is given.
fn agree<T: PartialEq + ToString>(
    option: &'static str,
    name: &'static str,
    asked: Option<T>,
    found: T,
) -> Result<(), MatricesError> {
    match asked {
        Some(asked) if asked != found => Err(MatricesError::Contradiction {
            option,
            name,
            asked: asked.to_string(),
            found: found.to_string(),
        }),
        _ => Ok(()),
    }
}
