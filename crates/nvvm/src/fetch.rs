//! Fetching the wheel with pip, whose configuration decides from where.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, UNIX_EPOCH},
};

use zip::{ZipArchive, result::ZipError};

use crate::{Error, Wheel, wheel::sha256_of};

/// Fetches the wheel and unpacks what is kept of it into `folder`, which exists and is empty. Pip
/// shows its progress on the terminal.
pub(crate) fn fetch(
    wheel: &Wheel,
    pips: &[Vec<OsString>],
    terminal: Option<&Path>,
    folder: &Path,
) -> Result<(), Error> {
    let download = folder.join("download");
    fs::create_dir(&download).map_err(Error::cache(folder, "creating a folder"))?;
    download_with_pip(wheel, pips, terminal, &download)?;

    let file =
        downloaded_file(&download).map_err(Error::cache(folder, "reading what pip fetched"))?;
    let found = sha256_of(&file).map_err(Error::cache(folder, "reading what pip fetched"))?;
    if found != wheel.sha256 {
        return Err(Error::WrongChecksum {
            file,
            expected: wheel.sha256.to_owned(),
            found,
        });
    }
    unpack(wheel, &file, folder)?;
    fs::remove_dir_all(&download).map_err(Error::cache(folder, "deleting the wheel"))
}

/// The file, to write to its end.
pub(crate) fn opened(path: &Path) -> Option<File> {
    File::options().append(true).open(path).ok()
}

/// Downloads the wheel into `folder` with the first pip that can do it.
fn download_with_pip(
    wheel: &Wheel,
    pips: &[Vec<OsString>],
    terminal: Option<&Path>,
    folder: &Path,
) -> Result<(), Error> {
    let mut first_failure = None;
    for pip in pips {
        let Some((program, arguments)) = pip.split_first() else {
            continue;
        };
        let mut command = Command::new(program);
        command.args(arguments).arg("download");
        // Errors are on standard error.
        match terminal.and_then(opened) {
            Some(terminal) => command.stdout(terminal),
            None => command.arg("--quiet"),
        };
        let output = command
            .arg("--disable-pip-version-check")
            // Without a network pip's usual five retries would cost every build many seconds.
            .args(["--retries", "1"])
            .args(["--no-input", "--no-deps", "--only-binary=:all:"])
            .args(["--platform", wheel.platform, "--dest"])
            .arg(folder)
            .arg(wheel.requirement)
            .stdin(Stdio::null())
            .output();
        match output {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) if is_pip_missing(&output) => {}
            Ok(output) => {
                first_failure.get_or_insert_with(|| Error::PipFailed {
                    command: format!("{} download {}", shown(pip), wheel.requirement),
                    output: last_lines(&output),
                });
            }
            // Not installed, or we may not run it.
            Err(_) => {}
        }
    }
    Err(first_failure.unwrap_or_else(|| Error::NoPip {
        tried: pips
            .iter()
            .map(|pip| format!("`{}`", shown(pip)))
            .collect::<Vec<_>>()
            .join(", "),
    }))
}

/// Whether Python answered `-m pip` by saying that there is no such module.
fn is_pip_missing(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("No module named pip")
}

fn shown(command: &[OsString]) -> String {
    command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The end of what a command wrote, where pip puts what matters.
fn last_lines(output: &Output) -> String {
    const LINES: usize = 12;
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// The one wheel that pip has left in `folder`.
fn downloaded_file(folder: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(path);
        }
    }
    Err(io::Error::new(ErrorKind::NotFound, "pip left no wheel"))
}

/// When the unpacked files were modified, as their metadata says: 1980, the beginning of zip's
/// time, counted from 1970. A build script that fetches makes cargo watch them. With the present
/// time they would be newer than the script's start, and the next build would run it again and
/// compile all kernels anew.
const MODIFIED: Duration = Duration::from_secs(315_532_800);

/// Unpacks the wheel's members to where they are kept below `folder`.
fn unpack(wheel: &Wheel, file: &Path, folder: &Path) -> Result<(), Error> {
    let io_error = |source| Error::cache(folder, "unpacking the wheel")(source);
    let zip_error = |source| match source {
        ZipError::Io(source) => io_error(source),
        source => Error::BadWheel {
            wheel: wheel.name_and_version(),
            source,
        },
    };

    let mut archive = ZipArchive::new(File::open(file).map_err(io_error)?).map_err(zip_error)?;
    for member in wheel.members {
        let kept = folder.join(member.kept_as);
        if let Some(parent) = kept.parent() {
            fs::create_dir_all(parent).map_err(io_error)?;
        }
        let mut source = archive.by_name(member.path).map_err(zip_error)?;
        let mut target = File::create(&kept).map_err(io_error)?;
        io::copy(&mut source, &mut target).map_err(io_error)?;
        let modified = UNIX_EPOCH + MODIFIED;
        target.set_modified(modified).map_err(io_error)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = if member.executable { 0o755 } else { 0o644 };
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(&kept, permissions).map_err(io_error)?;
        }
    }
    Ok(())
}
