//! Reads a function of PTX as text: the parts of an instruction, and how far a value goes.

use std::collections::{HashMap, HashSet};

/// The guard, `@%p1` or nothing, the opcode and the operands of an instruction.
pub(super) fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let text = line.trim();
    let (guard, instruction) = match text.strip_prefix('@') {
        Some(_) => text.split_once(char::is_whitespace)?,
        None => ("", text),
    };
    let (opcode, operands) = instruction
        .strip_suffix(';')?
        .trim_start()
        .split_once(char::is_whitespace)?;
    Some((guard, opcode, operands))
}

/// These registers, and those that are set from one of them, and so on.
pub(super) fn all_reached<'p>(
    mut found: HashSet<&'p str>,
    uses: &HashMap<&'p str, Vec<&'p str>>,
) -> HashSet<&'p str> {
    let mut open: Vec<&str> = found.iter().copied().collect();
    while let Some(register) = open.pop() {
        for target in uses.get(register).into_iter().flatten() {
            if found.insert(target) {
                open.push(target);
            }
        }
    }
    found
}
