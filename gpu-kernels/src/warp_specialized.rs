//! One warpgroup loads and two multiply: no thread ever waits for what it has asked for itself.
//!
//! Over `warpgroup`, for elements of 16 bits (bf16, f16) with sums in f32:
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
//! A small C has too few tiles for all SMs. For it there are smaller ones: 128 x 128, and 64 x 128
//! and 64 x 64 with one consumer. CTAs of the last two may also share a tile: those of a *cluster*
//! take a part of K each, and send their sums to one of them through distributed shared memory.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-specialized --dtype bf16 --m 1000 --n 776 --k 120
//! ```

use cuda_std::cluster;
use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::mma;
use cuda_std::prelude::*;
use cuda_std::shared;
use cuda_std::tma::{self, Swizzle};
use cuda_std::wgmma::{self, KMajor, MnMajor};

use crate::half::{Bf16, Half, Sums, F16};
use crate::kernel::kernel;
use crate::mapped_gemm::MappedGemm;
use crate::raster;
use crate::warpgroup::{layout, Tiles};
pub(crate) use crate::warpgroup::{BK, BOX, WARPGROUP, WM};

/// A consumer stores C by boxes of 64 x 64, of which two can be on their way.
const BOX_BYTES: usize = WM * BOX * 2;
/// A thread's sums of a box.
const SUMS_OF_BOX: usize = WM * BOX / WARPGROUP;

/// What follows from the consumers of a CTA, and from the sums of their threads.
struct Cta<const CONSUMERS: usize, const SUMS: usize>;

impl<const CONSUMERS: usize, const SUMS: usize> Cta<CONSUMERS, SUMS> {
    /// The block tile is BM x BN x 64.
    const BM: usize = CONSUMERS * WM;
    const BN: usize = 2 * SUMS;
    const THREADS: usize = (1 + CONSUMERS) * WARPGROUP;
    /// Bytes of a stage: a tile of A and one of B.
    const A_BYTES: usize = Self::BM * BK * 2;
    const STAGE_BYTES: usize = Self::A_BYTES + Self::BN * BK * 2;
    /// Tiles of A, and of B, in the ring buffer: as many as there is shared memory for.
    const STAGES: usize = 192 * 1024 / Self::STAGE_BYTES;
    /// The dynamic shared memory: the ring buffer, and each consumer's boxes of C.
    const BYTES: usize = Self::STAGES * Self::STAGE_BYTES + CONSUMERS * 2 * BOX_BYTES;
}

/// The variants of each tile: names, for bf16 and f16, and along what the rows of A and of B run.
macro_rules! variants {
    ($(
        consumers $consumers:literal sums $sums:literal cluster $cluster:literal:
        $($name:literal $bf16:ident $f16:ident $a:ident $b:ident;)*
    )*) => {
        kernel! {
            name: "warp-specialized",
            idea: "one warpgroup loads and two multiply, on Hopper's tensor cores, for bf16 and f16",
            variants: [
                $($(
                    $name = fn $bf16(gemm: bf16; mapped)
                        block(Cta::<$consumers, $sums>::THREADS, 1)
                        tile(Cta::<$consumers, $sums>::BM, Cta::<$consumers, $sums>::BN, BK)
                        shared(
                            full: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                            empty: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                        )
                        launch_bounds(1)
                        {
                            staging: Staging::Ring { bytes: Cta::<$consumers, $sums>::BYTES as u32 },
                            cluster: $cluster,
                            a: layout!($a),
                            b: layout!($b),
                        }
                        => multiply::<Bf16, $a, $b, $consumers, $sums>(gemm, full, empty);
                    $name = fn $f16(gemm: f16; mapped)
                        block(Cta::<$consumers, $sums>::THREADS, 1)
                        tile(Cta::<$consumers, $sums>::BM, Cta::<$consumers, $sums>::BN, BK)
                        shared(
                            full: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                            empty: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                        )
                        launch_bounds(1)
                        {
                            staging: Staging::Ring { bytes: Cta::<$consumers, $sums>::BYTES as u32 },
                            cluster: $cluster,
                            a: layout!($a),
                            b: layout!($b),
                        }
                        => multiply::<F16, $a, $b, $consumers, $sums>(gemm, full, empty);
                )*)*
            ],
        }
    };
}

