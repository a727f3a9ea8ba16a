//! What a found libNVVM consists of, and where it came from.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{Error, Search};

/// libNVVM and what comes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolkit {
    /// The shared library.
    pub libnvvm: PathBuf,
    /// `libdevice.10.bc`, the maths functions of the device (`__nv_expf` and its like).
    pub libdevice: Option<PathBuf>,
    /// The assembler from PTX to machine code; compiling does not need it.
    pub ptxas: Option<PathBuf>,
    /// Where all of it was found.
    pub origin: Origin,
}

/// Where a [`Toolkit`] was found; displays as the words to say so.
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

/// The path of `libnvvm.so` below the root of an SDK or of the wheel. Distributions rename `lib64`.
const LIBRARY_FOLDERS: [&str; 2] = ["nvvm/lib64", "nvvm/lib"];

/// `libnvvm.so` by its names; an SDK has all three, a distribution's runtime package only the
/// last ones.
const LIBRARY_NAMES: [&str; 3] = ["libnvvm.so", "libnvvm.so.4", "libnvvm.so.3"];

impl Toolkit {
    /// Looks for libNVVM where [`Search`] says, and never fetches it.
    ///
    /// `None` also if `LIBNVVM_PATH` is set to something that does not exist.
    pub fn find() -> Option<Toolkit> {
        Search::from_environment().find().ok().flatten()
    }

    /// Looks for libNVVM where [`Search`] says, else fetches it, once for this user.
    ///
    /// # Errors
    ///
    /// If it is not available, with the reason and what to do.
    pub fn find_or_fetch() -> Result<Toolkit, Error> {
        Search::from_environment().find_or_fetch()
    }

    /// The toolkit below the root of an SDK, if libNVVM is there.
    pub(crate) fn below(root: &Path, origin: Origin) -> Option<Toolkit> {
        LIBRARY_FOLDERS
            .iter()
            .find_map(|folder| Toolkit::in_library_folder(&root.join(folder), origin.clone()))
    }

    /// The toolkit whose `libnvvm.so` is in this very folder, if it is.
    pub(crate) fn in_library_folder(folder: &Path, origin: Origin) -> Option<Toolkit> {
        Some(Toolkit::around(library_in(folder)?, origin))
    }

    /// The toolkit around a `libnvvm.so`: its other files are at the same relative paths as in an
    /// SDK.
    pub(crate) fn around(libnvvm: PathBuf, origin: Origin) -> Toolkit {
        // ROOT/nvvm/lib64/libnvvm.so, ROOT/nvvm/libdevice/libdevice.10.bc, ROOT/bin/ptxas
        let beside = |levels_up: usize, path: &str| {
            let found = libnvvm.ancestors().nth(levels_up)?.join(path);
            found.is_file().then_some(found)
        };
        Toolkit {
            libdevice: beside(2, "libdevice/libdevice.10.bc"),
            ptxas: beside(3, "bin/ptxas"),
            libnvvm,
            origin,
        }
    }
}

/// The libNVVM that lies in this very folder.
fn library_in(folder: &Path) -> Option<PathBuf> {
    LIBRARY_NAMES
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}
