//! A block stages a tile of A and a tile of B in shared memory, and every thread of the block
//! reads them there.
//!
//! Over `naive`: an element read from global memory now serves TILE threads instead of one.
//! Global-memory reads: 2*M*N*K / TILE      (naive: 2*M*N*K)
//! Shared-memory reads: 2*M*N*K, which now limit it
//! Block: TILE x TILE threads, block tile TILE x TILE x TILE, TILE 16 or 32. Any M, N, K; f32, f64
//! or i32.
//!
//! ```sh
//! cargo run -p host -- --kernel tiled-32 --m 200 --n 500 --k 400 --dtype i32
//! ```

use cuda_std::prelude::*;

use crate::accumulator::{Accumulator, Plain};
use crate::element::Element;
use crate::gemm::Gemm;
use crate::kernel::kernel;

/// The body of every variant, here and in `tiled-kahan`. The tiles are in shared memory,
/// row-major.
#[inline(always)]
pub(crate) unsafe fn multiply<T: Element, S: Accumulator<T>, const TILE: usize>(
    gemm: Gemm<'_, T>,
    a_tile: *mut T, // (TILE, TILE)
    b_tile: *mut T, // (TILE, TILE)
) {
    const { assert!(TILE * TILE <= 1024, "no block has more threads") }
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let row = thread::block_idx_y() as usize * TILE + y;
    let col = thread::block_idx_x() as usize * TILE + x;

    // This thread's element of each tile, zero outside of A and B.
    let load = |k0: usize| (gemm.a_or_zero(row, k0 + x), gemm.b_or_zero(k0 + y, col));

    let depth = gemm.depth();
    let (mut a, mut b) = (T::ZERO, T::ZERO);
    if depth > 0 {
        (a, b) = load(0);
    }
    let mut sum = S::EMPTY;
    let mut k0 = 0;
    while k0 < depth {
        *a_tile.add(y * TILE + x) = a;
        *b_tile.add(y * TILE + x) = b;
        thread::sync_threads(); // both tiles are complete

        // Prefetch: the next elements are loaded while these are multiplied (a sixth faster
        // when it was tried).
        k0 += TILE;
        (a, b) = load(k0);
        for i in 0..TILE {
            sum.add(*a_tile.add(y * TILE + i), *b_tile.add(i * TILE + x));
        }
        thread::sync_threads(); // every thread has finished reading the tiles
    }
    gemm.update(row, col, sum.value());
}

kernel! {
    name: "tiled",
    idea: "each thread block stages tiles of A and B in shared memory, for all its threads",
    variants: [
        "tiled-32" = fn tiled_32(gemm: f32)
            block(32, 32) tile(32, 32, 32)
            shared(a_tile: [f32; 32 * 32], b_tile: [f32; 32 * 32])
            => multiply::<f32, Plain<f32>, 32>(gemm, a_tile, b_tile);
        "tiled-16" = fn tiled_16(gemm: f32)
            block(16, 16) tile(16, 16, 16)
            shared(a_tile: [f32; 16 * 16], b_tile: [f32; 16 * 16])
            => multiply::<f32, Plain<f32>, 16>(gemm, a_tile, b_tile);
        "tiled-32" = fn tiled_32_f64(gemm: f64)
            block(32, 32) tile(32, 32, 32)
            shared(a_tile: [f64; 32 * 32], b_tile: [f64; 32 * 32])
            { rate: Some(Rate::h200(4.8, 0.6, 2)) }
            => multiply::<f64, Plain<f64>, 32>(gemm, a_tile, b_tile);
        "tiled-32" = fn tiled_32_i32(gemm: i32)
            block(32, 32) tile(32, 32, 32)
            shared(a_tile: [i32; 32 * 32], b_tile: [i32; 32 * 32])
            { rate: Some(Rate::h200(9.4, 0.6, 2)) }
            => multiply::<i32, Plain<i32>, 32>(gemm, a_tile, b_tile);
    ],
}
