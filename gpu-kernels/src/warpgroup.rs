//! Hopper's tensor cores: a warpgroup multiplies tiles that the copy engine loads.
//!
//! Over `tensor-core` for elements of 16 bits (bf16, f16), with sums in f32:
//! - `wgmma`: the 128 threads of a warpgroup multiply 64 x 16 by 16 x 256 in one instruction,
//!   which reads A and B from shared memory itself. No fragment passes through registers, so half
//!   of a thread's registers hold sums;
//! - the copy engine (TMA) loads whole tiles: one thread gives a corner, and no thread computes an
//!   address or holds data. Elements outside of a matrix are filled with zeros;
//! - tiles arrive at a barrier in shared memory (`mbarrier`), which counts their bytes, and threads
//!   wait there for the phase in which all have arrived.
//!
//! ```text
//!   copy engine | tiles 0 -> stage 0 | tiles 1 -> stage 1 |      | tiles 2 -> stage 0 | ...
//!                                     \ full[0]            \ full[1]
//!   warpgroup                          | multiply stage 0  | multiply stage 1 | ...
//! ```
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/64 + 1/256), by the tensor cores; 80 KiB of stages a CTA
//! Block: 128 threads, one warpgroup, block tile 64 x 256 x 64, 2 x 64 a thread. A and B in any
//! layout, rows at multiples of 16 bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! Two CTAs fit an SM: while one waits or stores C, the other multiplies. Each computes one tile
//! of C after the other.
//!
//! ```sh
//! cargo run -p host -- --kernel warpgroup --dtype bf16 --m 1000 --n 776 --k 120
//! ```

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::prelude::*;
use cuda_std::shared;
use cuda_std::warp::warp_shuffle_idx;
use cuda_std::wgmma::{self, Descriptor, KMajor, Major, MnMajor};

use crate::compat::grid_dependency;
use crate::half::{Bf16, Half, Sums, Wgmma, F16};
use crate::kernel::kernel;
use crate::mapped_gemm::{Boxes, MappedGemm};
use crate::raster::{self, Place};

/// Threads of a warpgroup.
pub(crate) const WARPGROUP: usize = 128;
/// Rows of C that a warpgroup computes.
pub(crate) const WM: usize = 64;
/// Depth of the tiles: 128 bytes.
pub(crate) const BK: usize = 64;
/// The columns of a box of 16 bits: 128 bytes, which a swizzle spreads over all banks.
pub(crate) const BOX: usize = 64;
/// The block tile is BM x BN x 64, and a thread has `BM * BN / 128` sums.
const BM: usize = WM;
/// Tiles of A, and of B, in shared memory: one is multiplied while the other is loaded.
const STAGES: usize = 2;
/// Bytes of a tile of A, and of a stage: a tile of A and one of B.
const A_BYTES: usize = BM * BK * 2;
const fn stage_bytes(bn: usize) -> usize {
    A_BYTES + bn * BK * 2
}

/// The layout of a K-major or MN-major operand.
macro_rules! layout {
    (KMajor) => {
        OperandLayout::K_MAJOR_ALIGNED
    };
    (MnMajor) => {
        OperandLayout::MN_MAJOR_ALIGNED
    };
}
pub(crate) use layout;

/// The body. The barriers are in shared memory.
#[inline(always)]
unsafe fn multiply<
    T: Half + Wgmma<A, B, Sum = f32>,
    A: Tiles,
    B: Tiles,
    const BN: usize,
    const SUMS: usize,
>(
    gemm: MappedGemm<'_>,
    full: *mut Mbarrier, // (STAGES)
) where
    [f32; SUMS]: Sums<Sum = f32>,
{
    const { assert!(STAGES >= 2, "one is multiplied, one arrives") }
    const { assert!(SUMS * WARPGROUP == BM * BN, "all sums have a thread") }
    let ring = shared::dynamic_shared_mem_aligned::<u8, 1024>();
    let thread = thread::thread_idx_x() as usize;
    if thread == 0 {
        for stage in 0..STAGES {
            mbarrier::init(full.add(stage), 1); // the thread that loads tiles
        }
        mbarrier::fence_init();
    }
    thread::sync_threads(); // the barriers may be used
    grid_dependency::wait(); // for kernels that write A, B and C

    let (rows, cols) = (gemm.m.div_ceil(BM), gemm.n.div_ceil(BN));
    let iterations = gemm.depth().div_ceil(BK);
    let mut tile = thread::block_idx_x() as usize;
    let mut number = 0; // tiles of A and B multiplied so far, over all tiles of C
    while tile < gemm.products() * rows * cols {
        let Place { product, row, col } = raster::place(tile, rows, cols);
        let (row, col) = (row * BM, col * BN);
        let (of_a, of_b) = (gemm.a_of(product), gemm.b_of(product));
        // One thread starts the loads of an iteration's tiles.
        let load = |number: usize, iteration: usize| {
            if thread == 0 && iteration < iterations {
                let full = full.add(number % STAGES);
                mbarrier::arrive_expect_tx(full, stage_bytes(BN) as u32);
                let a_tile = ring.add(number % STAGES * stage_bytes(BN)); // (BM, BK)
                let b_tile = a_tile.add(A_BYTES); // (BN, BK)
                let k = (iteration * BK) as u32;
                A::load(a_tile, of_a, row as u32, k, BM / BOX, full);
                B::load(b_tile, of_b, col as u32, k, BN / BOX, full);
            }
        };
        let mut sums = [0.0_f32; SUMS];
        load(number, 0);
        for iteration in 0..iterations {
            load(number + 1, iteration + 1);
            // The tiles have landed: a stage's phases alternate between 0 and 1.
            mbarrier::wait(full.add(number % STAGES), (number / STAGES % 2) as u32);
            let a_tile = ring.add(number % STAGES * stage_bytes(BN));
            let (a, b) = (A::descriptor(a_tile), B::descriptor(a_tile.add(A_BYTES)));
            wgmma::fence(); // the sums may be used
            for step in 0..(BK / 16) as u32 {
                let a = a.further(step * A::BYTES_OF_16);
                let b = b.further(step * B::BYTES_OF_16);
                sums.multiply::<T, A, B>(a, b, iteration > 0 || step > 0);
            }
            wgmma::commit();
            sums.wait::<0>(); // the tiles have been read and may be overwritten
            number += 1;
        }
        let c = gemm.of_product(product);
        for i in 0..SUMS {
            let (m, n) = wgmma::sum_place(thread as u32, i as u32);
            c.update::<T>(row + m as usize, col + n as usize, sums[i]);
        }
        tile += thread::grid_dim_x() as usize;
    }
}

