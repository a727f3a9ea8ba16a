//! The floats of a function whose range `ptxas` may know.

use std::collections::{HashMap, HashSet};

use super::text::{all_reached, parts};

/// The registers whose value is, or is computed from, an absolute value, an exponential, a sine, a
/// cosine, a hyperbolic tangent or a result that saturates.
pub(super) fn with_range(function: &str) -> HashSet<&str> {
    let mut found = HashSet::new();
    let mut uses: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in function.lines() {
        let Some((_, opcode, operands)) = parts(line) else {
            continue;
        };
        if !opcode.ends_with(".f32") && opcode != "mov.b32" {
            continue;
        }
        let mut registers = operands
            .split([',', ' ', '\t'])
            .filter(|word| word.starts_with('%'));
        let Some(target) = registers.next() else {
            continue;
        };
        let mut words = opcode.split('.');
        if matches!(words.next(), Some("abs" | "ex2" | "sin" | "cos" | "tanh"))
            || words.any(|word| word == "sat")
        {
            found.insert(target);
        }
        for source in registers {
            uses.entry(source).or_default().push(target);
        }
    }
    all_reached(found, &uses)
}
