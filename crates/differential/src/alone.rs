//! One kernel of a module with the functions that it reaches: `ptxas`, and so the driver, compiles
//! a module's functions again for each kernel, and so takes a multiple of the time for all
//! together.

use std::collections::{HashMap, HashSet};

/// A module, taken apart.
pub struct Module<'p> {
    /// In the module's order.
    parts: Vec<Part<'p>>,
    /// Kernels and functions with bodies, by name.
    bodies: HashMap<&'p str, &'p str>,
    /// Variables with values, which can be addresses of functions.
    variables: Vec<&'p str>,
}

struct Part<'p> {
    text: &'p str,
    /// The function it belongs to; `None` for the head of the module and its variables.
    function: Option<&'p str>,
}

impl<'p> Module<'p> {
    pub fn of(ptx: &'p str) -> Self {
        let (mut parts, mut bodies, mut variables) = (Vec::new(), HashMap::new(), Vec::new());
        let mut rest = ptx;
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
            match function {
                Some(function) if is_body => drop(bodies.insert(function, text)),
                None if text.contains(" = ") => variables.push(text),
                _ => (),
            }
            parts.push(Part { text, function });
            rest = after;
        }
        Self {
            parts,
            bodies,
            variables,
        }
    }

    /// The module with this kernel as its only one. If there is no such kernel, it has none.
    pub fn kernel(&self, name: &str) -> String {
        let mut open = self.variables.clone();
        open.extend(self.bodies.get(name));
        let mut reached = HashSet::from([name]);
        while let Some(text) = open.pop() {
            for word in text.split(|c: char| !is_of_a_name(c)) {
                if let Some((function, body)) = self.bodies.get_key_value(word)
                    && reached.insert(function)
                {
                    open.push(body);
                }
            }
        }
        let is_kept = |part: &&Part| part.function.is_none_or(|name| reached.contains(name));
        self.parts
            .iter()
            .filter(is_kept)
            .map(|part| part.text)
            .collect()
    }
}

fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The name of the function that this text declares or defines. It follows the parameter in which
/// the function returns, and precedes its other parameters.
fn name(text: &str) -> Option<&str> {
    let head = text.split_once(['{', ';'])?.0;
    let (_, after) = head.split_once([' ', '\t', '\n'])?;
    let mut words = after.split(|c: char| !is_of_a_name(c) && c != '.');
    words.find(|word| {
        let is_keyword = word.is_empty() || word.starts_with('.') || *word == "func_retval0";
        !is_keyword && !word.starts_with(|c: char| c.is_ascii_digit())
    })
}
