//! One warpgroup loads and two multiply: no thread ever waits for what it has asked for itself.
//!
//! Over `tensor-core`, for elements of 16 bits (bf16, f16) with sums in f32:
//! - `wgmma`: the 128 threads of a warpgroup multiply 64 x 16 by 16 x 256 in one instruction,
//!   which reads A and B from shared memory itself and runs on while they go on;
//! - the copy engine (TMA) brings whole tiles: one thread names a corner, and no thread computes
//!   an address or holds data. What lies outside a matrix arrives as zeros;
//! - warps are specialised: one warpgroup, the producer, only asks for tiles, two, the consumers,
//!   only multiply. They meet at barriers in shared memory, two for each of four stages: `full`
//!   (its tiles have landed) and `empty` (they have been read). The producer gives its registers
//!   away, so that each consumer can hold 64 x 256 sums;
//! - CTAs are persistent: one on each SM takes tile after tile, so that the tiles of the next are
//!   on their way while C is stored, which the copy engine does from shared memory.
//!
//! ```text
//!   producer    | load 0 | load 1 | load 2 | load 3 |  wait  | load 0 |  wait  | load 1 ...
//!                    \ full                              / empty
//!   consumer 0           | multiply 0 | multiply 1 | multiply 2 | multiply 3 | ...
//!   consumer 1           | multiply 0 | multiply 1 | multiply 2 | multiply 3 | ...
//! ```
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/64 + 1/256), by the tensor cores; 196 KiB of stages a CTA
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 64, of which a consumer has 64 x 256
//! and a thread 2 x 64. A and B in any layout, rows at multiples of 16 bytes. Any M, N, K. For
//! compute capability 9.0 alone.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-specialized --dtype bf16 --m 1000 --n 776 --k 120
//! ```

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::mma;
use cuda_std::prelude::*;
use cuda_std::shared;
use cuda_std::tma::{self, Swizzle, TensorMap};
use cuda_std::wgmma::{self, Descriptor, KMajor, Major, MnMajor};

use crate::half::{Bf16, Half, F16};
use crate::kernel::kernel;
use crate::mapped_gemm::MappedGemm;
use crate::raster;
use crate::spec::Staging;

/// Block tile.
const BM: usize = 128;
const BN: usize = 256;
const BK: usize = 64;
/// Threads of a warpgroup, and of a CTA: a producer and two consumers.
const WARPGROUP: usize = 128;
const THREADS: usize = 3 * WARPGROUP;
/// Rows of C that a consumer computes.
const WM: usize = 64;
/// Tiles of A, and of B, in the ring buffer.
const STAGES: usize = 4;
/// Columns of 16 bits of a box: 128 bytes, what a swizzle spreads over all banks.
const BOX: usize = 64;
/// Bytes of a stage: a tile of A and one of B.
const A_BYTES: usize = BM * BK * 2;
const STAGE_BYTES: usize = A_BYTES + BN * BK * 2;
/// A consumer stores C by boxes of 64 x 64, of which two can be on their way.
const BOX_BYTES: usize = WM * BOX * 2;
/// The dynamic shared memory.
const RING: Staging = Staging::Ring {
    bytes: (STAGES * STAGE_BYTES + 2 * 2 * BOX_BYTES) as u32,
};

kernel! {
    name: "warp-specialized",
    idea: "one warpgroup loads and two multiply, on Hopper's tensor cores, for bf16 and f16",
    variants: [
        "warp-specialized" = fn warp_specialized_bf16(gemm: bf16; mapped)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
            launch_bounds(1)
            { staging: RING }
            => multiply::<Bf16, KMajor, MnMajor>(gemm, full, empty);
        "warp-specialized-nt" = fn warp_specialized_nt_bf16(gemm: bf16; mapped)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
            launch_bounds(1)
            { staging: RING, b: OperandLayout::K_MAJOR_ALIGNED }
            => multiply::<Bf16, KMajor, KMajor>(gemm, full, empty);
        "warp-specialized-tn" = fn warp_specialized_tn_bf16(gemm: bf16; mapped)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
            launch_bounds(1)
            { staging: RING, a: OperandLayout::MN_MAJOR_ALIGNED }
            => multiply::<Bf16, MnMajor, MnMajor>(gemm, full, empty);
        "warp-specialized-tt" = fn warp_specialized_tt_bf16(gemm: bf16; mapped)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
            launch_bounds(1)
            {
                staging: RING,
                a: OperandLayout::MN_MAJOR_ALIGNED,
                b: OperandLayout::K_MAJOR_ALIGNED,
            }
            => multiply::<Bf16, MnMajor, KMajor>(gemm, full, empty);
        "warp-specialized" = fn warp_specialized_f16(gemm: f16; mapped)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
            launch_bounds(1)
            { staging: RING }
            => multiply::<F16, KMajor, MnMajor>(gemm, full, empty);
        "warp-specialized-nt" = fn warp_specialized_nt_f16(gemm: f16; mapped)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
            launch_bounds(1)
            { staging: RING, b: OperandLayout::K_MAJOR_ALIGNED }
            => multiply::<F16, KMajor, KMajor>(gemm, full, empty);
        "warp-specialized-tn" = fn warp_specialized_tn_f16(gemm: f16; mapped)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
            launch_bounds(1)
            { staging: RING, a: OperandLayout::MN_MAJOR_ALIGNED }
            => multiply::<F16, MnMajor, MnMajor>(gemm, full, empty);
        "warp-specialized-tt" = fn warp_specialized_tt_f16(gemm: f16; mapped)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
            launch_bounds(1)
            {
                staging: RING,
                a: OperandLayout::MN_MAJOR_ALIGNED,
                b: OperandLayout::K_MAJOR_ALIGNED,
            }
            => multiply::<F16, MnMajor, KMajor>(gemm, full, empty);
    ],
}

