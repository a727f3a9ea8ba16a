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
//!
//! Where there are few parts, a thread adds them up in several places instead, all of which it reads at the same time: fewer blocks.

use cuda_std::prelude::*;
use cuda_std::shared_array;

use crate::beyond::{global, grid_dependency, launch_bounds};
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::streams::Streams;

/// The entry point.
pub const FIX_UP: &str = stringify!(fix_up);

/// Threads of a block.
pub const THREADS: usize = 128;

/// Fours that a thread reads at a time: of several parts, or of several places.
pub const AT_ONCE: usize = 8;

/// Places of a tile that a thread adds up where one group is enough. With one place the blocks for 232 tiles of 128 x 128, of two or three
/// parts each, came in eight waves, and took 30 instead of 14 us on an H200; with eight places they took as long as with four.
pub const PLACES: usize = 4;

/// Parts for which one group is enough. (On an H200, 56 tiles of 64 x 64 of 11 parts each took 4.7 us instead of 5.2 with two groups; 16 tiles
/// of 16 x 128 of 16 parts each 4.9 instead of 3.2.)
const FEW: usize = 12;

/// Groups at most: each still reads 128 bytes in a row.
const MOST_GROUPS: usize = 16;

/// The groups of threads for tiles of so many elements that no more than `parts` parts were made of: as many as would have nothing to do otherwise, and
/// so many that each has few parts.
pub fn groups(elements: usize, parts: usize) -> usize {
    let idle = 4 * THREADS / elements;
    let needed = match parts <= FEW {
        true => 1,
        false => parts.div_ceil(AT_ONCE),
    };
    idle.max(needed).next_power_of_two().min(MOST_GROUPS)
}

/// Elements of a tile that a block adds up.
pub const fn elements_of_block(groups: usize) -> usize {
    match groups {
        1 => 4 * THREADS * PLACES,
        _ => 4 * THREADS / groups,
    }
}

/// `partials`, `streams` and `whole_waves` are those of the launch before, which had no more streams than shared steps; `depth` is 0 where `alpha` is, else k.
///
/// A launch has a block along x for each [`elements_of_block`] of a tile, and as many along y as there are tiles that are not handed out whole.
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
    let tile = (tile_m, tile_n);
    let size = (m, n, depth);
    let streams = Streams::new(size, (tile_m, tile_n, tile_k), streams, whole_waves);
    if groups == 1 {
        add::<PLACES>(&gemm, partials, tile, &streams, 1);
    } else {
        add::<1>(&gemm, partials, tile, &streams, groups);
    }
}

/// What a block does: each thread adds fours in PLACES places, each in another of as many equal bands of the tile's rows; several only where there is
/// one group.
#[inline(always)]
unsafe fn add<const PLACES: usize>(
    gemm: &Gemm<'_, f32>,
    partials: *const f32,
    (tile_m, tile_n): (usize, usize),
    streams: &Streams,
    groups: usize,
) {
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
    let rows_apart = tile_m / PLACES;
    let row = tile_row * tile_m + row_of_tile;
    let col = tile_col * tile_n + element - row_of_tile * tile_n;
    let exists = |place: usize| {
        let down = place * rows_apart;
        row_of_tile < rows_apart && row + down < gemm.m && col < gemm.n
    };

    // Only the first block's share can begin in an earlier tile: each has a step at least.
    let parts = last - first + 1;
    let began_before = streams.first_step(first) < tile * streams.steps;
    grid_dependency::wait(); // for the parts
    if first == last {
        return;
    }
    let part = |i: usize| {
        let slot = 2 * (first + i) + (i == 0 && began_before) as usize;
        partials.add(slot * tile_m * tile_n + element)
    };
    let of_group = (parts as u32).div_ceil(groups as u32) as usize;
    let mut next = group * of_group;
    let end = if next + of_group < parts {
        next + of_group
    } else {
        parts
    };
    let mut sums = [[0.0f32; 4]; PLACES];
    // Several at a time are on their way; added one after the other.
    while exists(0) && next < end {
        let mut some = [[[0.0f32; 4]; PLACES]; AT_ONCE];
        for i in 0..AT_ONCE / PLACES {
            if next + i < end {
                let part = part(next + i);
                for place in 0..PLACES {
                    let there = if exists(place) { place } else { 0 };
                    some[i][place] = global::load4(part.add(there * rows_apart * tile_n));
                }
            }
        }
        for i in 0..AT_ONCE / PLACES {
            for place in 0..PLACES {
                for j in 0..4 {
                    sums[place][j] += some[i][place][j];
                }
            }
        }
        next += AT_ONCE / PLACES;
    }

    if groups > 1 {
        let of_groups = shared_array![f32; 4 * THREADS];
        Float4(sums[0]).write(of_groups.add(4 * thread));
        thread::sync_threads(); // the sums of all groups are there
        if group > 0 {
            return;
        }
        for group in 1..groups {
            let four = Float4::read(of_groups.add(4 * (group * lanes + lane)));
            for j in 0..4 {
                sums[0][j] += four.0[j];
            }
        }
    }
    let aligned = gemm.c_is_float4_aligned() && col + 4 <= gemm.n;
    for place in 0..PLACES {
        let row = row + place * rows_apart;
        if !exists(place) {
            continue;
        }
        if aligned {
            gemm.update4::<false>(row, col, Float4(sums[place]));
        } else {
            gemm.update4::<true>(row, col, Float4(sums[place]));
        }
    }
}
