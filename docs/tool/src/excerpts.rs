//! Items of a Rust file, shown by mdBook's `{{#include}}` with their current line numbers.
//!
//! So a chapter always shows the current code, and the code needs no markers for the book.

use crate::repository::{at_root, read};

/// Code that includes the items, given as `gpu-kernels/src/tiled.rs: fn multiply; fn tiled_16`.
///
/// # Errors
///
/// There is no such file, or not exactly one such item.
pub fn quote(arguments: &str) -> Result<String, String> {
    let (file, items) = arguments
        .split_once(": ")
        .ok_or_else(|| format!("`source {arguments}` is not `source FILE: ITEM; ITEM`"))?;
    let text = read(&at_root(file))?;
    let includes: Result<Vec<String>, String> = items
        .split("; ")
        .map(|item| {
            let (first, last) = lines(&text, item).map_err(|why| format!("{file}: {why}"))?;
            Ok(format!("{{{{#include ../../{file}:{first}:{last}}}}}\n"))
        })
        .collect();
    Ok(format!("\n```rust\n{}```\n", includes?.join("\n")))
}

/// Lines of a file themselves, for a page that mdBook does not make, given as
/// `gpu-kernels/src/tiled.rs: while k0 < depth { .. }`: from the line that begins so to the one
/// after it that closes it.
///
/// # Errors
///
/// There is no such file, or not exactly one such line.
pub fn excerpt(arguments: &str) -> Result<String, String> {
    let (file, first) = arguments
        .split_once(": ")
        .and_then(|(file, lines)| Some((file, lines.strip_suffix(" .. }")?)))
        .ok_or_else(|| format!("`excerpt {arguments}` is not `excerpt FILE: FIRST LINE .. }}`"))?;
    let text = read(&at_root(file))?;
    let lines: Vec<&str> = text.lines().collect();
    let mut starts = (0..lines.len()).filter(|&line| lines[line].trim() == first);
    let (Some(start), None) = (starts.next(), starts.next()) else {
        return Err(format!("{file}: `{first}` is there not exactly once"));
    };
    let indent = indentation(lines[start]);
    let length = lines[start..]
        .iter()
        .position(|line| indentation(line) == indent && line.trim() == "}")
        .ok_or_else(|| format!("{file}: `{first}` has no end"))?;
    let shown = lines[start..=start + length].iter();
    let shown: Vec<&str> = shown.map(|line| line.get(indent..).unwrap_or("")).collect();
    Ok(format!("\n```rust\n{}\n```\n", shown.join("\n")))
}

/// Checks that code in a sentence, given with its backticks, is a line of the file.
///
/// # Errors
///
/// It is not: an exercise that edits it cannot be done.
pub fn line(file: &str, code: &str) -> Result<(), String> {
    let text = read(&at_root(file))?;
    let code = code.trim_matches('`');
    match text.lines().any(|line| line.trim() == code) {
        true => Ok(()),
        false => Err(format!("{file} has no line `{code}`")),
    }
}

/// The first and last line of an item, counted from 1, with the comments and attributes above it
/// and a macro around it. `item` is its beginning, such as `fn multiply` or `kernel!`. The text
/// must be formatted by rustfmt.
fn lines(text: &str, item: &str) -> Result<(usize, usize), String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = (0..lines.len()).filter(|&line| begins(lines[line], item));
    let (Some(start), None) = (found.next(), found.next()) else {
        return Err(format!("`{item}` is there not exactly once"));
    };
    let above = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("#[")
    };
    let first = start
        - lines[..start]
            .iter()
            .rev()
            .take_while(|line| above(line))
            .count();
    let indent = indentation(lines[first]);
    let ends = |line: &&str| indentation(line) == indent && (line.ends_with([';', '}']));
    let length = lines[start..]
        .iter()
        .position(ends)
        .ok_or_else(|| format!("`{item}` has no end"))?;
    Ok((first + 1, start + length + 1))
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

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//! File.\n\n/// Size.\nconst SIZE: usize = 4;\n\ngemm_kernel! {\n    fn entry(x: f32) {\n        body::<SIZE>(x)\n    }\n}\n\n/// Body.\n#[inline]\nunsafe fn body<const N: usize>(\n    x: f32,\n) {\n    if x {\n    }\n}\n\nimpl X {\n    /// Part.\n    pub fn part(&self) {\n        0\n    }\n}\n\n// Why.\nkernel! {\n    name: x,\n}\n";

    #[test]
    fn an_item_has_its_comments_with_it() {
        assert_eq!(lines(TEXT, "const SIZE"), Ok((3, 4)));
        assert_eq!(lines(TEXT, "fn entry"), Ok((7, 9)));
        assert_eq!(lines(TEXT, "fn body"), Ok((12, 19)));
        assert_eq!(lines(TEXT, "fn part"), Ok((22, 25)));
        assert_eq!(lines(TEXT, "impl X"), Ok((21, 26)));
        assert_eq!(lines(TEXT, "kernel!"), Ok((28, 31)));
    }

    #[test]
    fn code_that_an_exercise_edits_is_a_line_of_the_file() {
        let file = "docs/tool/src/excerpts.rs";
        assert_eq!(line(file, "`use super::*;`"), Ok(()));
        assert!(line(file, "`use super::none;`").is_err());
    }

    #[test]
    fn an_excerpt_ends_where_its_first_line_is_closed() {
        let of = |first| excerpt(&format!("docs/tool/src/excerpts.rs: {first}"));
        assert_eq!(
            of("fn indentation(line: &str) -> usize { .. }"),
            Ok("\n```rust\nfn indentation(line: &str) -> usize {\n    line.len() - line.trim_start().len()\n}\n```\n".to_string())
        );
        assert!(of("fn nowhere() { .. }").is_err());
        assert!(of("use super::*;").is_err());
    }

    #[test]
    fn a_name_that_is_not_there_or_only_part_of_one_is_refused() {
        assert!(lines(TEXT, "fn bod").is_err());
        assert!(lines(TEXT, "fn missing").is_err());
    }
}
