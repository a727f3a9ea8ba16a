//! A line of a listing, and where it comes from.

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// As the line tables name it, such as `gpu-kernels/src/tiled.rs`.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}

/// A line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Instruction {
        text: String,
        /// Where it comes from: the place in the kernel, that in the function whose call was
        /// inlined there, and so on to the innermost. Empty if the compiler did not keep it.
        origin: Vec<Place>,
    },
    /// A label, a declaration, a bracket.
    Other(String),
}
