//! A shared library that is found when the program runs: nothing is linked.

use std::path::{Path, PathBuf};

use libloading::Library;

use super::status::CublasError;

/// A library that is loaded, and where it was found.
pub(super) struct Loaded {
    library: Library,
    path: PathBuf,
}

impl Loaded {
    /// The first of these files that can be loaded.
    ///
    /// # Safety
    ///
    /// Each existing file is a library that may be initialised without preconditions.
    pub unsafe fn first_of(candidates: impl IntoIterator<Item = PathBuf>) -> Option<Loaded> {
        candidates.into_iter().find_map(|path| {
            // SAFETY: the caller vouches for it.
            let library = unsafe { Library::new(&path) }.ok()?;
            Some(Loaded { library, path })
        })
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks up a function.
    ///
    /// # Safety
    ///
    /// The function is of type `F`.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, CublasError> {
        // SAFETY: the caller vouches for the type.
        let found = unsafe { self.library.get::<F>(name) };
        let found = found.map(|function| *function);
        found.map_err(|error| CublasError::Unusable {
            path: self.path.clone(),
            reason: error.to_string(),
        })
    }
}
