//! The parts of the book in `docs/` and of the README that come from code and measurements.
//!
//! `cargo run -p book` writes it all: pieces of source files, listings, tables, figures and plots.
//! `cargo test -p book` only compares, and also checks the book's links and commands, and that
//! every kernel has a chapter; what the compilers write, such as PTX, in the exhaustive tier.
//!
//! A generated part of a page is between two comments, which a reader does not see:
//!
//! ```text
//! <!-- figure 4096 tiled-32 tflops -->8.2<!-- /figure -->
//! ```
//!
//! | part | content | file |
//! | --- | --- | --- |
//! | `figure SIZE VARIANT WHAT` | a figure measured at M = N = K | `figures.rs` |
//! | `in FILE SIZE CONTENDER WHAT` | a figure of one file, sustained ones too | `of_file.rs` |
//! | `range TABLE WHAT` | the least and the most in a table `halves` or `divided` | `halves.rs` |
//! | `sample VARIANT` | the program's report on a kernel | `sample.rs` |
//! | `stages`, `seconds FILE` | how long checks take, all stages of a file | `sample.rs` |
//! | `shapes WHAT` | a figure of `auto` over `rust-gemm bench --preset shapes` | `figures.rs` |
//! | `ranks LAYOUT RANKS WHAT`, `many-ranks` | figures of `gemm-mpi`, and a table of them | `many_ranks.rs` |
//! | `scheduled KERNEL SCHEDULE THREADS SIZE` | a speed of a rung of the CPU | `native.rs` |
//! | `idea KERNEL` | the idea of a kernel, or of a rung of the CPU's ladder | `ladder.rs` |
//! | `measured KERNEL` | a table of a kernel's figures | `figures.rs` |
//! | `chosen KERNEL` | a table of the shapes for which `auto` chose it | `figures.rs` |
//! | `traffic KERNEL` | launch shape and memory traffic of its variants | `traffic.rs` |
//! | `source FILE: ITEM; ITEM` | items of a source file, or all of it | `excerpts.rs` |
//! | `llvm`, `nvvm`, `ptx ENTRY: LINES` | lines of a compiled kernel | `listings.rs` |
//! | `code VARIANT WHAT`, `issued VARIANT`, `law` | machine code, and the law of speed | `machine_code.rs` |
//! | `waits KERNEL OTHER`, `profiled VARIANT WHAT`, `stalls` | why warps wait, from a profile | `stalls.rs` |
//! | `line FILE` | code in a sentence that is a line of that file | `excerpts.rs` |
//! | `ladder`, `steps`, `overview`, `report` | tables of all kernels | `overviews.rs` |
//! | `divided` | products in whole tiles and divided, beside cuBLAS | `divided.rs` |
//! | `halves KERNEL` | a kernel's layouts beside cuBLAS, of 16 bits or tf32 | `halves.rs` |
//! | `by-opencl` | kernels by OpenCL beside the simulator | `by_opencl.rs` |
//!
//! `parts.rs` finds such parts, and `generated.rs` lists the files that have them.

mod by_opencl;
pub mod chapters;
mod divided;
mod excerpts;
mod figures;
pub mod generated;
mod halves;
mod ladder;
mod listings;
mod machine_code;
mod many_ranks;
mod measured;
mod native;
mod of_file;
mod overviews;
mod parts;
mod plots;
mod regimes;
pub mod repository;
mod sample;
mod stalls;
mod timelines;
mod traffic;

pub use listings::why_absent;
pub use stalls::FILE as PROFILE;
