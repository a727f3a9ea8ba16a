//! The files that `bench` writes. They are opened before the run, so that a long run does not end
//! in an error. Each finished size replaces them in one step: however the run ends, they hold the
//! finished results.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::results::Results;
use super::{Preset, markdown, pictures};
use crate::output::{self, Output};

/// Which files to write: options of `bench`.
#[derive(Args, Clone, Debug, Default)]
pub struct Exports {
    /// Write everything that was found, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write an overview and the tables for a document, as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Draw the ladder, speed against size and a roofline, or ratios to cuBLAS with
    /// `--preset shapes`, as SVG
    #[arg(long, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,
}

/// Why a file was not written: a sentence. No caller needs to distinguish the reasons.
type Failed = Box<dyn Error>;

/// The content of a file: of results, and their text for people.
type Content = fn(&Results, &str) -> Result<String, Failed>;

/// The requested files.
pub struct Files {
    /// Regular files, which are replaced after each size.
    files: Vec<(Content, PathBuf)>,
    /// Pipes and the like, which get only the final results.
    streams: Vec<(Content, Output)>,
}

impl Exports {
    /// The requested files, each with its content and its path.
    fn requested(&self, preset: Option<Preset>) -> Vec<(Content, PathBuf)> {
        let named: [(Content, _); 2] = [
            (
                |results, _| Ok(serde_json::to_string_pretty(results)? + "\n"),
                &self.json,
            ),
            (
                |results, report| Ok(format!("{}\n{report}", markdown::overview(results))),
                &self.markdown,
            ),
        ];
        let plots: &[(Content, &str)] = match preset {
            None | Some(Preset::Report) => &[
                (|results, _| Ok(pictures::ladder(results)), "ladder.svg"),
                (|results, _| Ok(pictures::speed(results)), "speed.svg"),
                (|results, _| Ok(pictures::roofline(results)), "roofline.svg"),
            ],
            Some(Preset::Shapes) => &[(|results, _| Ok(pictures::ratios(results)), "ratios.svg")],
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
    pub fn take_stdout(&self, preset: Option<Preset>) -> bool {
        let requested = self.requested(preset);
        requested.iter().any(|(_, path)| output::is_stdout(path))
    }

    /// Makes sure that every requested file can be written.
    pub fn open(&self, preset: Option<Preset>) -> Result<Files, Failed> {
        let (mut files, mut streams) = (Vec::new(), Vec::new());
        if let Some(folder) = &self.plots {
            output::make_folder(folder)?;
        }
        for (content, path) in self.requested(preset) {
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
            write(Output::open(path)?, &content(results, report)?)?;
        }
        Ok(())
    }

    /// Writes the final results to pipes and the like.
    pub fn write_streams(self, results: &Results, report: &str) -> Result<(), Failed> {
        for (content, output) in self.streams {
            write(output, &content(results, report)?)?;
        }
        Ok(())
    }
}

fn write(output: Output, text: &str) -> Result<(), Failed> {
    Ok(output.finish(|out| out.write_all(text.as_bytes()))?)
}