/// Where a warpgroup stands in the ring: at a stage, and at the parity of its phase.
#[derive(Clone, Copy)]
struct Ring {
    stage: usize,
    parity: u32,
}

impl Ring {
    #[inline(always)]
    fn advance(&mut self) {
        self.stage += 1;
        if self.stage == STAGES {
            self.stage = 0;
            self.parity ^= 1;
        }
    }
}

/// The body. The barriers are in shared memory.
#[inline(always)]
unsafe fn multiply<T: Half, A: Tiles, B: Tiles>(
    gemm: MappedGemm<'_>,
    full: *mut Mbarrier,  // (STAGES)
    empty: *mut Mbarrier, // (STAGES)
) {
    let ring = shared::dynamic_shared_mem_aligned::<u8, 1024>();
    let thread = thread::thread_idx_x() as usize;
    if thread == 0 {
        for stage in 0..STAGES {
            mbarrier::init(full.add(stage), 1);
            mbarrier::init(empty.add(stage), 2); // one of each consumer
        }
        mbarrier::fence_init();
    }
    thread::sync_threads(); // the barriers may be used

    let k_iterations = gemm.depth().div_ceil(BK);
    let (rows, cols) = (gemm.m.div_ceil(BM), gemm.n.div_ceil(BN));
    let ctas = thread::grid_dim_x() as usize;
    let first = thread::block_idx_x() as usize;
    if thread < WARPGROUP {
        wgmma::decrease_registers::<24>();
        if thread == 0 {
            let mut at = Ring {
                stage: 0,
                parity: 1,
            };
            let mut tile = first;
            while tile < rows * cols {
                let (row, col) = raster::tile_position(tile, rows, cols);
                for iteration in 0..k_iterations {
                    let full = full.add(at.stage);
                    mbarrier::wait(empty.add(at.stage), at.parity); // the stage has been read
                    mbarrier::arrive_expect_tx(full, STAGE_BYTES as u32);
                    let a_tile = ring.add(at.stage * STAGE_BYTES);
                    let b_tile = a_tile.add(A_BYTES);
                    let k = (iteration * BK) as u32;
                    A::load(a_tile, gemm.a, (row * BM) as u32, k, BM / BOX, full);
                    B::load(b_tile, gemm.b, (col * BN) as u32, k, BN / BOX, full);
                    at.advance();
                }
                tile += ctas;
            }
        }
        return;
    }

    wgmma::increase_registers::<240>();
    let consumer = thread / WARPGROUP - 1;
    let thread = thread % WARPGROUP;
    let boxes = ring.add(STAGES * STAGE_BYTES + consumer * 2 * BOX_BYTES);
    let mut at = Ring {
        stage: 0,
        parity: 0,
    };
    let mut tile = first;
    while tile < rows * cols {
        let (row, col) = raster::tile_position(tile, rows, cols);
        let mut sums = [0.0_f32; 128];
        for iteration in 0..k_iterations {
            mbarrier::wait(full.add(at.stage), at.parity); // the tiles have landed
            let a_tile = ring.add(at.stage * STAGE_BYTES);
            let b_tile = a_tile.add(A_BYTES);
            // A consumer's rows of A are one box if they run along M, and half of them if along K:
            // 64 rows of 128 bytes either way.
            let a = A::descriptor(a_tile.add(consumer * WM * BOX * 2));
            let b = B::descriptor(b_tile);
            wgmma::fence(); // the sums may be used
            for step in 0..(BK / 16) as u32 {
                let a = a.along_k(step * A::BYTES_OF_16);
                let b = b.along_k(step * B::BYTES_OF_16);
                T::multiply(&mut sums, a, b, iteration > 0 || step > 0);
            }
            wgmma::commit();
            wgmma::wait_128::<0>(&mut sums); // the tiles have been read
            if thread == 0 {
                mbarrier::arrive(empty.add(at.stage));
            }
            at.advance();
        }
        let (row, col) = (row * BM + consumer * WM, col * BN);
        if gemm.stores_boxes() {
            store_boxes::<T>(&gemm, &sums, row, col, boxes, consumer, thread);
        } else {
            store_elements::<T>(&gemm, &sums, row, col, thread);
        }
        tile += ctas;
    }
}

