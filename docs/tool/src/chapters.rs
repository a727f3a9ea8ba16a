//! The chapters of the book.

use std::path::PathBuf;

use crate::repository::{at_root, read};

/// The folder of the chapters, relative to the root of the repository.
pub const FOLDER: &str = "docs/src";

/// A chapter: its title in the table of contents, its file in [`FOLDER`], and its text.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Its number among the rungs, if it has one: the title is then `4. thread-coarsened`.
    pub rung: Option<usize>,
    /// The title without that number.
    pub title: String,
    pub file: String,
    pub text: String,
}

/// The folder of the chapters.
pub fn folder() -> PathBuf {
    at_root(FOLDER)
}

/// The chapters, in the order of the table of contents.
pub fn all() -> Result<Vec<Chapter>, String> {
    let summary = read(&folder().join("SUMMARY.md"))?;
    links(&summary)
        .map(|(title, file)| {
            let numbered = title.split_once(". ");
            let numbered = numbered.and_then(|(rung, name)| Some((rung.parse().ok()?, name)));
            Ok(Chapter {
                rung: numbered.map(|(rung, _)| rung),
                title: numbered.map_or(title, |(_, name)| name).to_string(),
                file: file.to_string(),
                text: read(&folder().join(file))?,
            })
        })
        .collect()
}

/// The links and pictures of a text: their texts and their targets.
pub fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("](").filter_map(|(at, _)| {
        let shown = text[..at].rsplit('[').next()?;
        let target = text[at + 2..].split(')').next()?;
        Some((shown, target))
    })
}

/// A text without its blocks of code.
pub fn prose(text: &str) -> String {
    text.split("\n```").step_by(2).collect()
}
