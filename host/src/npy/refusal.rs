//! Why a file is not read.

use std::io::{self, ErrorKind};

use thiserror::Error;

use crate::output::clause;

/// An error in a file: a sentence that begins with the file's name.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    #[error("cannot be read: {}.", clause(.0))]
    Unreadable(io::Error),
    #[error(
        "is not a regular file, so its length cannot be checked against its header; copy it into one first."
    )]
    Irregular,
    #[error("is a folder; name a .npy file in it.")]
    Folder,
    #[error(
        "is an archive (.npz), and not one array; `unzip` makes a .npy file of each array in it."
    )]
    Archive,
    /// With a clause that says why.
    #[error("is not a whole .npy file, as `numpy.save` writes it: {0}.")]
    Damaged(String),
    #[error(
        "has a header that is damaged, or is not written as `numpy.save` writes it; if NumPy reads it, save it \
         again, with `numpy.save(path, numpy.load(path))`."
    )]
    Unusual,
    /// What it holds, and what to do instead: two clauses.
    #[error("{0}; {1}.")]
    Unfit(String, String),
    #[error(
        "has changed since the program started; run it again when nothing else writes the file."
    )]
    Changed,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        match error.kind() {
            ErrorKind::UnexpectedEof => damaged("it ends within its header"),
            _ => Refusal::Unreadable(error),
        }
    }
}

pub(super) fn damaged(why: impl Into<String>) -> Refusal {
    Refusal::Damaged(why.into())
}
