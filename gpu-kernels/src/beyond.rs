//! What the kernels use beyond the published `cuda_std` 0.2.2, in one place.
//!
//! Under `--cfg published_cuda_std` each is replaced by what that crate allows, so that the kernels go on
//! type-checking against it unpatched: a hint has no meaning of its own, and may be left out.

#[cfg(not(published_cuda_std))]
pub use cuda_std::{global, grid_dependency, launch_bounds, pipeline, unroll};

/// Without it the compiler chooses registers as if a block might have 1024 threads.
#[cfg(published_cuda_std)]
pub fn launch_bounds<const MAX_THREADS: u32, const MIN_BLOCKS: u32>() {}

/// Without it a copy from global to shared memory is a load and a store, and there is nothing to wait for.
#[cfg(published_cuda_std)]
pub mod pipeline {
    pub unsafe fn memcpy_async<T: Copy>(shared: *mut T, global: *const T) {
        shared.write(global.read());
    }

    pub unsafe fn memcpy_async_zfill<T: Copy>(shared: *mut T, global: *const T, valid_bytes: u32) {
        let shared = shared.cast::<u8>();
        shared.write_bytes(0, core::mem::size_of::<T>());
        shared.copy_from_nonoverlapping(global.cast(), valid_bytes as usize);
    }

    pub fn commit() {}

    pub fn wait_prior<const GROUPS: u32>() {}
}

/// Without it four floats move one by one, unless the compiler joins them.
#[cfg(published_cuda_std)]
pub mod global {
    pub unsafe fn load4(source: *const f32) -> [f32; 4] {
        source.cast::<[f32; 4]>().read()
    }

    pub unsafe fn store4(target: *mut f32, four: [f32; 4]) {
        target.cast::<[f32; 4]>().write(four);
    }
}

/// Without it each kernel begins when the one before it has ended.
#[cfg(published_cuda_std)]
pub mod grid_dependency {
    pub fn launch_dependents() {}

    pub fn wait() {}
}

/// Without it the compiler decides how often a loop's body is repeated.
#[cfg(published_cuda_std)]
pub fn unroll<const COUNT: u32>(range: core::ops::Range<usize>) -> core::ops::Range<usize> {
    range
}

/// `value`, of which the compiler does not know where it came from. What it can compute again from the number of a thread it does compute again, wherever it
/// is used, and in a loop that is counted in instructions that is dearer than a register. (`async_pipeline`: 1120 to 1104 instructions a step.)
#[inline(always)]
pub fn kept(value: u32) -> u32 {
    #[cfg(not(published_cuda_std))]
    // SAFETY: all lanes of the warp come here together, and each asks for its own value.
    unsafe {
        cuda_std::warp::warp_shuffle_idx(u32::MAX, value, cuda_std::warp::lane_id(), 32).0
    }
    #[cfg(published_cuda_std)]
    value
}
