//! Files that the program writes: completely or not at all.
//!
//! An [`Output`] is a temporary file in the target's folder, made before the long run starts, so
//! that a target that cannot be written is reported at once. [`Output::commit`] puts it in the
//! target's place; until then the target stays as it is. An output that is dropped leaves
//! nothing behind, and neither does an interrupt: see [`abandon_all`].

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::Builder;
use thiserror::Error;

/// Why a file cannot be written.
#[derive(Debug, Error)]
#[error("`{}` cannot be written: {reason}.", path.display())]
pub struct OutputError {
    path: PathBuf,
    /// A clause.
    reason: String,
}

/// A file that is being written.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::io::Write;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("report.csv");
/// let mut output = host::output::Output::open(&path)?;
/// writeln!(output, "kernel,time")?;
/// assert!(!path.exists());
/// output.commit()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "kernel,time\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Output {
    /// As the user named it.
    path: PathBuf,
    /// The file itself, where `path` is a link to it.
    target: PathBuf,
    /// In [`TEMPORARIES`] until it is in the target's place or removed.
    temporary: PathBuf,
    writer: BufWriter<File>,
}

/// How the names of temporary files begin and end.
const PREFIX: &str = ".gemm-";
const SUFFIX: &str = ".tmp";

/// The temporary files that exist. The lock is held while one is made, removed, or moved into
/// its target's place.
static TEMPORARIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn temporaries() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is intact, whatever panicked beside it.
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of all outputs, for a process that is about to end: afterwards
/// none can be opened or committed, and a thread that tries waits for the end.
pub fn abandon_all() {
    let mut temporaries = temporaries();
    for path in temporaries.drain(..) {
        // There is no way left to report it.
        let _ = fs::remove_file(path);
    }
    // Locked for good.
    std::mem::forget(temporaries);
}

impl Output {
    /// Makes sure that `path` can be written, and makes the temporary file. A file that is there
    /// already keeps its permissions, and a link to a file stays one.
    ///
    /// # Errors
    ///
    /// It is a folder, or no regular file, or may not be written; or its folder does not exist
    /// or may not be written.
    pub fn open(path: &Path) -> Result<Output, OutputError> {
        let refuse = |reason: String| OutputError {
            path: path.to_path_buf(),
            reason,
        };
        let because = |error: io::Error| refuse(clause(&error));
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(because(error)),
        };
        if existing.is_none() && path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(refuse("there is no such folder".to_string()));
        }
        let mut target = path.to_path_buf();
        if let Some(metadata) = &existing {
            if metadata.is_dir() {
                return Err(refuse("it is a folder".to_string()));
            }
            if !metadata.is_file() {
                let reason = "it is no regular file, so no file can take its place";
                return Err(refuse(reason.to_string()));
            }
            // A file in a folder that may be written could be replaced, even if the file itself
            // may not be written.
            OpenOptions::new().write(true).open(path).map_err(because)?;
            target = fs::canonicalize(path).map_err(because)?;
        }
        let folder = match target.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => return Err(refuse("it names no file".to_string())),
        };
        let (file, temporary) = create_in(folder).map_err(|error| match error.kind() {
            ErrorKind::NotFound => refuse(format!("there is no folder `{}`", folder.display())),
            _ => refuse(format!(
                "no file can be made in `{}`: {}",
                folder.display(),
                clause(&error)
            )),
        })?;
        let output = Output {
            path: path.to_path_buf(),
            target,
            temporary,
            writer: BufWriter::new(file),
        };
        if let Some(metadata) = existing {
            let file = output.writer.get_ref();
            file.set_permissions(metadata.permissions())
                .map_err(because)?;
        }
        Ok(output)
    }

    /// The file that is being written, as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts what was written in the target's place, in one step, once it has reached the disk.
    ///
    /// # Errors
    ///
    /// For example, the disk is full. The target is then as it was.
    pub fn commit(mut self) -> Result<(), OutputError> {
        self.put_in_place().map_err(|error| OutputError {
            path: self.path.clone(),
            reason: clause(&error),
        })
    }

    fn put_in_place(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.writer.get_ref().sync_all()?;
        {
            let mut temporaries = temporaries();
            fs::rename(&self.temporary, &self.target)?;
            temporaries.retain(|path| *path != self.temporary);
        }
        // The name outlives a loss of power, too, where the file system can do that.
        if let Some(folder) = self.target.parent() {
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let mut temporaries = temporaries();
        if let Some(index) = temporaries.iter().position(|path| *path == self.temporary) {
            temporaries.swap_remove(index);
            // What cannot be removed stays; a destructor cannot report it.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Makes a temporary file that all may read, less what the user's mask takes away.
fn create_in(folder: &Path) -> io::Result<(File, PathBuf)> {
    let mut temporaries = temporaries();
    let (file, path) = Builder::new()
        .prefix(PREFIX)
        .suffix(SUFFIX)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?
        .keep()?;
    temporaries.push(path.clone());
    Ok((file, path))
}

/// What the system says of an error, as a clause, without the number.
pub(crate) fn clause(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn refusal(path: &Path) -> String {
        Output::open(path).unwrap_err().to_string()
    }

    #[test]
    fn the_target_is_untouched_until_the_commit_and_then_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        let mut output = Output::open(&path).unwrap();
        output.write_all(&[b'n'; 100_000]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        output.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), [b'n'; 100_000]);
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn an_output_that_is_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Output::open(&folder.path().join("out")).unwrap();
        output.write_all(b"half").unwrap();
        let [temporary] = &names(folder.path())[..] else {
            panic!("one temporary file");
        };
        assert!(temporary.starts_with(PREFIX) && temporary.ends_with(SUFFIX));
        drop(output);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_commit_that_fails_leaves_the_target_and_no_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let output = Output::open(&path).unwrap();
        // No file takes a folder's place.
        fs::create_dir(&path).unwrap();
        let error = output.commit().unwrap_err().to_string();
        assert!(
            error.ends_with("cannot be written: is a directory."),
            "{error}"
        );
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn what_cannot_be_written_is_refused_at_once_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        assert_eq!(
            refusal(folder.path()),
            format!("`{path}` cannot be written: it is a folder.")
        );
        assert_eq!(
            refusal(&folder.path().join("none/out")),
            format!("`{path}/none/out` cannot be written: there is no folder `{path}/none`.")
        );
        assert_eq!(
            refusal(&folder.path().join("new/")),
            format!("`{path}/new/` cannot be written: there is no such folder.")
        );
        assert_eq!(
            refusal(Path::new("/dev/null")),
            "`/dev/null` cannot be written: it is no regular file, so no file can take its place."
        );
        assert_eq!(
            refusal(Path::new("")),
            "`` cannot be written: it names no file."
        );
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_link_stays_a_link_and_its_file_is_written_with_the_permissions_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        let mut output = Output::open(&link).unwrap();
        output.write_all(b"new").unwrap();
        output.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn a_new_file_has_the_permissions_of_any_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |name| {
            let metadata = fs::metadata(folder.path().join(name)).unwrap();
            metadata.permissions().mode()
        };
        Output::open(&folder.path().join("ours"))
            .unwrap()
            .commit()
            .unwrap();
        fs::write(folder.path().join("plain"), "").unwrap();
        assert_eq!(mode("ours"), mode("plain"));
    }
}
