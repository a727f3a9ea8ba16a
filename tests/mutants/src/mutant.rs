//! A mutant: the program with one small error in it.

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
    /// The text that is changed, shortened.
    pub text: String,
    /// What the change does.
    pub change: String,
    /// Which it is of those in the function that are called the same. Counted from 1.
    pub occurrence: u32,
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
