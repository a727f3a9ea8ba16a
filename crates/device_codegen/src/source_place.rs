//! Where a line of the IR comes from in the Rust source.
//!
//! A pass that fails may have taken the instruction out of its module already, and a text that
//! cannot be parsed has no module. So the place is looked up in the text itself: the line, or the
//! last line of the instruction that begins there, ends in `!dbg !7`, and `!7` is a location of
//! the line tables.

use std::collections::BTreeMap;

use crate::error::{SourcePlace, demangle};
use crate::ir::{Function, LineTables, Scope};
use crate::parser;

/// Where a line of `text`, counted from 1, was written, and behind that the calls through which
/// it was inlined. Places in Rust's own libraries are left out; nothing is left of a line without
/// a location.
pub(crate) fn places_of_line(text: &str, line: u32) -> Vec<SourcePlace> {
    let Some(node) = attached_node(text, line) else {
        return Vec::new();
    };
    let nodes: String = text
        .lines()
        .filter(|line| line.starts_with('!'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let Ok(module) = parser::parse("line tables", &nodes) else {
        return Vec::new();
    };
    match module.lines.scopes.get(&node) {
        Some(_) => place(&module.lines, node, None).into_iter().collect(),
        None => places(&module.lines, node),
    }
}

/// The number in `!dbg !7` on the line, or on the last line of what begins there: a `switch` has
/// a line for each case.
fn attached_node(text: &str, line: u32) -> Option<u32> {
    let mut lines = text.lines().skip((line as usize).checked_sub(1)?);
    let mut last = lines.next()?;
    if last.trim_end().ends_with('[') {
        last = lines.find(|line| line.trim_start().starts_with(']'))?;
    }
    let (_, number) = last.rsplit_once("!dbg !")?;
    let end = number
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(number.len());
    number[..end].parse().ok()
}

/// The place of most instructions of a function, and how many they are.
pub(crate) fn most_copied(lines: &LineTables, function: &Function) -> Option<(String, usize)> {
    let mut counts = BTreeMap::new();
    for instruction in function.instructions() {
        if let Some(location) = instruction.source {
            *counts.entry(location).or_insert(0) += 1;
        }
    }
    let placed = counts.into_iter().filter_map(|(location, count)| {
        let places = places(lines, location);
        Some((places.first()?.to_string(), count))
    });
    placed.max_by_key(|(_, count)| *count)
}

/// Where a location is, and behind that the calls through which it was inlined.
pub(crate) fn places(lines: &LineTables, location: u32) -> Vec<SourcePlace> {
    chain(lines, location)
        .filter_map(|(number, line, column)| place(lines, number, Some((line, column))))
        .collect()
}

/// Scope, line and column of a location and of the calls that it was inlined through, innermost
/// first.
fn chain(lines: &LineTables, location: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    let first = lines.locations.get(&location);
    let calls = std::iter::successors(first, |location| lines.locations.get(&location.inlined_at?));
    // A path with more edges than there are nodes goes in a circle.
    calls
        .take(lines.locations.len())
        .map(|location| (location.scope, location.line, location.column))
}

/// A place in a scope, its first line unless given. `None` in Rust's own libraries, and for line
/// 0, which is no line in particular.
fn place(lines: &LineTables, scope: u32, at: Option<(u32, u32)>) -> Option<SourcePlace> {
    let scope = lines.scopes.get(&scope)?;
    let file = lines.files.get(&scope.file())?;
    let path = format!("{}/{}", file.folder, file.name);
    let is_rusts = ["rustc/", "rust/library/"]
        .iter()
        .any(|prefix| path.trim_start_matches('/').starts_with(prefix));
    let (line, column) = match (at, scope) {
        (Some(at), _) => at,
        (None, Scope::Function(function)) => (function.line, 0),
        (None, _) => return None,
    };
    (!is_rusts && line > 0).then(|| SourcePlace {
        file: file.name.clone(),
        line,
        column,
    })
}

/// The function of the source that has a location, before all inlining: `libm::sqrt`. If that is
/// one of Rust's own libraries, the function that called it.
pub(crate) fn function_of(lines: &LineTables, location: u32) -> Option<String> {
    chain(lines, location)
        .find(|(scope, line, column)| place(lines, *scope, Some((*line, *column))).is_some())
        .and_then(|(scope, ..)| function_name(lines, scope))
}

fn function_name(lines: &LineTables, mut scope: u32) -> Option<String> {
    for _ in 0..=lines.scopes.len() {
        match lines.scopes.get(&scope)? {
            Scope::Function(function) => {
                let name = function.symbol.as_deref().unwrap_or(&function.name);
                return Some(demangle(name));
            }
            Scope::Block { parent, .. } | Scope::OtherFile { parent, .. } => scope = *parent,
        }
    }
    None
}
