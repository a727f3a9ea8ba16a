//! Which registers of a function may hold a boolean in `ptxas`'s eyes.

use std::collections::{HashMap, HashSet};

use super::text::{all_reached, parts};

/// The registers that hold nothing but 0 or 1 wherever the function sets them, and those that are
/// set to an integer converted to a float.
pub(super) fn booleans_and_converted(function: &str) -> HashSet<&str> {
    let definitions = definitions(function);
    // All that could be is taken for a boolean, until one of its sources is seen not to be.
    let mut booleans: HashMap<&str, Vec<&str>> = definitions
        .iter()
        .filter_map(|(register, definitions)| {
            let sources = definitions.iter().map(|definition| match definition {
                Definition::From(sources) => Some(sources),
                _ => None,
            });
            let sources: Option<Vec<_>> = sources.collect();
            Some((*register, sources?.into_iter().flatten().copied().collect()))
        })
        .collect();
    loop {
        let is_boolean =
            |source: &&str| ["0", "1"].contains(source) || booleans.contains_key(source);
        let wrong: Vec<&str> = booleans
            .iter()
            .filter(|(_, sources)| !sources.iter().all(is_boolean))
            .map(|(register, _)| *register)
            .collect();
        if wrong.is_empty() {
            break;
        }
        for register in wrong {
            booleans.remove(register);
        }
    }
    // These are passed on by whatever copies them.
    let mut converted = HashSet::new();
    let mut copies: HashMap<&str, Vec<&str>> = HashMap::new();
    for (register, definitions) in &definitions {
        for definition in definitions {
            match definition {
                Definition::Converted => {
                    converted.insert(*register);
                }
                Definition::Copy(source) => copies.entry(source).or_default().push(register),
                _ => {}
            }
        }
    }
    let mut found = all_reached(converted, &copies);
    found.extend(booleans.into_keys());
    found
}

/// How an instruction sets a register.
enum Definition<'p> {
    /// To 0 or 1 if these are.
    From(Vec<&'p str>),
    /// To an integer converted to a float.
    Converted,
    /// To another float, or its absolute value.
    Copy(&'p str),
    Other,
}

fn definitions(function: &str) -> HashMap<&str, Vec<Definition<'_>>> {
    let mut found: HashMap<&str, Vec<Definition<'_>>> = HashMap::new();
    for line in function.lines() {
        let Some((_, opcode, operands)) = parts(line) else {
            continue;
        };
        // `{%r1, %r2}` and `%p1|%p2` set several.
        let (targets, sources) = match operands.strip_prefix('{') {
            Some(list) => list.split_once('}').unwrap_or((list, "")),
            None => operands.split_once(',').unwrap_or((operands, "")),
        };
        let sources: Vec<&str> = sources
            .split(',')
            .map(str::trim)
            .filter(|source| !source.is_empty())
            .collect();
        let is_list = operands.starts_with('{');
        let definition = || match (opcode.split('.').next(), conversion(opcode), &*sources) {
            _ if is_list => Definition::Other,
            (Some("cvt"), Some(('f', 's' | 'u')), _) => Definition::Converted,
            (Some("cvt"), Some(('f', 'f')), [source])
            | (Some("mov" | "abs"), Some((_, 'f')), [source]) => Definition::Copy(source),
            (Some("cvt"), Some(('s' | 'u', 's' | 'u')), [source]) | (Some("mov"), _, [source]) => {
                Definition::From(vec![source])
            }
            (Some("selp" | "and" | "or" | "xor"), _, [left, right, ..]) => {
                Definition::From(vec![left, right])
            }
            _ => Definition::Other,
        };
        for target in targets.split([',', '|']) {
            let target = target.trim();
            if target.starts_with('%') {
                found.entry(target).or_default().push(definition());
            }
        }
    }
    found
}

/// The kinds of the types that a conversion is to and from: `('f', 'u')` for `cvt.rn.f32.u32`.
fn conversion(opcode: &str) -> Option<(char, char)> {
    let mut words = opcode.rsplit('.').map(|word| match word {
        "bf16" => Some('f'),
        word => word.chars().next(),
    });
    let from = words.next()??;
    let to = words.next()??;
    Some((to, from))
}
