//! Grouped products along K: each group of rows of A and B has a C of its own, in one launch.
//!
//! Over `grouped`, for the gradients of the weights of a mixture of experts: there the rows of A
//! and C are tokens, sorted by expert, and here those of A and B, of which each expert's C is the
//! sum. All matrices C have one size, so a tile's number says which group it belongs to, but each
//! group has k-iterations of its own, and an empty one has none: its C is zero, or beta * C.
//!
//! ```text
//!   ends = [70, 70, 200]        rows of A and B, BK = 64
//!
//!   group 0, C[0] = A^T * B     0 .. 64 | 64 .. 70 and 58 rows of zeros
//!   group 1, C[1]               none
//!   group 2, C[2]               70 .. 134 | 134 .. 198 | 198 .. 200 and 62 rows of zeros
//! ```
//!
//! A tile of A and B begins at any row, since the copy engine counts rows, not tiles. The last ones
//! of a group also have rows of the next group, which the consumers overwrite with zeros in shared
//! memory before they multiply: both in A and in B, since zero times infinity is no zero.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/64 + 1/BN), by the tensor cores
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 64. A stored as k x m and B as k x n,
//! rows of both at multiples of 16 bytes. Any M, N, and ends. Only for compute capability 9.0.
//!
//! It is no rung: a launch needs the ends of the groups, and `gpu_gemm::gemm_grouped_along_k` makes
//! it.

use cuda_std::mbarrier::Mbarrier;
use cuda_std::prelude::*;
use cuda_std::tma;
use cuda_std::wgmma::{self, MnMajor};

use crate::compat::grid_dependency;
use crate::epilogue::Epilogue;
use crate::float4::Float4;
use crate::half::{Bf16, Wgmma, F16};
use crate::kernel::kernel;
use crate::mapped_gemm::MappedGemm;
use crate::raster;
use crate::warp_specialized::{Corner, Cta, Output, Ring, Stages, BK, WARPGROUP};
use crate::warpgroup::{layout, warpgroup, BOX};

/// Sums a thread, and consumers.
const SUMS: usize = 128;
const CONSUMERS: usize = 2;

/// The body. The barriers are in shared memory.
#[inline(always)]
unsafe fn multiply<T: Wgmma<MnMajor, MnMajor, Sum = f32>, C: Output<Sum = f32>>(
    gemm: MappedGemm<'_, C::Bits, f32, impl Epilogue>,
    full: *mut Mbarrier,  // (STAGES)
    empty: *mut Mbarrier, // (STAGES)
) {
    let (warpgroup, thread) = (warpgroup(), thread::thread_idx_x() as usize % WARPGROUP);
    let stages = Stages::<CONSUMERS, SUMS>::new(full, empty, 0);
    thread::sync_threads(); // the barriers may be used
    grid_dependency::wait(); // for kernels that write A, B, C and the ends of the groups
    let rows = gemm.m.div_ceil(Cta::<CONSUMERS, SUMS>::BM);
    let cols = gemm.n.div_ceil(Cta::<CONSUMERS, SUMS>::BN);
    let (ends, depth) = (gemm.group_ends(), gemm.depth());
    // The first element of a tile, with the first row of its group, and the group's rows.
    let of_tile = |tile: usize| {
        let corner = Stages::<CONSUMERS, SUMS>::corner(raster::place(tile, rows, cols));
        // Whatever the ends are, no row beyond A and B is multiplied.
        let end = |group: usize| (*ends.add(group) as u32 as usize).min(depth);
        let first = match corner.product {
            0 => 0,
            group => end(group - 1),
        };
        let rows_of_group = end(corner.product).saturating_sub(first);
        let corner = Corner { k: first, ..corner };
        (corner, rows_of_group)
    };
    let (mut tile, ctas) = (
        thread::block_idx_x() as usize,
        thread::grid_dim_x() as usize,
    );
    let tiles = gemm.products() * rows * cols;
    if warpgroup == 0 {
        wgmma::decrease_registers::<24>();
        if thread == 0 {
            let mut at = Ring::PRODUCER;
            while tile < tiles {
                let (corner, depth) = of_tile(tile);
                let iterations = (0, depth.div_ceil(BK));
                stages.load::<T, _, MnMajor, MnMajor, 1>(&gemm, corner, iterations, &mut at);
                tile += ctas;
            }
        }
        return;
    }

    wgmma::increase_registers::<240>();
    // As in `warp_specialized.rs`: `ptxas` gives the consumers more registers only so.
    if tile >= tiles {
        return;
    }
    let consumer = warpgroup - 1;
    let mut at = Ring::CONSUMER;
    while tile < tiles {
        let (corner, depth) = of_tile(tile);
        let iterations = depth.div_ceil(BK);
        let landed = |iteration: usize, stage: *mut u8| {
            if (iteration + 1) * BK > depth {
                clear(
                    stage,
                    depth % BK,
                    thread::thread_idx_x() as usize - WARPGROUP,
                );
            }
        };
        let sums = stages.landed_products::<T, MnMajor, MnMajor>(
            iterations,
            consumer,
            thread,
            &mut at,
            landed,
            || (),
        );
        stages.store::<C, false>(&gemm, &sums, corner, consumer, thread);
        tile += ctas;
    }
    tma::wait_group_read::<0>(); // the boxes must be read before the CTA ends
}

