//! Tiles in shared memory, and sums with an error of about two units, whatever their length.
//!
//! Over `tiled`: compensated summation (`accumulator.rs`) in the same body, with the accuracy of
//! `naive-kahan`. It costs more here, since a product has fewer other instructions.
//! Global-memory reads: 2*M*N*K / TILE, as in `tiled`
//! Block: TILE x TILE threads, block tile TILE x TILE x TILE, TILE 16 or 32. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel tiled,tiled-kahan --m 64 --n 64 --k 100000
//! ```

use crate::accumulator::Compensated;
use crate::kernel::kernel;
use crate::tiled::multiply;

kernel! {
    name: "tiled-kahan",
    idea: "tiles in shared memory and compensated summation",
    variants: [
        "tiled-kahan-32" = fn tiled_kahan_32(gemm: f32)
            block(32, 32) tile(32, 32, 32)
            shared(a_tile: [f32; 32 * 32], b_tile: [f32; 32 * 32])
            { rounding: Rounding::Compensated }
            => multiply::<f32, Compensated, 32>(gemm, a_tile, b_tile);
        "tiled-kahan-16" = fn tiled_kahan_16(gemm: f32)
            block(16, 16) tile(16, 16, 16)
            shared(a_tile: [f32; 16 * 16], b_tile: [f32; 16 * 16])
            { rounding: Rounding::Compensated }
            => multiply::<f32, Compensated, 16>(gemm, a_tile, b_tile);
    ],
}
