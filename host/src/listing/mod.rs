//! The code compiled from a kernel, beside the Rust lines it came from: PTX, the machine
//! code that `ptxas` makes of it, and OpenCL C.
//!
//! | file | what it does |
//! | --- | --- |
//! | `ptx.rs` | one kernel of a PTX module, and the line of each instruction |
//! | `opencl.rs` | a kernel in OpenCL C, with the text of its Rust lines |
//! | `sass.rs` | the same of machine code, as `nvdisasm` writes it |
//! | `statistics.rs` | what the mainloop of a kernel consists of |
//! | `record.rs` | the same of every f32 kernel, counted once and kept |
//! | `sources.rs` | the Rust files that were compiled to this build's PTX |
//! | `annotated.rs` | instructions with their lines, as text |

mod annotated;
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
