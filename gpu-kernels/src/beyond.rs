//! What the kernels use beyond the published `cuda_std` 0.2.2, in one place.
//!
//! Under `--cfg published_cuda_std` each is replaced by what that crate allows, so that the kernels go on
//! type-checking against it unpatched: a hint has no meaning of its own, and may be left out.

#[cfg(not(published_cuda_std))]
pub use cuda_std::{launch_bounds, unroll};

/// Without it the compiler chooses registers as if a block might have 1024 threads.
#[cfg(published_cuda_std)]
pub fn launch_bounds<const MAX_THREADS: u32, const MIN_BLOCKS: u32>() {}

/// Without it the compiler decides how often a loop's body is repeated.
#[cfg(published_cuda_std)]
pub fn unroll<const COUNT: u32>(range: core::ops::Range<usize>) -> core::ops::Range<usize> {
    range
}
