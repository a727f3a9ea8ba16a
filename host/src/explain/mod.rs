//! `explain`: a kernel's work for a shape, in numbers derived from the kernel's own description,
//! and its use of a GPU.
//!
//! | file | what it does |
//! | --- | --- |
//! | `explanation.rs` | the facts |
//! | `auto.rs` | the choice of `auto`, and the reason |
//! | `cpu.rs` | the explanation of a CPU rung |
//! | `roofline.rs` | its place under a GPU's roofline |
//! | `ceilings.rs` | the ceilings of its mainloop's loads and instructions |
//! | `work.rs` | operand copies, stream-K and the N remainder |
//! | `resources.rs` | ptxas's report on the kernel, and how many CTAs fit on an SM |
//! | `data_sheets.rs` | GPUs that need not be present |
//! | `text.rs` | the explanation for people |

mod auto;
mod ceilings;
mod cpu;
pub mod data_sheets;
mod explanation;
mod resources;
mod roofline;
mod text;
mod work;

pub use auto::write_choice;
pub use cpu::write_cpu;
pub use explanation::{ExplainError, Explanation, Question};
pub use text::write;
