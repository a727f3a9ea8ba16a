//! Keeps the fetched wheel: whole or not at all, whoever else builds at the same time.
//!
//! ```text
//! CACHE/nvvm-12.9.86/              the entry; every file's SHA-256 is known and checked before it is used
//! CACHE/nvvm-12.9.86.lock          held while the entry is made
//! CACHE/nvvm-12.9.86.partial-XXX/  the entry in the making; renamed when it is whole
//! ```
//!
//! A process that is killed half-way leaves a partial folder, which nobody takes for the entry and the next
//! one to hold the lock deletes. The operating system drops the lock of a process that ends, however it ends.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::{Error, Wheel};

/// The wheel's folder in the cache, if it is there and unharmed.
pub(crate) fn find(cache: &Path, wheel: &Wheel) -> Option<PathBuf> {
    let entry = cache.join(wheel.folder);
    wheel.is_whole_in(&entry).then_some(entry)
}

/// The wheel's folder in the cache. Where it is missing or harmed, `fill` makes it anew, in an empty folder
/// that it is given; among processes that ask at the same time, one fills and the others wait for it.
pub(crate) fn find_or_fill(
    cache: &Path,
    wheel: &Wheel,
    fill: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let failed = |doing| {
        move |source| Error::Cache {
            folder: cache.to_owned(),
            doing,
            source,
        }
    };
    fs::create_dir_all(cache).map_err(failed("creating it"))?;
    let lock = File::create(cache.join(format!("{}.lock", wheel.folder)))
        .map_err(failed("creating a lock file"))?;
    lock.lock().map_err(failed("locking a file"))?;

    // Another process may have filled it while this one waited.
    if let Some(entry) = find(cache, wheel) {
        return Ok(entry);
    }
    let partial_prefix = format!("{}.partial-", wheel.folder);
    delete_leftovers(cache, &partial_prefix).map_err(failed("deleting a harmed download"))?;

    let partial = tempfile::Builder::new()
        .prefix(&partial_prefix)
        .tempdir_in(cache)
        .map_err(failed("creating a folder"))?;
    fill(partial.path())?;

    let entry = cache.join(wheel.folder);
    if entry.exists() {
        // A harmed one. Whoever uses it just now keeps the files it has open.
        fs::remove_dir_all(&entry).map_err(failed("deleting a harmed download"))?;
    }
    fs::rename(partial.path(), &entry).map_err(failed("renaming a folder"))?;
    Ok(entry)
}

/// Deletes what processes killed half-way have left. Only the holder of the lock may.
fn delete_leftovers(cache: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