variants! {
    consumers 2 sums 128 cluster 1:
        "warp-specialized" warp_specialized_bf16 warp_specialized_f16 KMajor MnMajor;
        "warp-specialized-nt" warp_specialized_nt_bf16 warp_specialized_nt_f16 KMajor KMajor;
        "warp-specialized-tn" warp_specialized_tn_bf16 warp_specialized_tn_f16 MnMajor MnMajor;
        "warp-specialized-tt" warp_specialized_tt_bf16 warp_specialized_tt_f16 MnMajor KMajor;
    consumers 2 sums 64 cluster 1:
        "warp-specialized-128x128" warp_specialized_128x128_bf16 warp_specialized_128x128_f16 KMajor MnMajor;
        "warp-specialized-128x128-nt" warp_specialized_128x128_nt_bf16 warp_specialized_128x128_nt_f16 KMajor KMajor;
        "warp-specialized-128x128-tn" warp_specialized_128x128_tn_bf16 warp_specialized_128x128_tn_f16 MnMajor MnMajor;
        "warp-specialized-128x128-tt" warp_specialized_128x128_tt_bf16 warp_specialized_128x128_tt_f16 MnMajor KMajor;
    consumers 1 sums 64 cluster 8:
        "warp-specialized-64x128" warp_specialized_64x128_bf16 warp_specialized_64x128_f16 KMajor MnMajor;
        "warp-specialized-64x128-nt" warp_specialized_64x128_nt_bf16 warp_specialized_64x128_nt_f16 KMajor KMajor;
        "warp-specialized-64x128-tn" warp_specialized_64x128_tn_bf16 warp_specialized_64x128_tn_f16 MnMajor MnMajor;
        "warp-specialized-64x128-tt" warp_specialized_64x128_tt_bf16 warp_specialized_64x128_tt_f16 MnMajor KMajor;
    consumers 1 sums 32 cluster 8:
        "warp-specialized-64x64" warp_specialized_64x64_bf16 warp_specialized_64x64_f16 KMajor MnMajor;
        "warp-specialized-64x64-nt" warp_specialized_64x64_nt_bf16 warp_specialized_64x64_nt_f16 KMajor KMajor;
        "warp-specialized-64x64-tn" warp_specialized_64x64_tn_bf16 warp_specialized_64x64_tn_f16 MnMajor MnMajor;
        "warp-specialized-64x64-tt" warp_specialized_64x64_tt_bf16 warp_specialized_64x64_tt_f16 MnMajor KMajor;
}

/// Where a warpgroup stands in the ring: at a stage, and at the parity of its phase.
#[derive(Clone, Copy)]
pub(crate) struct Ring {
    pub stage: usize,
    pub parity: u32,
}

impl Ring {
    #[inline(always)]
    pub fn advance(&mut self, stages: usize) {
        self.stage += 1;
        if self.stage == stages {
            self.stage = 0;
            self.parity ^= 1;
        }
    }
}

