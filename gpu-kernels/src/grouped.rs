//! Grouped products: each group of rows of A times a matrix B of its own, in one launch.
//!
//! Over `warp-specialized`, for a mixture of experts: the rows of A are tokens, sorted by expert,
//! and each expert is a B. How many rows a group has is known on the GPU alone, as the kernel
//! before this one has counted them; a launch for each group would have to wait for the host. Here
//! the number of CTAs does not depend on the groups. Each CTA takes tile after tile of all groups,
//! and finds its next one by going on through the ends of the groups:
//!
//! ```text
//!   ends = [3, 3, 8]      rows of A, C     tiles of 4 rows, C has 2 tiles along N
//!
//!   group 0, B[0]         0 1 2            0 1          1 of 4 rows is the next group's
//!   group 1, B[1]         none
//!   group 2, B[2]         3 4 5 6 | 7      2 4 | 3 5
//! ```
//!
//! A tile begins at any row of A, since the copy engine counts rows, not tiles. The tile in which a
//! group ends has rows of the next one: they are multiplied by the wrong B, and not stored. A
//! consumer that has nothing but such rows does not multiply, so the other has the tensor cores for
//! itself. Tiles of a group follow each other, so its B is read from memory once, and then from
//! the L2.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN), and of each B once more for the last rows of a group
//! Shared-memory reads: M*N*K * (1/64 + 1/BN), by the tensor cores
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 64; or 256 threads in 2, block tile
//! 64 x 128 x 64, for few rows. A row-major, B in either layout, rows of both at multiples of 16
//! bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! It is no rung: a launch needs the ends of the groups, and `gpu_gemm::gemm_grouped` makes it.

use cuda_std::mbarrier::Mbarrier;
use cuda_std::prelude::*;
use cuda_std::tma;
use cuda_std::wgmma::{self, KMajor, MnMajor};

use crate::compat::grid_dependency;
use crate::epilogue::Epilogue;
use crate::half::{Bf16, Half, Sums, Wgmma, F16};
use crate::kernel::kernel;
use crate::mapped_gemm::MappedGemm;
use crate::raster;
use crate::warp_specialized::{Corner, Cta, Ring, Stages, BK, WARPGROUP, WM};
use crate::warpgroup::{layout, warpgroup, Tiles};

/// The body. The barriers are in shared memory.
#[inline(always)]
unsafe fn multiply<
    T: Half + Wgmma<KMajor, B, Sum = f32>,
    B: Tiles,
    const CONSUMERS: usize,
    const SUMS: usize,
>(
    gemm: MappedGemm<'_, u16, f32, impl Epilogue>,
    full: *mut Mbarrier,  // (STAGES)
    empty: *mut Mbarrier, // (STAGES)
) where
    [f32; SUMS]: Sums<Sum = f32>,
{
    let (warpgroup, thread) = (warpgroup(), thread::thread_idx_x() as usize % WARPGROUP);
    let stages = Stages::<CONSUMERS, SUMS>::new(full, empty, 0);
    thread::sync_threads(); // the barriers may be used
    grid_dependency::wait(); // for kernels that write A, B, C and the ends of the groups
    let iterations = gemm.depth().div_ceil(BK);
    let mut groups = Groups::<CONSUMERS, SUMS>::of(&gemm);
    let mut tile = thread::block_idx_x();
    if warpgroup == 0 {
        if SUMS > 64 {
            wgmma::decrease_registers::<24>();
        }
        if thread == 0 {
            let mut at = Ring::PRODUCER;
            while let Some((corner, _)) = groups.find(tile) {
                stages.load::<T, _, KMajor, B, 1>(&gemm, corner, (0, iterations), &mut at);
                tile += thread::grid_dim_x();
            }
        }
        return;
    }

    if SUMS > 64 {
        wgmma::increase_registers::<240>();
    }
    let consumer = warpgroup - 1;
    let mut at = Ring::CONSUMER;
    while let Some((corner, end)) = groups.find(tile) {
        if corner.row + consumer * WM < end {
            let sums =
                stages.products::<T, KMajor, B>(iterations, consumer, thread, &mut at, || ());
            let of_group = gemm.up_to_row(end);
            stages.store::<T, true>(&of_group, &sums, corner, consumer, thread);
        } else {
            stages.release(iterations, thread, &mut at);
            thread::named_barrier(1 + consumer as u32, WARPGROUP as u32); // all are released
        }
        tile += thread::grid_dim_x();
    }
    tma::wait_group_read::<0>(); // the boxes must be read before the CTA ends
}

