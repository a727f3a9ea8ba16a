//! `explain`: what a kernel does for a shape, in numbers derived from the kernel's own
//! description, and how it runs on a GPU.
//!
//! | file | what it does |
//! | --- | --- |
//! | `explanation.rs` | the facts, as they are written to JSON |
//! | `launched.rs` | its launches, tiles and traffic |
//! | `auto.rs` | what `auto` runs, and why |
//! | `cpu.rs` | what is known of a CPU rung |
//! | `roofline.rs` | where it lies below a GPU's roofline |
//! | `ceilings.rs` | what the loads and the instructions of its mainloop allow |
//! | `work.rs` | operand copies, stream-K and the N remainder |
//! | `resources.rs` | what ptxas reports of the kernel, and how many of its CTAs fit on an SM |
//! | `split.rs` | what each of several devices computes and receives |
//! | `data_sheets.rs` | GPUs that need not be present |
//! | `text.rs` | for people |

mod auto;
mod ceilings;
mod cpu;
pub mod data_sheets;
mod explanation;
mod launched;
mod resources;
mod roofline;
mod split;
mod text;
mod work;

pub use auto::{Auto, Candidate};
pub use ceilings::Ceilings;
pub use cpu::CpuExplanation;
pub use explanation::{ExplainError, Explanation, Question};
pub use split::Divided;
pub use text::write;
