//! What went wrong, where in the IR, and what to do about it.

use std::fmt;
use std::sync::Arc;

/// A place in the LLVM IR that rustc printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The name that the caller gave the source.
    pub(crate) file: Arc<str>,
    /// Counted from 1.
    pub(crate) line: u32,
    /// The mangled name of the function around it, if any.
    pub(crate) function: Option<Arc<str>>,
}

/// IR that cannot become device code.
///
/// Its `Display` is `file:line: in function NAME: problem. What to do.`
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    location: Location,
    problem: String,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(location: &Location, problem: impl Into<String>) -> Self {
        Self {
            location: location.clone(),
            problem: problem.into(),
        }
    }

    /// The name of the source, as it was given to [`compile`](crate::compile).
    pub fn file(&self) -> &str {
        &self.location.file
    }

    /// The line of the LLVM IR, counted from 1.
    pub fn line(&self) -> u32 {
        self.location.line
    }

    /// The demangled name of the function that holds the line, if one does.
    pub fn function(&self) -> Option<String> {
        self.location.function.as_deref().map(demangle)
    }

    /// What is wrong and what to do, without the place.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.location.file, self.location.line)?;
        if let Some(function) = self.function() {
            write!(f, "in function `{function}`: ")?;
        }
        f.write_str(&self.problem)
    }
}

/// The Rust path of a mangled symbol, without its hash; other names are returned as they are.
pub(crate) fn demangle(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol))
}
