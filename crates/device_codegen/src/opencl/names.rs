//! C identifiers: the names of the Rust source as far as rustc has kept them.

use std::collections::{HashMap, HashSet};

use crate::error::demangle;

/// Words that a variable must not be called: keywords, types, and the functions that this printer
/// calls.
const TAKEN: &str = "\
    as_double as_float as_int as_long as_uint as_ulong auto barrier bool break case ceil char clz \
    const constant continue ctz default do double else enum extern fabs false float float_of_half \
    floor fma fmax fmin fmod for generic global goto half half_of_float if image2d_t inline int \
    isordered isunordered kernel local long main max mem_fence min pipe popcount private quad \
    read_only register restrict return rint short signed sizeof sqrt static struct sub_sat add_sat \
    switch true trunc typedef uchar uint ulong uniform union unsigned ushort void volatile while \
    bits rotate select abs mul_hi report_panic panic_record dynamic_local NAN INFINITY";

fn is_taken(name: &str) -> bool {
    TAKEN.split(' ').any(|word| word == name)
}

/// The names in use in one function.
#[derive(Default)]
pub(super) struct Names {
    used: HashSet<String>,
    /// The last number behind each name.
    numbers: HashMap<String, u32>,
}

impl Names {
    /// A name that nothing has yet, after what rustc calls the value: `k0` for `k0.i.sroa.0.032`.
    pub(super) fn unique(&mut self, given: Option<&str>) -> String {
        let wish = given.map_or("t", source_name);
        let clean = identifier(wish);
        loop {
            let number = match self.numbers.get_mut(&clean) {
                Some(number) => {
                    *number += 1;
                    *number
                }
                None => {
                    let first = 1 + u32::from(is_taken(&clean));
                    self.numbers.insert(clean.clone(), first);
                    first
                }
            };
            let name = match number {
                1 => clean.clone(),
                _ => format!("{clean}_{number}"),
            };
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The part of a value's name that stood in the source, `t` if there is none. rustc numbers what
/// has no name (`_14`, `7`), and LLVM appends where it was inlined and divided.
fn source_name(name: &str) -> &str {
    let first = name.split('.').find(|part| !part.is_empty()).unwrap_or("");
    let is_numbered = first
        .trim_start_matches('_')
        .bytes()
        .all(|byte| byte.is_ascii_digit());
    match is_numbered || first == "sroa" || first == "idx" || first == "not" {
        true => "t",
        false => first,
    }
}

/// The name with what C does not allow replaced.
fn identifier(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => character,
            _ => '_',
        })
        .collect();
    // What begins with two underscores, or one and a capital, is the compiler's.
    let clean = clean.trim_start_matches('_');
    match clean.bytes().next() {
        None => "t".to_owned(),
        Some(b'0'..=b'9') => format!("t{clean}"),
        Some(_) => clean.to_owned(),
    }
}

/// A static or a function by the last part of its path: `a_tile` for `crate::kernel::A_TILE`.
pub(super) fn of_symbol(symbol: &str) -> String {
    let path = demangle(symbol);
    let last = path.rsplit("::").next().unwrap_or(&path);
    identifier(&last.to_lowercase())
}

/// Whether a symbol may name a kernel.
pub(super) fn is_identifier(symbol: &str) -> bool {
    identifier(symbol) == symbol && !is_taken(symbol)
}
