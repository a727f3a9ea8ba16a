//! The files that `bench` writes. They are opened before the run, so that a long run does not end
//! in an error. Each finished size replaces them in one step: however the run ends, they hold the
//! finished results.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::results::Results;
use super::{lines, markdown, pictures};
use crate::output::{self, Output};

/// Which files to write: options of `bench`.
#[derive(Args, Clone, Debug, Default)]
pub struct Exports {
    /// Write everything that was found, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a line for each kernel and size, as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write an overview and the tables for a document, as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Draw the ladder, speed against size and a roofline, or ratios to cuBLAS with
    /// `--preset shapes`, as SVG
    #[arg(long, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,
}

/// The layout of results for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A table for each size, and the rungs beside each other.
    Ladder,
    /// The report's table.
    Report,
    /// One table of ratios to cuBLAS.
    Ratios,
}

/// Why a file was not written: a sentence. No caller needs to distinguish the reasons.
type Failed = Box<dyn Error>;

/// The content of a file.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    Json,
    Csv,
    Markdown,
    Ladder,
    Speed,
    Roofline,
    Ratios,
}

/// The requested files.
pub struct Files {
    /// Regular files, which are replaced after each size.
    files: Vec<(Content, PathBuf)>,
    /// Pipes and the like, which get only the final results.
    streams: Vec<(Content, Output)>,
}

impl Exports {
    /// The requested files, each with its content and its path.
    fn requested(&self, layout: Layout) -> Vec<(Content, PathBuf)> {
        let named = [
            (Content::Json, &self.json),
            (Content::Csv, &self.csv),
            (Content::Markdown, &self.markdown),
        ];
        let plots: &[(Content, &str)] = match layout {
            Layout::Ladder | Layout::Report => &[
                (Content::Ladder, "ladder.svg"),
                (Content::Speed, "speed.svg"),
                (Content::Roofline, "roofline.svg"),
            ],
            Layout::Ratios => &[(Content::Ratios, "ratios.svg")],
        };
        let named = named.into_iter();
        let named = named.filter_map(|(content, path)| Some((content, path.clone()?)));
        let plots = self.plots.iter().flat_map(|folder| {
            let plots = plots.iter();
            plots.map(|(content, name)| (*content, folder.join(name)))
        });
        named.chain(plots).collect()
    }

    /// Whether a file is this process's standard output, which must then get nothing else.
    pub fn take_stdout(&self, layout: Layout) -> bool {
        let requested = self.requested(layout);
        requested.iter().any(|(_, path)| output::is_stdout(path))
    }

    /// Makes sure that every requested file can be written.
    pub fn open(&self, layout: Layout) -> Result<Files, Failed> {
        let (mut files, mut streams) = (Vec::new(), Vec::new());
        if let Some(folder) = &self.plots {
            fs::create_dir_all(folder).map_err(|error| {
                let folder = folder.display();
                format!("The folder `{folder}` for plots cannot be created: {error}.")
            })?;
        }
        for (content, path) in self.requested(layout) {
            let output = Output::open(&path)?;
            match output.is_stream() {
                true => streams.push((content, output)),
                false => files.push((content, path)),
            }
        }
        Ok(Files { files, streams })
    }
}

impl Files {
    /// Replaces the files by the results so far; `report` is their text for people.
    ///
    /// # Errors
    ///
    /// A file cannot be written; those before it are already replaced.
    pub fn write(&self, results: &Results, report: &str) -> Result<(), Failed> {
        for (content, path) in &self.files {
            write(Output::open(path)?, &text(*content, results, report)?)?;
        }
        Ok(())
    }

    /// Writes the final results to pipes and the like.
    pub fn write_streams(self, results: &Results, report: &str) -> Result<(), Failed> {
        for (content, output) in self.streams {
            write(output, &text(content, results, report)?)?;
        }
        Ok(())
    }
}

fn write(mut output: Output, text: &str) -> Result<(), Failed> {
    if let Err(error) = output.write_all(text.as_bytes()) {
        let path = output.path().display();
        return Err(format!("`{path}` cannot be written: {error}.").into());
    }
    Ok(output.commit()?)
}

fn text(content: Content, results: &Results, report: &str) -> Result<String, Failed> {
    Ok(match content {
        Content::Json => serde_json::to_string_pretty(results)? + "\n",
        Content::Csv => lines::csv(results)?,
        Content::Markdown => format!("{}\n{report}", markdown::overview(results)),
        Content::Ladder => pictures::ladder(results),
        Content::Speed => pictures::speed(results),
        Content::Roofline => pictures::roofline(results),
        Content::Ratios => pictures::ratios(results),
    })
}
