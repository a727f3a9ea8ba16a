//! The kind of an output: a regular file, which is replaced, or a stream, which is written to at
//! its current position.
//!
//! Standard output and standard error are recognised by name: opening `/dev/stdout` would open the
//! file behind the descriptor anew, at its first byte.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The destination of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A regular file, or a new name. The folders in the path are no links.
    File(PathBuf),
    StandardOutput,
    StandardError,
    /// A pipe or a device.
    Special(PathBuf),
}

impl Place {
    /// The place that `path` names. An error is a clause.
    pub(super) fn of(path: &Path) -> Result<Place, String> {
        match path.to_str().unwrap_or_default() {
            "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" => {
                return Err("it is open for reading".to_string());
            }
            "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => return Ok(Place::StandardOutput),
            "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => return Ok(Place::StandardError),
            _ => {}
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err("it is a folder".to_string()),
            Ok(metadata) => {
                let path = fs::canonicalize(path).map_err(|error| clause(&error))?;
                return Ok(match metadata.is_file() {
                    true => Place::File(path),
                    false => Place::Special(path),
                });
            }
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
            Ok(next) => Place::of(&folder.join(next)),
            Err(_) => Ok(Place::File(path)),
        }
    }

    /// Opens it to append. A named pipe waits for its reader, as in a shell.
    pub(super) fn stream(&self) -> io::Result<File> {
        match self {
            Place::File(path) | Place::Special(path) => OpenOptions::new().append(true).open(path),
            // A duplicate descriptor, which shares the position.
            Place::StandardOutput => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
            Place::StandardError => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        }
    }
}

/// Whether `path` names this process's standard output.
pub fn is_stdout(path: &Path) -> bool {
    Place::of(path) == Ok(Place::StandardOutput)
}

/// The system's text of an error, as a clause, without the number.
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

    #[test]
    fn standard_output_has_several_names() {
        let [out, same, null] = ["/dev/stdout", "/proc/self/fd/1", "/dev/null"].map(Path::new);
        assert!(is_stdout(out) && is_stdout(same) && !is_stdout(null));
    }
}
