//! Tiles in shared memory, and sums that lose nothing to their length.
//!
//! Over `tiled`: Compensated summation (`sum.rs`) instead of plain, in the same body, with the accuracy of `naive-kahan`. It
//! keeps 76 % of the speed of `tiled` (4096, H200): there is less waiting to hide the additions behind.
//! Global-memory reads: 2*M*N*K / TILE, as in `tiled`
//! Block: TILE x TILE threads, TILE x TILE patch of C, TILE 16 or 32. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel tiled,tiled-kahan --m 64 --n 64 --k 100000
//! ```

use cuda_std::shared_array;

use crate::gemm::gemm_kernel;
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Kernel};
use crate::sum::Compensated;
use crate::tiled::multiply;

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "tiled-kahan",
    idea: "tiles in shared memory, and compensated summation",
    source: file!(),
    variants: &[
        variant!(
            "tiled-kahan-32",
            F32(tiled_kahan_32),
            block(32, 32),
            tile(32, 32, 32)
        ),
        variant!(
            "tiled-kahan-16",
            F32(tiled_kahan_16),
            block(16, 16),
            tile(16, 16, 16)
        ),
    ],
};

gemm_kernel! {
    fn tiled_kahan_16(gemm: f32) {
        multiply::<f32, Compensated, 16>(
            gemm,
            shared_array![f32; 16 * 16],
            shared_array![f32; 16 * 16],
        )
    }
}

gemm_kernel! {
    fn tiled_kahan_32(gemm: f32) {
        multiply::<f32, Compensated, 32>(
            gemm,
            shared_array![f32; 32 * 32],
            shared_array![f32; 32 * 32],
        )
    }
}
