//! Where a libNVVM was found.

use std::{fmt, path::PathBuf};

/// Where a [`Toolkit`](crate::Toolkit) was found; displays as the words to say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An environment variable that the user has set to it, by its name.
    Variable(&'static str),
    /// A folder where a CUDA SDK is usually installed.
    Folder(PathBuf),
    /// The wheel, installed in this folder of Python packages.
    InstalledWheel { wheel: String, folder: PathBuf },
    /// The wheel, fetched into this folder of ours.
    FetchedWheel { wheel: String, folder: PathBuf },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Variable(name) => f.write_str(name),
            Origin::Folder(folder) => write!(f, "{}", folder.display()),
            Origin::InstalledWheel { wheel, folder } => {
                write!(f, "the wheel {wheel}, installed in {}", folder.display())
            }
            Origin::FetchedWheel { wheel, folder } => {
                write!(f, "the wheel {wheel}, fetched into {}", folder.display())
            }
        }
    }
}
