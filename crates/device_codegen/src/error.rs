//! What went wrong, where in the Rust source and in the IR, and what to do about it.

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

/// A place in the Rust source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourcePlace {
    pub(crate) file: Arc<str>,
    pub(crate) line: u32,
    /// 0 where only the line is known.
    pub(crate) column: u32,
}

/// IR that cannot become device code.
///
/// Its `Display` is `src/lib.rs:5:9 (kernels.ll:123): in function NAME: problem. What to do.`
/// Where the code has been inlined, the calls that led there follow the place in the Rust source;
/// for a function that is not defined, all calls from a kernel on.
/// Without line tables only the place in the IR is known: `kernels.ll:123: in function ...`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    location: Box<Location>,
    /// Calls of the function around it, and of those that call it, up to a kernel.
    calls: Vec<Location>,
    /// The place in the Rust source and the calls that lead there, innermost first.
    places: Vec<SourcePlace>,
    problem: String,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(location: &Location, problem: impl Into<String>) -> Self {
        Self {
            location: Box::new(location.clone()),
            calls: Vec::new(),
            places: Vec::new(),
            problem: problem.into(),
        }
    }

    /// The error with the calls through which a kernel comes there.
    pub(crate) fn with_calls(self, calls: Vec<Location>) -> Self {
        Self { calls, ..self }
    }

    /// Where it is, and the calls that lead there.
    pub(crate) fn locations(&self) -> impl Iterator<Item = &Location> {
        std::iter::once(&*self.location).chain(&self.calls)
    }

    /// The error with its places in the Rust source.
    pub(crate) fn with_places(self, places: Vec<SourcePlace>) -> Self {
        Self { places, ..self }
    }

    /// File, line and column of the Rust source, such as `src/lib.rs:5:9`, if the IR has line
    /// tables; the file as they name it. The column is absent if the error is about a complete
    /// function. Code of Rust's own libraries has the place of their caller.
    pub fn rust_place(&self) -> Option<String> {
        self.places.first().map(SourcePlace::to_string)
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

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match self.column {
            0 => Ok(()),
            column => write!(f, ":{column}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Location { file, line, .. } = &*self.location;
        match self.places.split_first() {
            Some((place, calls)) => {
                write!(f, "{place}")?;
                for call in calls {
                    write!(f, ", called from {call}")?;
                }
                write!(f, " ({file}:{line}): ")?;
            }
            None => write!(f, "{file}:{line}: ")?,
        }
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
