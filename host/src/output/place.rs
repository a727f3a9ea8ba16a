//! The kind of an output: a regular file, which is replaced, or a stream, which is written to at
//! its current position.
//!
//! Standard output is recognised by name: opening `/dev/stdout` would open the file behind the
//! descriptor anew, at its first byte.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The destination of the bytes.
pub(super) enum Place {
    /// A regular file, or a new name. The folders in the path are no links.
    File(PathBuf),
    /// A pipe or a device, or standard output.
    Stream(File),
}

/// The place that `path` names. A named pipe waits for its reader, as in a shell. An error is a
/// clause.
pub(super) fn of(path: &Path) -> Result<Place, String> {
    let opened =
        |stream: io::Result<File>| stream.map(Place::Stream).map_err(|error| clause(&error));
    if is_stdout(path) {
        // A duplicate descriptor, which shares the position.
        return opened(io::stdout().as_fd().try_clone_to_owned().map(File::from));
    }
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err("it is a folder".to_string()),
        Ok(there) if there.is_file() => {
            return fs::canonicalize(path)
                .map(Place::File)
                .map_err(|error| clause(&error));
        }
        Ok(_) => return opened(OpenOptions::new().append(true).open(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(clause(&error)),
    }
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err("there is no such folder".to_string());
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err("it names no file".to_string());
    };
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let folder = fs::canonicalize(folder).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("there is no folder `{}`", folder.display()),
        _ => clause(&error),
    })?;
    let path = folder.join(name);
    match fs::read_link(&path) {
        // A dangling link: its target is the file to create.
        Ok(next) => of(&folder.join(next)),
        Err(_) => Ok(Place::File(path)),
    }
}

/// Whether `path` names this process's standard output.
pub fn is_stdout(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .map(Path::new)
        .contains(&path)
}

/// The system's text of an error, as a clause, without the number.
pub(crate) fn clause(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_lowercase(),
        None => text,
    }
}