/// The body. The barriers are in shared memory.
#[inline(always)]
unsafe fn multiply<T: Half, A: Tiles, B: Tiles, const CONSUMERS: usize, const SUMS: usize>(
    gemm: MappedGemm<'_>,
    full: *mut Mbarrier,  // (STAGES)
    empty: *mut Mbarrier, // (STAGES)
) where
    [f32; SUMS]: Sums,
{
    let (bm, bn) = (Cta::<CONSUMERS, SUMS>::BM, Cta::<CONSUMERS, SUMS>::BN);
    let stages = Cta::<CONSUMERS, SUMS>::STAGES;
    let (a_bytes, stage_bytes) = (
        Cta::<CONSUMERS, SUMS>::A_BYTES,
        Cta::<CONSUMERS, SUMS>::STAGE_BYTES,
    );
    let ring = shared::dynamic_shared_mem_aligned::<u8, 1024>();
    let thread = thread::thread_idx_x() as usize;
    if thread == 0 {
        for stage in 0..stages {
            mbarrier::init(full.add(stage), 1);
            mbarrier::init(empty.add(stage), CONSUMERS as u32); // one of each consumer
        }
        mbarrier::fence_init();
    }
    thread::sync_threads(); // the barriers may be used

    let (rows, cols) = (gemm.m.div_ceil(bm), gemm.n.div_ceil(bn));
    let cta = thread::block_idx_x() as usize;
    let ctas = thread::grid_dim_x() as usize;
    // The CTAs of a cluster share a tile: each takes a part of its k-iterations.
    let parts = if CONSUMERS == 1 {
        cluster::blocks() as usize
    } else {
        1
    };
    let (first, part, step) = (cta / parts, cta % parts, ctas / parts);
    let iterations = iterations_of(part, parts, gemm.depth().div_ceil(BK));
    if thread < WARPGROUP {
        if SUMS > 64 {
            wgmma::decrease_registers::<24>();
        }
        if thread == 0 {
            let mut at = Ring {
                stage: 0,
                parity: 1,
            };
            let mut tile = first;
            while tile < rows * cols {
                let (row, col) = raster::tile_position(tile, rows, cols);
                for iteration in iterations.0..iterations.1 {
                    let full = full.add(at.stage);
                    mbarrier::wait(empty.add(at.stage), at.parity); // the stage has been read
                    mbarrier::arrive_expect_tx(full, stage_bytes as u32);
                    let a_tile = ring.add(at.stage * stage_bytes);
                    let b_tile = a_tile.add(a_bytes);
                    let k = (iteration * BK) as u32;
                    A::load(a_tile, gemm.a, (row * bm) as u32, k, bm / BOX, full);
                    B::load(b_tile, gemm.b, (col * bn) as u32, k, bn / BOX, full);
                    at.advance(stages);
                }
                tile += step;
            }
        }
        return;
    }

    if SUMS > 64 {
        wgmma::increase_registers::<240>();
    }
    let consumer = thread / WARPGROUP - 1;
    let thread = thread % WARPGROUP;
    let boxes = ring.add(stages * stage_bytes + consumer * 2 * BOX_BYTES);
    let mut at = Ring {
        stage: 0,
        parity: 0,
    };
    let mut tile = first;
    while tile < rows * cols {
        let (row, col) = raster::tile_position(tile, rows, cols);
        let mut sums = [0.0_f32; SUMS];
        // One consumer alone keeps a product in flight, and reads the stage before meanwhile.
        let mut before = at;
        for iteration in iterations.0..iterations.1 {
            mbarrier::wait(full.add(at.stage), at.parity); // the tiles have landed
            let a_tile = ring.add(at.stage * stage_bytes);
            let b_tile = a_tile.add(a_bytes);
            // A consumer's rows of A are one box if they run along M, and half of them if along K:
            // 64 rows of 128 bytes either way.
            let a = A::descriptor(a_tile.add(consumer * WM * BOX * 2));
            let b = B::descriptor(b_tile);
            wgmma::fence(); // the sums may be used
            for step in 0..(BK / 16) as u32 {
                let a = a.along_k(step * A::BYTES_OF_16);
                let b = b.along_k(step * B::BYTES_OF_16);
                sums.multiply::<T, A, B>(a, b, iteration > iterations.0 || step > 0);
            }
            wgmma::commit();
            if CONSUMERS == 1 {
                sums.wait::<1>(); // the tiles of the stage before have been read
                if thread == 0 && iteration > iterations.0 {
                    mbarrier::arrive(empty.add(before.stage));
                }
                before = at;
            } else {
                sums.wait::<0>(); // the tiles have been read
                if thread == 0 {
                    mbarrier::arrive(empty.add(at.stage));
                }
            }
            at.advance(stages);
        }
        if CONSUMERS == 1 {
            sums.wait::<0>(); // the last tiles have been read
            if thread == 0 && iterations.0 < iterations.1 {
                mbarrier::arrive(empty.add(before.stage));
            }
        }
        if parts > 1 {
            add_parts(&mut sums, ring.cast::<f32>().add(thread), part, parts);
            if part >= SUMS / SUMS_OF_BOX {
                return;
            }
        }
        let own = (parts > 1).then_some(part); // the box of C that is this CTA's, if not all are
        let (row, col) = (row * bm + consumer * WM, col * bn);
        if gemm.stores_boxes() {
            store_boxes::<T, SUMS>(&gemm, &sums, own, (row, col), boxes, consumer, thread);
        } else {
            store_elements::<T, SUMS>(&gemm, &sums, own, row, col, thread);
        }
        tile += step;
    }
}

