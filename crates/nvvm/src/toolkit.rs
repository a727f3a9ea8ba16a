//! What a found libNVVM consists of.

use std::path::{Path, PathBuf};

use crate::Origin;

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

/// The path of `libnvvm.so` below the root of an SDK or of the wheel. Distributions rename `lib64`.
const LIBRARY_FOLDERS: [&str; 2] = ["nvvm/lib64", "nvvm/lib"];

/// `libnvvm.so` by its names; an SDK has all three, a distribution's runtime package only the
/// last ones.
const LIBRARY_NAMES: [&str; 3] = ["libnvvm.so", "libnvvm.so.4", "libnvvm.so.3"];

impl Toolkit {
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

/// The libNVVM in this very folder.
fn library_in(folder: &Path) -> Option<PathBuf> {
    LIBRARY_NAMES
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}
