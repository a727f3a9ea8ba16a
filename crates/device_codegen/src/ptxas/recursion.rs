//! Functions that call themselves, directly or through others.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::text::all_reached;

/// The text in which each function that calls itself takes its own address.
pub(super) fn with_own_addresses(ptx: &str) -> Cow<'_, str> {
    let recursive = recursive(ptx);
    if recursive.is_empty() {
        return ptx.into();
    }
    let functions = ptx.split_inclusive("\n}\n");
    let with_address = functions.map(|text| match name_and_body(text) {
        Some((name, _)) if recursive.contains(name) => {
            let address = format!("\n{{ {{ .reg .b64 %n64; mov.u64 %n64, {name}; }}\n");
            text.replacen("\n{\n", &address, 1).into()
        }
        _ => Cow::from(text),
    });
    with_address.collect::<String>().into()
}

fn recursive(ptx: &str) -> HashSet<&str> {
    let functions = ptx.split_inclusive("\n}\n");
    let bodies: HashMap<&str, &str> = functions.filter_map(name_and_body).collect();
    let is_in_word = |letter: char| letter.is_alphanumeric() || "_$.%".contains(letter);
    let calls: HashMap<&str, Vec<&str>> = bodies
        .iter()
        .map(|(name, body)| {
            // To take a function that is named for one that is called does no harm.
            let words = body.split(|letter| !is_in_word(letter));
            let called: HashSet<&str> = words.filter(|word| bodies.contains_key(word)).collect();
            (*name, called.into_iter().collect())
        })
        .collect();
    let calls_itself = |name: &&str| {
        let called = calls[name].iter().copied().collect();
        all_reached(called, &calls).contains(name)
    };
    bodies.into_keys().filter(calls_itself).collect()
}

/// The function that ends this text, in front of which may be declarations of others. `None` if it
/// is a kernel, which nothing calls.
fn name_and_body(text: &str) -> Option<(&str, &str)> {
    let (head, body) = text.split_once("\n{\n")?;
    let is_header = |line: &&str| line.contains(".func ") || line.contains(".entry ");
    let (_, header) = head.lines().rfind(is_header)?.split_once(".func ")?;
    // The parameter in which it returns comes before its name.
    let name = header.split_once(") ").map_or(header, |(_, name)| name);
    Some((name.split('(').next()?.trim(), body))
}
