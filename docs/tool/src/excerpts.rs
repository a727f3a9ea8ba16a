//! Pieces of source files, copied into the pages: a forge shows them, too.
//!
//! A piece is named by text of its own, not by line numbers, so that an edit above it changes
//! nothing.

use crate::repository::{at_root, read};

/// A code block with a whole file, given as `template/build.rs`, or with some of its items:
/// `gpu-kernels/src/tiled.rs: fn multiply; while k0 < depth { .. }`.
pub fn quote(arguments: &str) -> Result<String, String> {
    let (file, items) = match arguments.split_once(": ") {
        Some((file, items)) => (file, Some(items)),
        None => (arguments, None),
    };
    let text = read(&at_root(file))?;
    let language = match file.rsplit('.').next() {
        Some("toml") => "toml",
        Some("cl") => "c",
        _ => "rust",
    };
    let code = match items {
        None => text,
        Some(items) => {
            let piece = |item| piece(&text, item).map_err(|why| format!("{file}: {why}"));
            let pieces: Result<Vec<String>, String> = items.split("; ").map(piece).collect();
            pieces?.join("\n")
        }
    };
    Ok(format!("\n```{language}\n{code}```\n"))
}

/// Checks that code in a sentence, given with its backticks, is a line of the file.
pub fn line(file: &str, code: &str) -> Result<(), String> {
    let text = read(&at_root(file))?;
    let code = code.trim_matches('`');
    match text.lines().any(|line| line.trim() == code) {
        true => Ok(()),
        false => Err(format!("{file} has no line `{code}`")),
    }
}

/// An item, given by its beginning, such as `fn multiply` or `kernel!`, with the comments and
/// attributes above it and a macro around it; or, given as `FIRST LINE .. }`, the lines from that
/// one to the one that closes it. The text must be formatted by rustfmt.
fn piece(text: &str, item: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let first_line = item.strip_suffix(" .. }");
    let is_start = |line: &&str| match first_line {
        Some(first) => line.trim() == first,
        None => begins(line, item),
    };
    let mut starts = (0..lines.len()).filter(|&line| is_start(&lines[line]));
    let (Some(start), None) = (starts.next(), starts.next()) else {
        return Err(format!("`{item}` is there not exactly once"));
    };
    let is_above = |line: &&&str| {
        let line = line.trim_start();
        first_line.is_none() && (line.starts_with("//") || line.starts_with("#["))
    };
    let first = start - lines[..start].iter().rev().take_while(is_above).count();
    let indent = indentation(lines[first]);
    let is_end = |line: &&str| indentation(line) == indent && line.ends_with([';', '}']);
    let length = lines[start..]
        .iter()
        .position(is_end)
        .ok_or_else(|| format!("`{item}` has no end"))?;
    let shown = lines[first..=start + length].iter();
    Ok(shown
        .map(|line| format!("{}\n", line.get(indent..).unwrap_or("")))
        .collect())
}

/// Whether a line is the head of an item: `item` after words such as `pub` and `unsafe`, and not
/// part of a longer name.
fn begins(line: &str, item: &str) -> bool {
    let Some((before, after)) = line.split_once(item) else {
        return false;
    };
    let qualifiers = ["pub", "pub(crate)", "pub(super)", "unsafe", "const"];
    before
        .split_whitespace()
        .all(|word| qualifiers.contains(&word))
        && !after.starts_with(|next: char| next.is_alphanumeric() || next == '_')
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
