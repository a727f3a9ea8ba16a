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
mod line;
pub mod opencl;
pub mod ptx;
pub mod record;
pub mod sass;
pub mod sources;
pub mod statistics;

pub use annotated::write;
pub use line::{Line, Place};
