//! The library call: `C = alpha * op(A) * op(B) + beta * C` on matrices in a GPU's memory, by the kernel that suits them.

mod call;
mod context;
mod job;
mod operand;
mod pack;
mod plan;
#[cfg(test)]
mod plan_tests;
mod processor;
mod sharing;

pub use call::{Call, Stored, Transpose};
pub use context::{Context, WORKSPACE, gemm};
pub use operand::{BlasError, Operand, Target};
pub use pack::{PACK_BLOCK, Pack, Role};
pub use plan::{FIX_UP_BLOCK, Plan};
pub use processor::Processor;
pub use sharing::Sharing;
pub(crate) use sharing::tiles;