/// Where a CTA is among the groups. The tiles of one follow those of the one before it.
struct Groups<const CONSUMERS: usize, const SUMS: usize> {
    ends: *const i32, // (count)
    count: u32,
    /// The rows of C, and the tiles along N.
    m: u32,
    tile_cols: u32,
    /// The group, its first row, and its first tile.
    group: u32,
    row: u32,
    tile: u32,
}

impl<const CONSUMERS: usize, const SUMS: usize> Groups<CONSUMERS, SUMS>
where
    [f32; SUMS]: Sums<Sum = f32>,
{
    #[inline(always)]
    fn of(gemm: &MappedGemm<'_, u16, f32, impl Epilogue>) -> Self {
        Groups {
            ends: gemm.group_ends(),
            count: gemm.products() as u32,
            m: gemm.m.min(i32::MAX as usize) as u32, // no end is greater
            tile_cols: gemm.n.div_ceil(Cta::<CONSUMERS, SUMS>::BN) as u32,
            group: 0,
            row: 0,
            tile: 0,
        }
    }

    /// The first element of a tile, and the row after the last of its group; `None` after the last
    /// tile. Tiles are asked for in increasing order.
    #[inline(always)]
    unsafe fn find(&mut self, tile: u32) -> Option<(Corner, usize)> {
        while self.group < self.count {
            // Whatever the ends are, no row beyond C is stored.
            let end = *self.ends.add(self.group as usize) as u32;
            let end = end.min(self.m).max(self.row);
            let tile_rows = (end - self.row).div_ceil(Cta::<CONSUMERS, SUMS>::BM as u32);
            let tiles = tile_rows * self.tile_cols;
            if tile - self.tile < tiles {
                let index = (tile - self.tile) as usize;
                let place = raster::place(index, tile_rows as usize, self.tile_cols as usize);
                let corner = Stages::<CONSUMERS, SUMS>::corner(place);
                let corner = Corner {
                    product: self.group as usize,
                    row: self.row as usize + corner.row,
                    ..corner
                };
                return Some((corner, end as usize));
            }
            self.group += 1;
            self.row = end;
            self.tile += tiles;
        }
        None
    }
}

/// Rows of the table, by the number of consumers and of sums a thread.
macro_rules! table {
    ($(
        $name:literal $entry:ident $type:ident $element:ident $b:ident
        ($consumers:literal, $sums:literal);
    )*) => {
        kernel! {
            name: "grouped",
            idea: "each group of rows of A has a B of its own, on Hopper's tensor cores",
            variants: [$(
                $name = fn $entry(gemm: $type; mapped)
                    block(Cta::<$consumers, $sums>::THREADS, 1)
                    tile(Cta::<$consumers, $sums>::BM, Cta::<$consumers, $sums>::BN, BK)
                    shared(
                        full: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                        empty: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                    )
                    launch_bounds(1)
                    {
                        staging: Staging::Ring { bytes: Cta::<$consumers, $sums>::BYTES as u32 },
                        b: layout!($b),
                    }
                    => multiply::<$element, $b, $consumers, $sums>(gemm, full, empty);
            )*],
        }
    };
}

table! {
    "grouped" grouped_bf16 bf16 Bf16 MnMajor (2, 128);
    "grouped" grouped_f16 f16 F16 MnMajor (2, 128);
    "grouped-nt" grouped_nt_bf16 bf16 Bf16 KMajor (2, 128);
    "grouped-nt" grouped_nt_f16 f16 F16 KMajor (2, 128);
    "grouped-64x128" grouped_64x128_bf16 bf16 Bf16 MnMajor (1, 64);
    "grouped-64x128" grouped_64x128_f16 f16 F16 MnMajor (1, 64);
    "grouped-64x128-nt" grouped_64x128_nt_bf16 bf16 Bf16 KMajor (1, 64);
    "grouped-64x128-nt" grouped_64x128_nt_f16 f16 F16 KMajor (1, 64);
}
