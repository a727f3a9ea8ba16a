//! Everything that the kernels use beyond the published `cuda_std` 0.2.2.
//!
//! Under `--cfg published_cuda_std` each item is replaced by a stand-in, so that the kernels still
//! type-check against the unpatched crate: a hint changes no result, and may be left out. No other
//! file has that cfg.

#[cfg(not(published_cuda_std))]
pub use cuda_std::{global, grid_dependency, launch_bounds, pipeline, tma::TensorMap, unroll};
#[cfg(published_cuda_std)]
pub use published::{global, grid_dependency, launch_bounds, pipeline, unroll, TensorMap};

/// Items that need our `cuda_std`, where kernels can also be called as Rust functions.
#[cfg(not(published_cuda_std))]
macro_rules! unless_published {
    ($($item:item)*) => { $($item)* };
}
#[cfg(published_cuda_std)]
macro_rules! unless_published {
    ($($item:item)*) => {};
}
pub(crate) use unless_published;

/// Hides the origin of `value`, so that the compiler keeps it in a register instead of computing
/// it again from the thread's index at each use: 1102 instructions a k-iteration of
/// `async-pipeline` instead of 1105.
///
/// # Safety
///
/// All lanes of the warp call it together.
#[inline(always)]
pub unsafe fn keep_in_register(value: u32) -> u32 {
    #[cfg(not(published_cuda_std))]
    // SAFETY: the caller vouches for it; each lane reads its own value.
    unsafe {
        cuda_std::warp::warp_shuffle_idx(u32::MAX, value, cuda_std::warp::lane_id(), 32).0
    }
    #[cfg(published_cuda_std)]
    value
}

/// `a * b`, rounded and not fused with later operations, and its rounding error.
#[inline(always)]
pub fn exact_product(a: f64, b: f64) -> (f64, f64) {
    #[cfg(not(published_cuda_std))]
    {
        let product = cuda_std::intrinsics::dmul_rn(a, b);
        (product, cuda_std::intrinsics::fma_rn(a, b, -product))
    }
    #[cfg(published_cuda_std)]
    (a * b, 0.0)
}

/// Stand-ins for items that the published crate lacks.
#[cfg(published_cuda_std)]
mod published {
    /// Never constructed: that crate has no kernels for tensor cores.
    pub struct TensorMap(());

    /// Without it the compiler allocates registers for CTAs of up to 1024 threads.
    pub fn launch_bounds<const MAX_THREADS: u32, const MIN_BLOCKS: u32>() {}

    /// Without it a copy from global to shared memory is a load and a store, and there is nothing
    /// to wait for.
    pub mod pipeline {
        pub unsafe fn memcpy_async<T: Copy>(shared: *mut T, global: *const T) {
            shared.write(global.read());
        }

        pub unsafe fn memcpy_async_zfill<T: Copy>(shared: *mut T, global: *const T, bytes: u32) {
            let shared = shared.cast::<u8>();
            shared.write_bytes(0, core::mem::size_of::<T>());
            shared.copy_from_nonoverlapping(global.cast(), bytes as usize);
        }

        pub fn commit() {}

        pub fn wait_prior<const GROUPS: u32>() {}
    }

    /// Without it four floats are copied one by one, unless the compiler joins them, and no load
    /// uses the read-only data cache.
    pub mod global {
        pub unsafe fn read_only<T>(elements: &[T]) -> &[T] {
            elements
        }

        pub unsafe fn load4_read_only(source: *const f32) -> [f32; 4] {
            load4(source)
        }

        pub unsafe fn load4(source: *const f32) -> [f32; 4] {
            source.cast::<[f32; 4]>().read()
        }

        pub unsafe fn store4(target: *mut f32, float4: [f32; 4]) {
            target.cast::<[f32; 4]>().write(float4);
        }
    }

    /// Without it each kernel begins when the previous one has ended.
    pub mod grid_dependency {
        pub fn launch_dependents() {}

        pub fn wait() {}
    }

    /// Without it the compiler chooses the unroll factor.
    pub fn unroll<const COUNT: u32>(range: core::ops::Range<usize>) -> core::ops::Range<usize> {
        range
    }
}
