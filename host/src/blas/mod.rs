//! The library call: `C = alpha * op(A) * op(B) + beta * C` on matrices in a GPU's memory, by the kernel that suits them.

pub mod choose;
mod plan;
mod processor;
mod streams;

pub use choose::choose;
pub use plan::{Call, Pack, Plan, Side, Stored, Transpose};
pub use processor::Processor;
pub use streams::Streams;
