//! What became of a kernel, beside the Rust lines it came from: PTX, and the machine code that `ptxas` makes of it.
//!
//! | file | what it does |
//! | --- | --- |
//! | `ptx.rs` | one kernel of a PTX module, and the line of each instruction |
//! | `sass.rs` | the same of machine code, as `nvdisasm` writes it |
//! | `statistics.rs` | what the main loop of a kernel consists of |
//! | `sources.rs` | the Rust files that were compiled to this build's PTX |
//! | `annotated.rs` | instructions with their lines, as text |

mod annotated;
pub mod ptx;
pub mod sass;
pub mod sources;
pub mod statistics;

pub use annotated::write;

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
        /// Where it comes from: the place in the kernel, that in the function whose call was inlined there, and so on to
        /// the innermost. Empty if the compiler did not keep it.
        origin: Vec<Place>,
    },
    /// A label, a declaration, a bracket.
    Other(String),
}
