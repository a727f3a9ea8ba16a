//! A mutant: the program with one small error in it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One error that is planted, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutant {
    /// What turns it on: the value of the environment variable `MUTANT`. Counted from 1.
    pub id: u32,
    /// Relative to the root of the repository.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// The function that it is in.
    pub function: String,
    /// A digest of that function's text: of its tokens, so that comments and line breaks are not in
    /// it.
    pub version: String,
    /// What the function tells `mutation::on` of itself when it is called: the id of its first
    /// mutant.
    pub entry: u32,
    /// The text that is changed, shortened.
    pub text: String,
    /// What the change does.
    pub change: String,
    /// Which it is of those in the function that are called the same. Counted from 1.
    pub occurrence: u32,
}

/// Its place and its name.
impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.name())
    }
}

impl Mutant {
    /// What it is called in the list of survivors: it says nothing of lines, which move.
    pub fn name(&self) -> String {
        let Self {
            file,
            function,
            text,
            change,
            occurrence,
            ..
        } = self;
        let which = if *occurrence < 2 {
            String::new()
        } else {
            format!(" ({occurrence})")
        };
        format!("{file}: {function}: `{text}`: {change}{which}")
    }
}
