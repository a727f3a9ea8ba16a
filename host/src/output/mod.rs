//! Files that the program writes: completely or not at all.
//!
//! An [`Output`] is a file without a name in the target's folder, created before the long run
//! starts, so that a target that cannot be written is reported at once. [`Output::commit`] puts it
//! in the target's place; until then the target stays as it is. A file without a name leaves
//! nothing behind however the process ends. Where the file system has no such files (NFS), it is a
//! temporary file with a name, which stays behind if a signal ends the process.
//!
//! A target that is no regular file (a pipe, a device, a standard stream such as `/dev/stdout`) is
//! never replaced: [`Output::commit`] appends to it.

mod place;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use atomic_write_file::AtomicWriteFile;
use thiserror::Error;

use place::Place;
pub(crate) use place::clause;
pub use place::is_stdout;

/// Why a file cannot be written.
#[derive(Debug, Error)]
#[error("`{}` cannot be written: {reason}.", path.display())]
pub struct OutputError {
    path: PathBuf,
    /// The reason, as a clause.
    reason: String,
}

/// A file that is being written.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::io::Write;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("report.json");
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
    /// The path as the user gave it.
    path: PathBuf,
    sink: Sink,
}

/// Where the bytes are kept until they are committed.
#[derive(Debug)]
enum Sink {
    /// A new file, which will replace `target`.
    File {
        /// Its path without links.
        target: PathBuf,
        writer: BufWriter<AtomicWriteFile>,
    },
    /// Memory, since bytes written to a stream cannot be taken back.
    Stream { stream: File, held: Vec<u8> },
}

impl Output {
    /// Makes sure that `path` can be written, and creates the file or opens the stream. An
    /// existing file keeps its permissions, and a link to a file remains a link.
    ///
    /// # Errors
    ///
    /// It is a folder or may not be written; or its folder does not exist or may not be written.
    pub fn open(path: &Path) -> Result<Output, OutputError> {
        let refuse = |reason: String| OutputError {
            path: path.to_path_buf(),
            reason,
        };
        let sink = match place::of(path).map_err(refuse)? {
            Place::File(target) => Sink::replacing(target),
            Place::Stream(stream) => {
                let held = Vec::new();
                Ok(Sink::Stream { stream, held })
            }
        };
        Ok(Output {
            path: path.to_path_buf(),
            sink: sink.map_err(refuse)?,
        })
    }

    /// The path of the file, as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a pipe, a device or another stream, which cannot be replaced.
    pub fn is_stream(&self) -> bool {
        matches!(self.sink, Sink::Stream { .. })
    }

    /// Writes by `write`, and commits.
    ///
    /// # Errors
    ///
    /// Writing fails, or as for [`Output::commit`].
    pub fn finish(
        mut self,
        write: impl FnOnce(&mut Output) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        match write(&mut self) {
            Ok(()) => self.commit(),
            Err(error) => Err(OutputError {
                path: self.path,
                reason: clause(&error),
            }),
        }
    }

    /// Puts what was written in the target's place, in one step, once it has reached the disk; or
    /// writes it to the stream, whose reader may go away when it has read enough.
    ///
    /// # Errors
    ///
    /// For example, the disk is full. A target that is a file is then unchanged.
    pub fn commit(self) -> Result<(), OutputError> {
        let Output { path, sink } = self;
        let committed = match sink {
            Sink::File { target, writer } => put_in_place(&target, writer),
            Sink::Stream { mut stream, held } => unless_unread(stream.write_all(&held)),
        };
        committed.map_err(|error| OutputError {
            path,
            reason: clause(&error),
        })
    }
}

/// Makes a folder, and those that it is in, unless they are there. An error is a sentence.
pub fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| {
        let (folder, why) = (folder.display(), clause(&error));
        format!("The folder `{folder}` cannot be made: {why}.")
    })
}

/// The outcome of a write to a stream. A reader that has gone away is no error.
fn unless_unread(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

impl Sink {
    /// Creates a file that will replace `target`. An error is a clause.
    fn replacing(target: PathBuf) -> Result<Sink, String> {
        // A write-protected file in a writable folder could be replaced, but must not be.
        match OpenOptions::new().write(true).open(&target) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(clause(&error)),
            _ => {}
        }
        let file = AtomicWriteFile::open(&target).map_err(|error| {
            let folder = target.parent().unwrap_or(&target).display();
            format!("no file can be made in `{folder}`: {}", clause(&error))
        })?;
        let writer = BufWriter::new(file);
        Ok(Sink::File { target, writer })
    }
}

fn put_in_place(target: &Path, writer: BufWriter<AtomicWriteFile>) -> io::Result<()> {
    let file = writer.into_inner()?;
    file.sync_all()?;
    // The target may have changed since it was opened.
    match fs::symlink_metadata(target) {
        Ok(there) if there.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => Err(io::Error::other("it is no longer a regular file")),
        _ => file.commit(),
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::File { writer, .. } => writer.write(bytes),
            Sink::Stream { held, .. } => {
                held.try_reserve(bytes.len())?;
                held.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::File { writer, .. } => writer.flush(),
            Sink::Stream { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
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
        for (name, why) in [
            (format!("{path}"), "it is a folder".to_string()),
            (
                format!("{path}/none/out"),
                format!("there is no folder `{path}/none`"),
            ),
            (
                format!("{path}/new/"),
                "there is no such folder".to_string(),
            ),
            (
                "/proc/out".to_string(),
                "no file can be made in `/proc`: no such file or directory".to_string(),
            ),
            (String::new(), "it names no file".to_string()),
        ] {
            let error = Output::open(Path::new(&name)).unwrap_err().to_string();
            assert_eq!(error, format!("`{name}` cannot be written: {why}."));
        }
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
}
