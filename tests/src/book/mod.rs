//! The book in `docs/`: its chapters, and those parts of them that are made from the code and the results.
//!
//! Such a part stands between two comments, which a reader of the book does not see:
//!
//! ```text
//! <!-- figure 4096 tiled-32 tflops -->8.2<!-- /figure -->
//! ```
//!
//! | part | what it holds |
//! | --- | --- |
//! | `figure SIZE VARIANT WHAT` | a measured figure ([`results`]) |
//! | `measured KERNEL` | a table of them |
//! | `traffic KERNEL` | launch shape and memory traffic of the variants ([`traffic`]) |
//! | `source FILE: ITEM; ITEM` | items of a Rust file ([`items`]) |
//! | `llvm ENTRY: LINES`, `nvvm ENTRY: LINES`, `ptx ENTRY: LINES` | lines of a compiled kernel ([`listing`]) |

pub mod items;
pub mod listing;
pub mod results;
pub mod traffic;

use std::fs;
use std::path::{Path, PathBuf};

use crate::results::at_root;

/// Reads a text file.
///
/// # Errors
///
/// It cannot be read. The message names it.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The folder of the chapters.
pub fn source_folder() -> PathBuf {
    at_root("docs/src")
}

/// A chapter: its title in the table of contents, its file in `docs/src`, and what it says.
#[derive(Clone, Debug)]
pub struct Chapter {
    pub title: String,
    pub file: String,
    pub text: String,
}

/// The chapters, in the order of the table of contents.
///
/// # Errors
///
/// A file is missing.
pub fn chapters() -> Result<Vec<Chapter>, String> {
    let folder = source_folder();
    let summary = read(&folder.join("SUMMARY.md"))?;
    links(&summary)
        .map(|(title, file)| {
            Ok(Chapter {
                title: title.to_string(),
                file: file.to_string(),
                text: read(&folder.join(file))?,
            })
        })
        .collect()
}

/// The links and pictures of a text: what they show, and where they lead.
pub fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("](").filter_map(|(at, _)| {
        let shown = text[..at].rsplit('[').next()?;
        let target = text[at + 2..].split(')').next()?;
        Some((shown, target))
    })
}

/// A part of a chapter that is made, not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its first word, such as `figure`.
    pub kind: &'a str,
    /// The rest of its opening comment.
    pub arguments: &'a str,
    /// What it holds so far.
    pub old: &'a str,
}

/// The kinds of parts.
const KINDS: [&str; 7] = [
    "figure", "measured", "traffic", "source", "llvm", "nvvm", "ptx",
];

/// The text with each part made anew by `make`, or left as it is where that gives `None`.
///
/// # Errors
///
/// An error of `make`, or a part that is not closed or stands where Markdown would take its line for HTML.
pub fn refill(
    text: &str,
    mut make: impl FnMut(Part<'_>) -> Result<Option<String>, String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, opening)) = rest.split_once("<!-- ") {
        let (comment, after) = opening
            .split_once(" -->")
            .ok_or("a comment is not closed")?;
        filled += &format!("{before}<!-- {comment} -->");
        let (kind, arguments) = comment.split_once(' ').unwrap_or((comment, ""));
        if !KINDS.contains(&kind) {
            return Err(format!("`{kind}` is no kind of part; there are {KINDS:?}"));
        }
        if kind == "figure" && (before.is_empty() || before.ends_with('\n')) {
            return Err(format!(
                "`{comment}` begins a line, which Markdown then takes for HTML"
            ));
        }
        let closing = format!("<!-- /{kind} -->");
        let (old, after) = after
            .split_once(&closing)
            .ok_or_else(|| format!("`{comment}` has no {closing}"))?;
        let part = Part {
            kind,
            arguments,
            old,
        };
        match make(part)? {
            Some(new) => filled += &new,
            None => filled += old,
        }
        filled += &closing;
        rest = after;
    }
    Ok(filled + rest)
}

/// Makes a part that needs neither PTX nor LLVM IR; `None` for those that do.
///
/// # Errors
///
/// It names what there is not.
pub fn make_from_source(part: Part<'_>) -> Result<Option<String>, String> {
    match part.kind {
        "figure" => results::figure(part.arguments).map(Some),
        "measured" => results::table(part.arguments).map(Some),
        "traffic" => traffic::table(part.arguments).map(Some),
        "source" => items::quote(part.arguments).map(Some),
        _ => Ok(None),
    }
}

/// Makes a part that shows what became of a kernel; `None` for others, and for those in which nothing but numbers of
/// registers and labels would change, as they do with any change of any kernel.
///
/// # Errors
///
/// It names what there is not.
pub fn make_from_compiled(part: Part<'_>) -> Result<Option<String>, String> {
    match part.kind {
        "llvm" | "nvvm" | "ptx" => {
            let new = listing::quote(part.kind, part.arguments)?;
            let is_same = listing::without_numbers(&new) == listing::without_numbers(part.old);
            Ok((!is_same).then_some(new))
        }
        _ => Ok(None),
    }
}

/// The kernel of that name.
///
/// # Errors
///
/// There is none.
pub fn kernel(name: &str) -> Result<&'static gpu_kernels::spec::Kernel, String> {
    gpu_kernels::KERNELS
        .iter()
        .copied()
        .find(|kernel| kernel.name == name)
        .ok_or_else(|| format!("there is no kernel `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_made_anew_and_the_rest_stays() {
        let text =
            "a <!-- figure 1 x -->old<!-- /figure --> b\n<!-- ptx e: l -->\nkept\n<!-- /ptx -->\n";
        let filled = refill(text, |part| {
            Ok((part.kind == "figure").then(|| format!("[{}]", part.arguments)))
        });
        let expected = "a <!-- figure 1 x -->[1 x]<!-- /figure --> b\n<!-- ptx e: l -->\nkept\n<!-- /ptx -->\n";
        assert_eq!(filled.as_deref(), Ok(expected));
    }

    #[test]
    fn parts_that_are_unknown_or_open_or_begin_a_line_are_refused() {
        for text in [
            "x <!-- fgure 1 -->2<!-- /fgure -->",
            "x <!-- figure 1 -->2",
            "x <!-- figure 1",
            "x\n<!-- figure 1 -->2<!-- /figure --> y",
        ] {
            assert!(refill(text, |_| Ok(None)).is_err(), "{text}");
        }
    }

    #[test]
    fn links_are_what_they_show_and_where_they_lead() {
        let found: Vec<_> = links("- [One](one.md)\n![Two](pictures/two.svg)").collect();
        assert_eq!(found, [("One", "one.md"), ("Two", "pictures/two.svg")]);
    }
}
