//! Words for messages, for this library and for the programs of this workspace.

use std::fmt::Display;

/// `1 thread`, `2 threads`: a count with its noun.
pub fn plural(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    match count.as_str() {
        "1" => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// `one`, `one and another`, `one, another and a third`; of none `nothing`.
pub fn list(names: &[&str]) -> String {
    match names {
        [] => "nothing".to_string(),
        [one] => one.to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let counted = [0, 1, 2, 11].map(|count| plural(count, "CTA"));
        assert_eq!(counted, ["0 CTAs", "1 CTA", "2 CTAs", "11 CTAs"]);
    }
}
