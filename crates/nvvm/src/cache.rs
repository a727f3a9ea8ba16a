//! Keeps the fetched wheel, atomically: the entry is complete or absent, whichever other
//! processes build at the same time.
//!
//! ```text
//! CACHE/nvvm-12.9.86/              the entry; every file's known SHA-256 is checked before use
//! CACHE/nvvm-12.9.86.lock          held while the entry is made
//! CACHE/nvvm-12.9.86.partial-XXX/  the entry being made; renamed when it is complete
//! ```
//!
//! A process that is killed half-way leaves a partial folder, which no process mistakes for the
//! entry and the next holder of the lock deletes. The operating system drops the lock of a
//! process that ends, however it ends.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::{Error, Wheel};

/// The wheel's folder in the cache, if it exists and is intact.
pub(crate) fn find(cache: &Path, wheel: &Wheel) -> Option<PathBuf> {
    let entry = cache.join(wheel.folder);
    wheel.is_whole_in(&entry).then_some(entry)
}

/// The wheel's folder in the cache. If it is missing or damaged, `fill` creates it again, in the
/// empty folder that it is given; if several processes call this at the same time, one fills and
/// the others wait for it.
pub(crate) fn find_or_fill(
    cache: &Path,
    wheel: &Wheel,
    fill: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let failed = |doing| Error::cache(cache, doing);
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
        // A damaged entry. A process that is using it keeps its open files.
        fs::remove_dir_all(&entry).map_err(failed("deleting a harmed download"))?;
    }
    fs::rename(partial.path(), &entry).map_err(failed("renaming a folder"))?;
    Ok(entry)
}

/// Deletes what processes killed half-way have left behind. Only the holder of the lock may do
/// this.
fn delete_leftovers(cache: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