/// All consumers overwrite the rows from `first` on of a stage's boxes with zeros. A swizzle leaves
/// elements in their rows.
#[inline(always)]
unsafe fn clear(stage: *mut u8, first: usize, thread: usize) {
    const VECTORS: usize = BOX * 2 / 16; // of a row
    let boxes = Stages::<CONSUMERS, SUMS>::STAGE_BYTES / (BK * BOX * 2);
    for index in 0..boxes {
        let box_of_stage = stage.add(index * BK * BOX * 2); // (BK, 64)
        let mut vector = first * VECTORS + thread;
        while vector < BK * VECTORS {
            Float4([0.0f32; 4]).write(box_of_stage.add(vector * 16).cast());
            vector += CONSUMERS * WARPGROUP;
        }
    }
    tma::fence_shared(); // the tensor cores see the zeros
    let threads = (CONSUMERS * WARPGROUP) as u32;
    thread::named_barrier(1 + CONSUMERS as u32, threads); // all zeros are written
}

/// Rows of the table, by the types.
macro_rules! table {
    ($($entry:ident ($($types:tt)+) $input:ident $output:ident;)*) => {
        kernel! {
            name: "grouped-along-k",
            idea: "each group of rows of A and B has a C of its own, on Hopper's tensor cores",
            variants: [$(
                "grouped-along-k" = fn $entry(gemm: $($types)+; mapped)
                    block(Cta::<CONSUMERS, SUMS>::THREADS, 1)
                    tile(Cta::<CONSUMERS, SUMS>::BM, Cta::<CONSUMERS, SUMS>::BN, BK)
                    shared(
                        full: [Mbarrier; Cta::<CONSUMERS, SUMS>::STAGES],
                        empty: [Mbarrier; Cta::<CONSUMERS, SUMS>::STAGES],
                    )
                    launch_bounds(1)
                    {
                        staging: Staging::Ring { bytes: Cta::<CONSUMERS, SUMS>::BYTES as u32 },
                        a: layout!(MnMajor),
                        b: layout!(MnMajor),
                    }
                    => multiply::<$input, $output>(gemm, full, empty);
            )*],
        }
    };
}

table! {
    grouped_along_k_bf16 (bf16) Bf16 Bf16;
    grouped_along_k_f16 (f16) F16 F16;
    grouped_along_k_bf16_f32 (bf16 -> f32) Bf16 f32;
    grouped_along_k_f16_f32 (f16 -> f32) F16 f32;
}
