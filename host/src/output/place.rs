//! What the name of an output stands for: a regular file, which is replaced, or a stream, which
//! is written to where it stands.
//!
//! Links are followed one at a time, since the system follows none that leads to a missing file,
//! and follows `/dev/stdout` to the file behind the descriptor, where it would start anew at the
//! file's first byte. Where there is no `/proc`, descriptors have no names.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::clause;

/// The number of links that Linux follows.
const MOST_LINKS: usize = 40;

/// Where the bytes go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A regular file, or a name that is free. No part of the path is a link.
    File(PathBuf),
    /// An open descriptor of this process.
    Descriptor(RawFd),
    /// A pipe or a device, or a descriptor of another process.
    Special(PathBuf),
}

impl Place {
    /// What `path` stands for. An error is a clause.
    pub(super) fn of(path: &Path) -> Result<Place, String> {
        let mut path = path.to_path_buf();
        for _ in 0..=MOST_LINKS {
            let is_folder = path.is_dir();
            if !is_folder && path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                return Err("there is no such folder".to_string());
            }
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(match is_folder {
                    true => "it is a folder".to_string(),
                    false => "it names no file".to_string(),
                });
            };
            let folder = match folder.as_os_str().is_empty() {
                true => Path::new("."),
                false => folder,
            };
            let folder = fs::canonicalize(folder).map_err(|error| match error.kind() {
                ErrorKind::NotFound => format!("there is no folder `{}`", folder.display()),
                _ => clause(&error),
            })?;
            let place = folder.join(name);
            let metadata = match fs::symlink_metadata(&place) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Place::File(place)),
                Err(error) => return Err(clause(&error)),
            };
            if metadata.is_symlink() {
                if let Some(found) = descriptor(&folder, name) {
                    return Ok(found);
                }
                let next = fs::read_link(&place).map_err(|error| clause(&error))?;
                path = folder.join(next);
                continue;
            }
            return match metadata {
                metadata if metadata.is_dir() => Err("it is a folder".to_string()),
                metadata if metadata.is_file() => Ok(Place::File(place)),
                _ => Ok(Place::Special(place)),
            };
        }
        Err("it is a link in a circle of links".to_string())
    }

    /// Opens a place that is no regular file, to write behind what is there. A named pipe waits
    /// for its reader, as it does in a shell.
    pub(super) fn stream(&self) -> io::Result<File> {
        match self {
            Place::File(path) | Place::Special(path) => OpenOptions::new().append(true).open(path),
            Place::Descriptor(number) => inherited(*number),
        }
    }
}

/// The descriptor that a link called `name` in `folder` stands for, if it is in a folder of
/// descriptors.
fn descriptor(folder: &Path, name: &OsStr) -> Option<Place> {
    if !folder.starts_with("/proc") || folder.file_name() != Some(OsStr::new("fd")) {
        return None;
    }
    let is_own = fs::canonicalize("/proc/self").is_ok_and(|own| folder.starts_with(own));
    match is_own {
        true => Some(Place::Descriptor(name.to_str()?.parse().ok()?)),
        false => Some(Place::Special(folder.join(name))),
    }
}

/// A descriptor that this process started with, as a file that shares its position. To open its
/// name would give a position of its own.
fn inherited(number: RawFd) -> io::Result<File> {
    const ACCESS_MODE: u32 = 0o3;
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let facts = fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
    let flags = facts.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    match flags {
        Some(flags) if flags & ACCESS_MODE == 0 => Err(io::Error::other("it is open for reading")),
        Some(flags) if flags & CLOSE_ON_EXEC == 0 => {
            // SAFETY: The descriptor is open. Nothing closes it meanwhile: it was inherited,
            // since what this process opens itself is closed on exec, and the program closes
            // only what it has opened.
            let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
            Ok(File::from(borrowed.try_clone_to_owned()?))
        }
        _ => Err(io::Error::other("the program was not started with it")),
    }
}

/// Whether what is written to one name takes the place of, or mixes with, what is written to the
/// other, so far as that can be found out. `/dev/null` has room for all.
pub fn are_same(one: &Path, other: &Path) -> bool {
    let (Ok(first), Ok(second)) = (Place::of(one), Place::of(other)) else {
        return false;
    };
    let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) else {
        return first == second;
    };
    match (first, second) {
        // If a file has several names, only the one that is written is replaced.
        (Place::File(first), Place::File(second)) => {
            first == second || (is_one_file(&one, &other) && one.nlink() == 1)
        }
        _ => is_one_file(&one, &other) && !is_null(&one),
    }
}

/// Whether `path` names this process's standard output. It does not if that is `/dev/null`.
pub fn is_stdout(path: &Path) -> bool {
    if matches!(Place::of(path), Err(_) | Ok(Place::File(_))) {
        return false;
    }
    match (fs::metadata(path), fs::metadata("/proc/self/fd/1")) {
        (Ok(named), Ok(stdout)) => is_one_file(&named, &stdout) && !is_null(&named),
        _ => false,
    }
}

fn is_one_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn is_null(metadata: &Metadata) -> bool {
    let is_null = |null: Metadata| null.rdev() == metadata.rdev();
    metadata.file_type().is_char_device() && fs::metadata("/dev/null").is_ok_and(is_null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_the_end_even_if_nothing_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(root.join("deep")).unwrap();
        symlink("deep/second", root.join("first")).unwrap();
        symlink("../file", root.join("deep/second")).unwrap();
        symlink("deep", root.join("alias")).unwrap();
        let file = Ok(Place::File(root.join("file")));
        for name in [
            "file",
            "first",
            "deep/second",
            "alias/second",
            "deep/../file",
        ] {
            assert_eq!(Place::of(&root.join(name)), file, "{name}");
        }
        symlink("circle", root.join("circle")).unwrap();
        let why = Place::of(&root.join("circle")).unwrap_err();
        assert_eq!(why, "it is a link in a circle of links");
    }

    #[test]
    fn descriptors_and_devices_are_streams() {
        for name in [
            "/dev/stdout",
            "/dev/fd/1",
            "/proc/self/fd/1",
            "/proc/thread-self/fd/1",
        ] {
            let place = Place::of(Path::new(name));
            assert_eq!(place, Ok(Place::Descriptor(1)), "{name}");
        }
        let null = Path::new("/dev/null");
        assert_eq!(Place::of(null), Ok(Place::Special(null.to_path_buf())));
    }

    #[test]
    fn a_descriptor_of_the_programs_own_is_no_place_for_output() {
        use std::os::fd::AsRawFd;
        let own = tempfile::tempfile().unwrap();
        let error = Place::Descriptor(own.as_raw_fd()).stream().unwrap_err();
        assert_eq!(error.to_string(), "the program was not started with it");
    }

    #[test]
    fn different_spellings_and_links_are_the_same_and_hard_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        symlink("new", path("link")).unwrap();
        let same = |one: &str, other: &str| are_same(&path(one), &path(other));
        assert!(same("new", "link") && same("new", "./new") && !same("new", "other"));
        fs::write(path("new"), "").unwrap();
        fs::hard_link(path("new"), path("hard")).unwrap();
        assert!(same("new", "link") && !same("new", "hard"));
        let null = Path::new("/dev/null");
        assert!(!are_same(null, null));
    }
}