/// The warpgroup of a thread, broadcast from the first lane of its warp. So the compiler knows
/// that all lanes of a warp agree, and keeps derived values in uniform registers, from which
/// `wgmma` reads descriptors of tiles: otherwise it copies them there between two products.
///
/// # Safety
///
/// All threads of a warp call it together.
#[inline(always)]
pub(crate) unsafe fn warpgroup() -> usize {
    let warpgroup = thread::thread_idx_x() / WARPGROUP as u32;
    warp_shuffle_idx(!0, warpgroup, 0, 32).0 as usize
}

/// The loads and descriptors of a tile, by its layout.
pub(crate) trait Tiles: Major {
    /// Loads a tile of BK along K and `boxes` times 64 along M or N, from `mn` and `k` on.
    unsafe fn load(
        tile: *mut u8,
        matrix: Boxes<'_>,
        mn: u32,
        k: u32,
        boxes: usize,
        full: *mut Mbarrier,
    );

    /// The descriptor of a tile for the tensor cores.
    unsafe fn descriptor(tile: *const u8) -> Descriptor<Self>;
}

impl Tiles for KMajor {
    #[inline(always)]
    unsafe fn load(
        tile: *mut u8, // (64 * boxes, BK)
        matrix: Boxes<'_>,
        mn: u32,
        k: u32,
        _boxes: usize,
        full: *mut Mbarrier,
    ) {
        matrix.load(tile, k, mn, full);
    }

    #[inline(always)]
    unsafe fn descriptor(tile: *const u8) -> Descriptor<Self> {
        Descriptor::new(tile)
    }
}

impl Tiles for MnMajor {
    #[inline(always)]
    unsafe fn load(
        tile: *mut u8, // (boxes, BK, 64)
        matrix: Boxes<'_>,
        mn: u32,
        k: u32,
        boxes: usize,
        full: *mut Mbarrier,
    ) {
        for i in 0..boxes {
            let box_of_tile = tile.add(i * BK * BOX * 2);
            matrix.load(box_of_tile, mn + (i * BOX) as u32, k, full);
        }
    }

    #[inline(always)]
    unsafe fn descriptor(tile: *const u8) -> Descriptor<Self> {
        Descriptor::of_boxes(tile, (BK * BOX * 2) as u32)
    }
}

/// Rows of the table, by the columns of the block tile and the CTAs that an SM holds.
macro_rules! table {
    ($(
        $name:literal $entry:ident $type:ident $element:ident $a:ident $b:ident
        ($bn:literal, $ctas:literal);
    )*) => {
        kernel! {
            name: "warpgroup",
            idea: "one instruction of 128 threads multiplies tiles that TMA brings, on Hopper",
            variants: [$(
                $name = fn $entry(gemm: $type; mapped)
                    block(WARPGROUP, 1) tile(BM, $bn, BK)
                    shared(full: [Mbarrier; STAGES])
                    launch_bounds($ctas)
                    {
                        staging: Staging::Ring { bytes: (STAGES * stage_bytes($bn)) as u32 },
                        is_lesson: true,
                        a: layout!($a),
                        b: layout!($b),
                    }
                    => multiply::<$element, $a, $b, $bn, { BM * $bn / WARPGROUP }>(gemm, full);
            )*],
        }
    };
}

table! {
    "warpgroup" warpgroup_bf16 bf16 Bf16 KMajor MnMajor (256, 2);
    "warpgroup-nt" warpgroup_nt_bf16 bf16 Bf16 KMajor KMajor (256, 2);
    "warpgroup-nt" warpgroup_nt_f16 f16 F16 KMajor KMajor (256, 2);
    "warpgroup-tn" warpgroup_tn_bf16 bf16 Bf16 MnMajor MnMajor (256, 2);
    "warpgroup-tt" warpgroup_tt_bf16 bf16 Bf16 MnMajor KMajor (256, 2);
    "warpgroup-64x64" warpgroup_64x64_bf16 bf16 Bf16 KMajor MnMajor (64, 6);
}
