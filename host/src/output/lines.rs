//! A file that grows while the program runs.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::place::Place;
use super::{OutputError, clause, unless_unread};

/// A file that grows: each text is in it as soon as it is written, and stays there however the
/// process ends. The first text replaces what the file held before.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: File,
    /// Whether the file still holds what was there before.
    is_old: bool,
}

impl Lines {
    /// Makes sure that `path` can be written. A file that is there stays as it is for now.
    ///
    /// # Errors
    ///
    /// It is a folder or may not be written; or its folder does not exist or may not be written.
    pub fn open(path: &Path) -> Result<Lines, OutputError> {
        let refuse = |reason: String| OutputError {
            path: path.to_path_buf(),
            reason,
        };
        let place = Place::of(path).map_err(refuse)?;
        let opened = match &place {
            Place::File(file) => OpenOptions::new().append(true).create(true).open(file),
            stream => stream.stream(),
        };
        Ok(Lines {
            path: path.to_path_buf(),
            file: opened.map_err(|error| refuse(clause(&error)))?,
            is_old: matches!(place, Place::File(_)),
        })
    }

    /// Writes at the end.
    ///
    /// # Errors
    ///
    /// For example, the disk is full.
    pub fn write(&mut self, text: &str) -> Result<(), OutputError> {
        let emptied = match std::mem::take(&mut self.is_old) {
            true => self.file.set_len(0),
            false => Ok(()),
        };
        let written = emptied.and_then(|()| self.file.write_all(text.as_bytes()));
        unless_unread(written).map_err(|error| OutputError {
            path: self.path.clone(),
            reason: clause(&error),
        })
    }
}
