//! The code compiled from a kernel, beside the Rust lines it came from: PTX, the machine
//! code that `ptxas` makes of it, and OpenCL C.
//!
//! | file | what it does |
//! | --- | --- |
//! | `assembled.rs` | a kernel's PTX, and what `ptxas` makes of it |
//! | `ptx.rs` | one kernel of a PTX module, and the line of each instruction |
//! | `opencl.rs` | a kernel in OpenCL C, with the text of its Rust lines |
//! | `sass.rs` | a kernel's machine code, as `nvdisasm` writes it |
//! | `statistics.rs` | counts of the instructions in a kernel's mainloop |
//! | `record.rs` | these counts for every f32 kernel, kept in a file |
//! | `sources.rs` | the Rust files that were compiled to this build's PTX |
//! | `annotated.rs` | instructions with their lines, as text |

mod annotated;
pub mod assembled;
pub mod opencl;
pub mod ptx;
pub mod record;
pub mod sass;
pub mod sources;
pub mod statistics;

pub use annotated::write;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The name in the line tables, such as `gpu-kernels/src/tiled.rs`.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}

/// A line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Instruction {
        text: String,
        /// The origin: the place in the kernel, the place in the function that was inlined there,
        /// and so on to the innermost. Empty if the compiler did not keep it.
        origin: Vec<Place>,
    },
    /// A label, a declaration, a bracket.
    Other(String),
}