/// What a kernel needs to know of how a tile's rows run.
trait Tiles: Major {
    /// Asks for a tile of BK along K and `boxes` times 64 along M or N, from `mn` and `k` on.
    unsafe fn load(
        tile: *mut u8,
        map: &TensorMap,
        mn: u32,
        k: u32,
        boxes: usize,
        full: *mut Mbarrier,
    );

    /// Describes a tile to the tensor cores.
    unsafe fn descriptor(tile: *const u8) -> Descriptor<Self>;
}

impl Tiles for KMajor {
    #[inline(always)]
    unsafe fn load(
        tile: *mut u8, // (64 * boxes, BK)
        map: &TensorMap,
        mn: u32,
        k: u32,
        _boxes: usize,
        full: *mut Mbarrier,
    ) {
        tma::load_2d(tile, map, k, mn, full);
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
        map: &TensorMap,
        mn: u32,
        k: u32,
        boxes: usize,
        full: *mut Mbarrier,
    ) {
        for i in 0..boxes {
            let box_of_tile = tile.add(i * BK * BOX * 2);
            tma::load_2d(box_of_tile, map, mn + (i * BOX) as u32, k, full);
        }
    }

    #[inline(always)]
    unsafe fn descriptor(tile: *const u8) -> Descriptor<Self> {
        Descriptor::of_boxes(tile, (BK * BOX * 2) as u32)
    }
}

/// Stores a consumer's 64 x 256 sums by the copy engine: box after box is written to shared
/// memory, as 16 bits an element, and copied while the next is written.
#[inline(always)]
unsafe fn store_boxes<T: Half>(
    gemm: &MappedGemm<'_>,
    sums: &[f32; 128],
    row: usize,
    col: usize,
    boxes: *mut u8, // (2, 64, 64)
    consumer: usize,
    thread: usize,
) {
    let (warp, lane) = (thread / 32, thread % 32);
    // `stmatrix` stores four 8 x 8 matrices of a warp's 16 rows: lanes 0 to 15 name its rows in
    // eight columns, lanes 16 to 31 in the eight columns beside them.
    let (in_box, half) = (16 * warp + lane % 16, lane / 16);
    for part in 0..BN / BOX {
        let target = boxes.add(part % 2 * BOX_BYTES);
        if thread == 0 {
            tma::wait_group_read::<1>(); // the box before the last has been read
        }
        thread::named_barrier(1 + consumer as u32, WARPGROUP as u32); // the box may be written
        for pair in 0..BOX / 16 {
            let i = 32 * part + 8 * pair;
            let scaled = |i: usize| T::pair(gemm.alpha * sums[i], gemm.alpha * sums[i + 1]);
            let place = in_box * BOX * 2 + 16 * (2 * pair + half);
            let fragments = [scaled(i), scaled(i + 2), scaled(i + 4), scaled(i + 6)];
            mma::stmatrix_x4(target.add(Swizzle::Bytes128.place(place)), fragments);
        }
        tma::fence_shared(); // the copy engine sees the box
        thread::named_barrier(1 + consumer as u32, WARPGROUP as u32); // the box is complete
        if thread == 0 {
            tma::store_2d(gemm.c_boxes, (col + part * BOX) as u32, row as u32, target);
            tma::commit_group();
        }
    }
}

/// Stores a consumer's sums one by one: where beta wants C to be read, or its rows lie so that the
/// copy engine cannot write them.
#[inline(always)]
unsafe fn store_elements<T: Half>(
    gemm: &MappedGemm<'_>,
    sums: &[f32; 128],
    row: usize,
    col: usize,
    thread: usize,
) {
    for i in 0..sums.len() {
        let (m, n) = wgmma::sum_place(thread as u32, i as u32);
        gemm.update::<T>(row + m as usize, col + n as usize, sums[i]);
    }
}
