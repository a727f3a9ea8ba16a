//! The sums that several blocks share, added up: `C = alpha * (part + part + ..) + beta * C` for each split tile, in the order of k.
//!
//! It follows a kernel of [`crate::spec::Grid::Streams`] and is no rung: it multiplies nothing. A tile that one block computed all of is in C already.
//!
//! What it takes is waiting for parts to arrive. So where a tile has many, `groups` of threads share them: each adds a run of them, one after the other,
//! and the sums of the groups are added in the order of k, too:
//!
//! ```text
//!   20 parts, 4 groups:   (0 + 1 + .. + 4) + (5 + .. + 9) + (10 + .. + 14) + (15 + .. + 19)
//! ```

use cuda_std::prelude::*;
use cuda_std::shared_array;

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

/// Elements of parts that a block reads at a time: those of one part, or fewer of each of several groups.
pub const ELEMENTS: usize = 4 * THREADS;

/// Groups at most: each still reads 128 bytes in a row.
const MOST_GROUPS: usize = 16;

/// The groups of threads for tiles of so many elements that no more than `parts` parts were made of: as many as would have nothing to do otherwise, and
/// so many that each has few parts.
pub fn groups(elements: usize, parts: usize) -> usize {
    let idle = ELEMENTS / elements;
    let needed = parts.div_ceil(AT_ONCE);
    idle.max(needed).next_power_of_two().min(MOST_GROUPS)
}

/// `partials`, `streams` and `whole_waves` are those of the launch before, which had no more streams than shared steps; `depth` is 0 where `alpha` is, else k.
///
/// A launch has `groups * tile_m * tile_n / ELEMENTS` blocks along x and as many along y as there are tiles that are not handed out whole.
///
/// # Safety
///
/// `c` is valid for reads and writes of `(m - 1) * ldc + n` elements that nothing else touches, `partials` is as the kernel
/// before left it, the launch has the shape above, and `groups` is a power of two and no more than [`THREADS`].
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
    groups: usize,
) {
    launch_bounds::<{ THREADS as u32 }, 1>();
    let streams = Streams::new(
        (m, n, depth),
        (tile_m, tile_n, tile_k),
        streams,
        whole_waves,
    );
    let tile = thread::block_idx_y() as usize;
    let first = streams.block_of(tile * streams.steps);
    let last = streams.block_of((tile + 1) * streams.steps - 1);

    let thread = thread::thread_idx_x() as usize;
    // Small numbers are divided in fewer instructions.
    let lanes = (THREADS as u32 / groups as u32) as usize;
    let group = (thread as u32 / lanes as u32) as usize;
    let lane = thread - group * lanes;
    let (tile_row, tile_col) = streams.place(streams.first_shared() + tile);
    let element = 4 * (thread::block_idx_x() as usize * lanes + lane);
    let row_of_tile = (element as u32 / tile_n as u32) as usize;
    let row = tile_row * tile_m + row_of_tile;
    let col = tile_col * tile_n + element - row_of_tile * tile_n;
    let exists = element < tile_m * tile_n && row < m && col < n;

    // Only the first block's share can begin in an earlier tile: each has a step at least.
    let parts = last - first + 1;
    let began_before = streams.first_step(first) < tile * streams.steps;
    grid_dependency::wait(); // for the parts
    if first == last {
        return;
    }
    let part = |i: usize| {
        let slot = 2 * (first + i) + (i == 0 && began_before) as usize;
        Float4::read(partials.add(slot * tile_m * tile_n + element))
    };
    let of_group = (parts as u32).div_ceil(groups as u32) as usize;
    let mut next = group * of_group;
    let end = if next + of_group < parts {
        next + of_group
    } else {
        parts
    };
    let mut sums = [0.0f32; 4];
    // Several at a time are on their way; added one after the other.
    while exists && next < end {
        let mut some = [Float4::ZERO; AT_ONCE];
        for i in 0..AT_ONCE {
            if next + i < end {
                some[i] = part(next + i);
            }
        }
        for i in 0..AT_ONCE {
            for j in 0..4 {
                sums[j] += some[i].0[j];
            }
        }
        next += AT_ONCE;
    }

    if groups > 1 {
        let of_groups = shared_array![f32; ELEMENTS];
        Float4(sums).write(of_groups.add(4 * thread));
        thread::sync_threads(); // the sums of all groups are there
        if group > 0 {
            return;
        }
        for group in 1..groups {
            let four = Float4::read(of_groups.add(4 * (group * lanes + lane)));
            for j in 0..4 {
                sums[j] += four.0[j];
            }
        }
    }
    if !exists {
        return;
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
