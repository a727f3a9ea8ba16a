//! The library call: `C = alpha * op(A) * op(B) + beta * C` on matrices in a GPU's memory, by the kernel that suits them.

mod context;
mod job;
mod operand;
mod plan;
#[cfg(test)]
mod plan_tests;
mod processor;
mod sharing;

pub use context::{Context, WORKSPACE, gemm};
pub use operand::{BlasError, Operand, Target};
pub use plan::{Call, FIX_UP_BLOCK, PACK_BLOCK, Pack, Plan, Role, Stored, Transpose};
pub use processor::Processor;
pub use sharing::Sharing;
