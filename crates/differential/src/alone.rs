//! One kernel of a module with the functions that it reaches: `ptxas`, and so the driver, compiles a
//! module's functions again for each kernel, and so takes a multiple of the time for all together.

use std::collections::{HashMap, HashSet};

/// A module, taken apart, in its order.
pub struct Modules<'p>(Vec<Part<'p>>);

struct Part<'p> {
    text: &'p str,
    /// Of what function; the head and variables are of none.
    function: Option<&'p str>,
    is_body: bool,
}

impl<'p> Modules<'p> {
    pub fn of(ptx: &'p str) -> Self {
        let (mut parts, mut rest) = (Vec::new(), ptx);
        while let Some(line) = rest.split_inclusive('\n').next() {
            let words = line.trim_start_matches(".visible ");
            let words = words.trim_start_matches(".weak ");
            let mut is_body = false;
            let mut end = line.len();
            let is_function = words.starts_with(".entry") || words.starts_with(".func");
            if is_function {
                // A declaration has no body.
                is_body = rest
                    .find(['{', ';'])
                    .is_some_and(|at| rest[at..].starts_with('{'));
                let last = if is_body { "\n}\n" } else { ";\n" };
                end = rest.find(last).map_or(rest.len(), |at| at + last.len());
            }
            let (text, after) = rest.split_at(end);
            let function = is_function.then(|| name(text)).flatten();
            parts.push(Part {
                text,
                function,
                is_body,
            });
            rest = after;
        }
        Self(parts)
    }

    /// The module of this kernel alone; without kernels if there is none of this name.
    pub fn kernel(&self, name: &str) -> String {
        let mut bodies = HashMap::new();
        let mut open = Vec::new();
        for part in &self.0 {
            match part.function {
                Some(function) if part.is_body => drop(bodies.insert(function, part.text)),
                Some(_) => (),
                // Variables hold addresses of functions, too.
                None if part.text.contains(" = ") => open.push(part.text),
                None => (),
            }
        }
        open.extend(bodies.get(name));
        let mut reached = HashSet::from([name]);
        while let Some(text) = open.pop() {
            for word in text.split(|c: char| !is_of_a_name(c)) {
                if let Some((function, body)) = bodies.get_key_value(word)
                    && reached.insert(function)
                {
                    open.push(body);
                }
            }
        }
        let is_kept = |part: &&Part| part.function.is_none_or(|name| reached.contains(name));
        self.0
            .iter()
            .filter(is_kept)
            .map(|part| part.text)
            .collect()
    }
}

fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// That of a function: what stands before the parentheses of its parameters, behind those of what it
/// returns.
fn name(text: &str) -> Option<&str> {
    let head = text.split_once(['{', ';'])?.0;
    let (_, after) = head.split_once([' ', '\t', '\n'])?;
    let mut words = after.split(|c: char| !is_of_a_name(c) && c != '.');
    words.find(|word| {
        let is_keyword = word.is_empty() || word.starts_with('.') || *word == "func_retval0";
        !is_keyword && !word.starts_with(|c: char| c.is_ascii_digit())
    })
}
