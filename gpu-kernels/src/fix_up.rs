//! The sums that several blocks share, added up: `C = alpha * (part + part + ..) + beta * C` for each split tile, in the order of k.
//!
//! It follows a kernel of [`crate::spec::Grid::Streams`] and is no rung: it multiplies nothing. A tile that one block computed all of is in C already.

use cuda_std::prelude::*;

use crate::beyond::{grid_dependency, launch_bounds};
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::streams::Streams;

/// The entry point.
pub const FIX_UP: &str = stringify!(fix_up);

/// Threads of a block.
pub const THREADS: usize = 128;

/// Parts that a thread reads at a time.
pub const AT_ONCE: usize = 8;

/// Elements of a tile that a block adds up.
pub const ELEMENTS: usize = 4 * THREADS;

/// `partials`, `streams` and `whole_waves` are those of the launch before, which had no more streams than shared steps; `depth` is 0 where `alpha` is, else k.
///
/// A launch has `tile_m * tile_n / ELEMENTS` blocks along x and as many along y as there are tiles that are not handed out whole.
///
/// # Safety
///
/// `c` is valid for reads and writes of `(m - 1) * ldc + n` elements that nothing else touches, `partials` is as the kernel
/// before left it, and the launch has the shape above.
#[kernel]
#[allow(clippy::too_many_arguments)] // those of two kernels
pub unsafe fn fix_up(
    m: usize,
    n: usize,
    depth: usize,
    alpha: f32,
    beta: f32,
    c: *mut f32,
    ldc: usize,
    partials: *const f32,
    tile_m: usize,
    tile_n: usize,
    tile_k: usize,
    streams: usize,
    whole_waves: usize,
) {
    launch_bounds::<{ THREADS as u32 }, 1>();
    grid_dependency::wait(); // for the parts
    let streams = Streams::new(
        (m, n, depth),
        (tile_m, tile_n, tile_k),
        streams,
        whole_waves,
    );
    let tile = thread::block_idx_y() as usize;
    let first = streams.block_of(tile * streams.steps);
    let last = streams.block_of((tile + 1) * streams.steps - 1);
    if first == last {
        return;
    }

    let (tile_row, tile_col) = streams.place(streams.first_shared() + tile);
    let element = 4 * (thread::block_idx_x() as usize * THREADS + thread::thread_idx_x() as usize);
    let row = tile_row * tile_m + element / tile_n;
    let col = tile_col * tile_n + element % tile_n;
    if row >= m || col >= n {
        return;
    }

    // Only the first block's share can begin in an earlier tile: each has a step at least.
    let parts = last - first + 1;
    let began_before = streams.first_step(first) < tile * streams.steps;
    let part = |i: usize| {
        let slot = 2 * (first + i) + (i == 0 && began_before) as usize;
        Float4::read(partials.add(slot * tile_m * tile_n + element)).0
    };
    let mut sums = [0.0f32; 4];
    let mut next = 0;
    // Several at a time are on their way; added one after the other.
    while next + AT_ONCE <= parts {
        let mut some = [[0.0f32; 4]; AT_ONCE];
        for i in 0..AT_ONCE {
            some[i] = part(next + i);
        }
        for i in 0..AT_ONCE {
            for j in 0..4 {
                sums[j] += some[i][j];
            }
        }
        next += AT_ONCE;
    }
    while next < parts {
        let one = part(next);
        for j in 0..4 {
            sums[j] += one[j];
        }
        next += 1;
    }

    let gemm = Gemm {
        m,
        n,
        k: depth,
        alpha,
        a: &[],
        lda: 0,
        b: &[],
        ldb: 0,
        beta,
        c,
        ldc,
    };
    gemm.update4::<true>(row, col, Float4(sums));
}
