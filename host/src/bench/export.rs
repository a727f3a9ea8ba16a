//! The files that `bench` writes. They are opened before the run, so that a long run does not
//! end in an error, and then written completely or not at all; only JSON Lines are written as the
//! results come.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::ladder::Sort;
use super::results::Results;
use super::{compare, lines, markdown, pictures, preset, ratios};
use crate::output::{self, Lines, Output, OutputError};

/// Which files to write.
#[derive(Clone, Debug, Default)]
pub struct Exports {
    /// Everything that was found, as JSON.
    pub json: Option<PathBuf>,
    /// A line of JSON for each kernel and size, as soon as it is known.
    pub json_lines: Option<PathBuf>,
    /// A line for each kernel and size.
    pub csv: Option<PathBuf>,
    /// Tables for a document.
    pub markdown: Option<PathBuf>,
    /// A folder of plots: the ladder at the largest size, speed against size, and a roofline, or
    /// ratios to cuBLAS.
    pub plots: Option<PathBuf>,
}

/// The layout of results for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A table a size, and rungs beside each other.
    Ladder(Sort),
    /// The report's table.
    Report,
    /// One table of ratios to cuBLAS.
    Ratios,
}

/// Why a file was not written.
#[derive(Debug, Error)]
pub enum ExportError {
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("The folder `{}` for plots cannot be made: {reason}.", path.display())]
    Folder { path: PathBuf, reason: String },
    #[error("{0}")]
    Content(String),
}

/// What a file is to hold.
#[derive(Clone, Copy)]
enum Content {
    Json,
    Csv,
    Markdown,
    Ladder,
    Speed,
    Roofline,
    Ratios,
}

/// The files, opened.
pub struct Opened {
    files: Vec<(Content, Output)>,
    layout: Layout,
}

/// The file of JSON Lines, opened.
pub struct OpenedLines(Lines);

/// The files of plots, in their folder.
fn plots(layout: Layout) -> &'static [(Content, &'static str)] {
    match layout {
        Layout::Ladder(_) | Layout::Report => &[
            (Content::Ladder, "ladder.svg"),
            (Content::Speed, "speed.svg"),
            (Content::Roofline, "roofline.svg"),
        ],
        Layout::Ratios => &[(Content::Ratios, "ratios.svg")],
    }
}

impl Exports {
    /// Every requested file, and the option that requests it.
    fn paths(&self, layout: Layout) -> Vec<(&'static str, PathBuf)> {
        let named = [
            ("--json", &self.json),
            ("--json-lines", &self.json_lines),
            ("--csv", &self.csv),
            ("--markdown", &self.markdown),
        ];
        let named = named.into_iter();
        let named = named.filter_map(|(option, path)| Some((option, path.clone()?)));
        let plots = self.plots.iter().flat_map(|folder| {
            let names = plots(layout).iter();
            names.map(|(_, name)| ("--plots", folder.join(name)))
        });
        named.chain(plots).collect()
    }

    /// Two options that name the same file, and the file as each of them names it, if there are
    /// any.
    pub fn clash(&self, layout: Layout) -> Option<[(&'static str, PathBuf); 2]> {
        let paths = self.paths(layout);
        paths.iter().enumerate().find_map(|(index, one)| {
            let mut before = paths[..index].iter();
            let other = before.find(|other| output::are_same(&one.1, &other.1))?;
            Some([other.clone(), one.clone()])
        })
    }

    /// Whether a file is this process's standard output, where nothing else may then be written.
    pub fn take_stdout(&self, layout: Layout) -> bool {
        let paths = self.paths(layout);
        paths.iter().any(|(_, path)| output::is_stdout(path))
    }

    /// Opens the file of JSON Lines, if it is requested.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn open_lines(&self) -> Result<Option<OpenedLines>, ExportError> {
        let open = |path: &Path| Ok(OpenedLines(Lines::open(path)?));
        self.json_lines.as_deref().map(open).transpose()
    }

    /// Opens every other requested file.
    ///
    /// # Errors
    ///
    /// One cannot be written.
    pub fn open(&self, layout: Layout) -> Result<Opened, ExportError> {
        let mut files = Vec::new();
        for (content, path) in [
            (Content::Json, &self.json),
            (Content::Csv, &self.csv),
            (Content::Markdown, &self.markdown),
        ] {
            if let Some(path) = path {
                files.push((content, Output::open(path)?));
            }
        }
        if let Some(folder) = &self.plots {
            fs::create_dir_all(folder).map_err(|error| ExportError::Folder {
                path: folder.clone(),
                reason: error.to_string(),
            })?;
            for &(content, name) in plots(layout) {
                files.push((content, Output::open(&folder.join(name))?));
            }
        }
        Ok(Opened { files, layout })
    }
}

impl OpenedLines {
    /// Writes the lines of the last size.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn write_last(&mut self, results: &Results) -> Result<(), ExportError> {
        let Some(size) = results.sizes.last() else {
            return Ok(());
        };
        let text =
            lines::json(results, size).map_err(|error| ExportError::Content(error.to_string()))?;
        Ok(self.0.write(&text)?)
    }
}

impl Opened {
    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Writes the files, each in one step, once: then there are none.
    ///
    /// # Errors
    ///
    /// One cannot be written; those before it are there.
    pub fn write(&mut self, results: &Results) -> Result<(), ExportError> {
        for (content, mut output) in self.files.drain(..) {
            let text = match content {
                Content::Json => serde_json::to_string_pretty(results)
                    .map(|text| text + "\n")
                    .map_err(|error| ExportError::Content(error.to_string()))?,
                Content::Csv => {
                    lines::csv(results).map_err(|error| ExportError::Content(error.to_string()))?
                }
                Content::Markdown => document(results, self.layout),
                Content::Ladder => pictures::ladder(results),
                Content::Speed => pictures::speed(results),
                Content::Roofline => pictures::roofline(results),
                Content::Ratios => pictures::ratios(results),
            };
            let path = output.path().to_path_buf();
            output.write_all(text.as_bytes()).map_err(|error| {
                ExportError::Content(format!("`{}` cannot be written: {error}.", path.display()))
            })?;
            output.commit()?;
        }
        Ok(())
    }
}

/// Tables for a document.
fn document(results: &Results, layout: Layout) -> String {
    let tables = match layout {
        Layout::Ladder(sort) => markdown::document(results, sort),
        Layout::Report => preset::table(results),
        Layout::Ratios => ratios::document(results),
    };
    tables + &compare::markdown(results)
}