/// The first of a part's k-iterations, and the first after them.
#[inline(always)]
fn iterations_of(part: usize, parts: usize, iterations: usize) -> (usize, usize) {
    let share = iterations.div_ceil(parts);
    let first = |part: usize| {
        if part * share < iterations {
            part * share
        } else {
            iterations
        }
    };
    (first(part), first(part + 1))
}

/// Adds the sums of a cluster's CTAs, those of each box of C in a CTA of its own, always in the
/// same order. They travel through distributed shared memory to its ring buffer: a cluster has one
/// tile only, so that no other tiles are on their way there.
#[inline(always)]
unsafe fn add_parts<const SUMS: usize>(
    sums: &mut [f32; SUMS],
    of_thread: *mut f32, // (parts - 1, SUMS_OF_BOX, WARPGROUP), this thread's column
    part: usize,
    parts: usize,
) {
    let slot = |other: usize| of_thread.add(other * SUMS_OF_BOX * WARPGROUP);
    cluster::sync_threads(); // all CTAs have multiplied all their tiles
    for owner in 0..SUMS / SUMS_OF_BOX {
        if owner != part {
            // A CTA has no slot for its own sums.
            let slot = slot(if part < owner { part } else { part - 1 });
            let target = cluster::shared_of(slot, owner as u32);
            for i in 0..SUMS_OF_BOX {
                let sum = sums[owner * SUMS_OF_BOX + i];
                target.add(i * WARPGROUP).write(sum);
            }
        }
    }
    cluster::sync_threads(); // all sums are there
    for owner in 0..SUMS / SUMS_OF_BOX {
        if owner == part {
            for other in 0..parts - 1 {
                for i in 0..SUMS_OF_BOX {
                    sums[owner * SUMS_OF_BOX + i] += slot(other).add(i * WARPGROUP).read();
                }
            }
        }
    }
}

/// Stores a consumer's 64 rows of sums by the copy engine: box after box is written to shared
/// memory, as 16 bits an element, and copied while the next is written.
#[inline(always)]
unsafe fn store_boxes<T: Half, const SUMS: usize>(
    gemm: &MappedGemm<'_>,
    sums: &[f32; SUMS],
    own: Option<usize>,
    (row, col): (usize, usize),
    boxes: *mut u8, // (2, 64, 64)
    consumer: usize,
    thread: usize,
) {
    let (warp, lane) = (thread / 32, thread % 32);
    // `stmatrix` stores four 8 x 8 matrices of a warp's 16 rows: lanes 0 to 15 name its rows in
    // eight columns, lanes 16 to 31 in the eight columns beside them.
    let (in_box, half) = (16 * warp + lane % 16, lane / 16);
    for part in 0..SUMS / SUMS_OF_BOX {
        if own.is_some_and(|own| own != part) {
            continue;
        }
        let target = boxes.add(part % 2 * BOX_BYTES);
        if thread == 0 {
            // What was last in this place has been read: the box before the last, or the last.
            if SUMS > SUMS_OF_BOX {
                tma::wait_group_read::<1>();
            } else {
                tma::wait_group_read::<0>();
            }
        }
        thread::named_barrier(1 + consumer as u32, WARPGROUP as u32); // the box may be written
        for pair in 0..BOX / 16 {
            let i = SUMS_OF_BOX * part + 8 * pair;
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
unsafe fn store_elements<T: Half, const SUMS: usize>(
    gemm: &MappedGemm<'_>,
    sums: &[f32; SUMS],
    own: Option<usize>,
    row: usize,
    col: usize,
    thread: usize,
) {
    for i in 0..sums.len() {
        if own.is_some_and(|own| own != i / SUMS_OF_BOX) {
            continue;
        }
        let (m, n) = wgmma::sum_place(thread as u32, i as u32);
        gemm.update::<T>(row + m as usize, col + n as usize, sums[i]);
    }
}
