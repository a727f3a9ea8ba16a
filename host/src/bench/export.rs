//! The files that `bench` writes. They are opened before the run, so that a long run does not
//! end in an error, and then written completely or not at all.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use thiserror::Error;

use super::ladder::Sort;
use super::results::Results;
use super::{bars, csv, markdown, plots, preset, ratios};
use crate::output::{Output, OutputError};

/// Which files to write.
#[derive(Clone, Debug, Default)]
pub struct Exports {
    /// Everything that was found, as JSON.
    pub json: Option<PathBuf>,
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

impl Exports {
    /// Opens every requested file.
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
            let plots = match layout {
                Layout::Ladder(_) | Layout::Report => &[
                    (Content::Ladder, "ladder.svg"),
                    (Content::Speed, "speed.svg"),
                    (Content::Roofline, "roofline.svg"),
                ][..],
                Layout::Ratios => &[(Content::Ratios, "ratios.svg")],
            };
            for &(content, name) in plots {
                files.push((content, Output::open(&folder.join(name))?));
            }
        }
        Ok(Opened { files, layout })
    }
}

impl Opened {
    /// Writes the files, each in one step.
    ///
    /// # Errors
    ///
    /// One cannot be written; those before it are there.
    pub fn write(self, results: &Results) -> Result<(), ExportError> {
        for (content, mut output) in self.files {
            let text = match content {
                Content::Json => serde_json::to_string_pretty(results)
                    .map(|text| text + "\n")
                    .map_err(|error| ExportError::Content(error.to_string()))?,
                Content::Csv => {
                    csv::text(results).map_err(|error| ExportError::Content(error.to_string()))?
                }
                Content::Markdown => match self.layout {
                    Layout::Ladder(sort) => markdown::document(results, sort),
                    Layout::Report => preset::table(results),
                    Layout::Ratios => ratios::document(results),
                },
                Content::Ladder => bars::ladder(results),
                Content::Speed => plots::speed(results),
                Content::Roofline => plots::roofline(results),
                Content::Ratios => bars::ratios(results),
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
