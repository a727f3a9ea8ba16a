//! fp32 results from tensor cores that multiply f16: split, multiply, promote, recombine.
//!
//! Over `warp-specialized`, for f32 elements with nearly their precision:
//! - each element is split into two f16 with a scale for its row or column (`split.rs`):
//!   `a = hi + lo * 2^-11` has 22 or 23 of 24 bits, and `a * b` is three products of f16, each 15
//!   times as fast on tensor cores as one of f32 on CUDA cores. The fourth, of `lo` and `lo`, is
//!   below 2^-22 of the result;
//! - tensor cores truncate sums instead of rounding them, and the error adds up along K. So the
//!   sums of `hi * hi` are promoted: every 128 of K they are added to sums in registers, with
//!   rounding to nearest, and start again from zero. The products with `lo` are 2^-11 times as
//!   large, and so is their truncation error: their sums are not promoted.
//!
//! ```text
//!   stage    | hi_a | lo_a | hi_b | lo_b |                      from two f16 for each f32
//!              hi_a * hi_b                 -> interval -- every 128 of k --> sums
//!              hi_a * lo_b + lo_a * hi_b   -> cross   -- 2^-11, at the end --> sums -> C
//! ```
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN), of f32's size
//! Block: 384 threads in 3 warpgroups, block tile 128 x 128 x 64, 64 x 128 a consumer. A thread
//! has 2 x 32 sums three times: in total, of an interval, and with `lo`. Any M, N, K, any layout
//! and alignment. Only for compute capability 9.0.
//!
//! Errors are relative to the sum of an element's terms, plus 2^-46 of the largest element of its
//! row of A times the largest of its column of B for each of up to 1024 terms: elements smaller
//! than 2^-26 of those two lose bits. Infinities and NaNs behave as in IEEE 754.
//!
//! ```sh
//! cargo run -p host -- --kernel split-fp32 --math split --m 1000 --n 777 --k 123
//! ```

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::prelude::*;
use cuda_std::shared;
use cuda_std::wgmma::{self, Descriptor, KMajor};

use crate::compat::grid_dependency;
use crate::epilogue::Epilogue;
use crate::half::{Sums, F16};
use crate::kernel::kernel;
use crate::mapped_gemm::MappedGemm;
use crate::raster::{self, Place};
use crate::warp_specialized::{Ring, BK, BOX, WARPGROUP, WM};
use crate::warpgroup::warpgroup;

const CONSUMERS: usize = 2;
/// The sums of a thread: a consumer has 64 x 128.
const SUMS: usize = 64;
/// The block tile is BM x BN x 64.
const BM: usize = CONSUMERS * WM;
const BN: usize = 2 * SUMS;
const THREADS: usize = (1 + CONSUMERS) * WARPGROUP;
/// Bytes of a tile of A, and of a stage: the upper and the lower halves of A and of B.
const TILE_BYTES: usize = BM * BOX * 2;
const STAGE_BYTES: usize = 4 * TILE_BYTES;
/// The stages of the ring buffer: as many as fit in shared memory.
const STAGES: usize = 3;
/// The k-iterations, each of BK = 64, after which sums are promoted: 128 of K.
pub const INTERVAL: usize = 2;

/// The body. The barriers are in shared memory.
#[inline(always)]
unsafe fn multiply(
    gemm: MappedGemm<'_, f32, f32, impl Epilogue>,
    full: *mut Mbarrier,  // (STAGES)
    empty: *mut Mbarrier, // (STAGES)
) {
    const { assert!(BM == BN, "tiles of A and of B are of one size") }
    let ring = shared::dynamic_shared_mem_aligned::<u8, 1024>();
    let (warpgroup, thread) = (warpgroup(), thread::thread_idx_x() as usize % WARPGROUP);
    if thread == 0 && warpgroup == 0 {
        for stage in 0..STAGES {
            mbarrier::init(full.add(stage), 1);
            mbarrier::init(empty.add(stage), CONSUMERS as u32); // one arrival from each consumer
        }
        mbarrier::fence_init();
    }
    thread::sync_threads(); // the barriers may be used
    grid_dependency::wait(); // for the kernels that split A and B, and write C

    let (rows, cols) = (gemm.m.div_ceil(BM), gemm.n.div_ceil(BN));
    let mut tile = thread::block_idx_x() as usize;
    let ctas = thread::grid_dim_x() as usize;
    let iterations = gemm.depth().div_ceil(BK);
    if warpgroup == 0 {
        wgmma::decrease_registers::<24>();
        if thread == 0 {
            let lower = (iterations * BK) as u32; // where a row's lower halves begin
            let mut at = Ring::PRODUCER;
            while tile < gemm.products() * rows * cols {
                let Place { product, row, col } = raster::place(tile, rows, cols);
                let (of_a, of_b) = (gemm.a_of(product), gemm.b_of(product));
                let (row, col) = ((row * BM) as u32, (col * BN) as u32);
                for iteration in 0..iterations {
                    let full = full.add(at.stage);
                    mbarrier::wait(empty.add(at.stage), at.parity); // the stage has been read
                    mbarrier::arrive_expect_tx(full, STAGE_BYTES as u32);
                    let stage = ring.add(at.stage * STAGE_BYTES);
                    let k = (iteration * BK) as u32;
                    of_a.load(stage, k, row, full);
                    of_a.load(stage.add(TILE_BYTES), lower + k, row, full);
                    of_b.load(stage.add(2 * TILE_BYTES), k, col, full);
                    of_b.load(stage.add(3 * TILE_BYTES), lower + k, col, full);
                    at.advance(STAGES);
                }
                tile += ctas;
            }
        }
        return;
    }

    wgmma::increase_registers::<240>();
    let consumer = warpgroup - 1;
    let of_a = ring.add(consumer * WM * BOX * 2);
    let hi_a = Descriptor::new(of_a).uniform();
    let lo_a = Descriptor::new(of_a.add(TILE_BYTES)).uniform();
    let hi_b = Descriptor::new(ring.add(2 * TILE_BYTES)).uniform();
    let lo_b = Descriptor::new(ring.add(3 * TILE_BYTES)).uniform();
    let mut at = Ring::CONSUMER;
    while tile < gemm.products() * rows * cols {
        let Place { product, row, col } = raster::place(tile, rows, cols);
        let mut sums = [0.0_f32; SUMS];
        let mut interval = wgmma::unset_64();
        let mut cross = if iterations > 0 {
            wgmma::unset_64()
        } else {
            [0.0; SUMS]
        };
        if iterations > 0 {
            mbarrier::wait(full.add(at.stage), at.parity); // the first tiles have landed
        }
        for iteration in 0..iterations {
            let stage = (at.stage * STAGE_BYTES) as u32;
            let is_first = iteration % INTERVAL == 0;
            wgmma::fence(); // the sums may be used
            for step in 0..(BK / 16) as u32 {
                let [hi_a, lo_a, hi_b, lo_b] =
                    [hi_a, lo_a, hi_b, lo_b].map(|tiles| tiles.further(stage + 32 * step));
                interval.multiply::<F16, KMajor, KMajor>(hi_a, hi_b, !is_first || step > 0);
                cross.multiply::<F16, KMajor, KMajor>(hi_a, lo_b, iteration > 0 || step > 0);
                cross.multiply::<F16, KMajor, KMajor>(lo_a, hi_b, true);
            }
            wgmma::commit();
            let empty = empty.add(at.stage);
            at.advance(STAGES);
            // This wait overlaps the product, so that the next one begins right after it.
            if iteration + 1 < iterations {
                mbarrier::wait(full.add(at.stage), at.parity); // the next tiles have landed
            }
            interval.wait::<0>(); // the tiles have been read
            cross.wait::<0>(); // the cross sums of the same tiles
            if thread == 0 {
                mbarrier::arrive(empty);
            }
            if iteration % INTERVAL == INTERVAL - 1 || iteration + 1 == iterations {
                for i in 0..SUMS {
                    sums[i] += interval[i];
                }
            }
        }
        let (row, col) = (row * BM + consumer * WM, col * BN);
        let gemm = gemm.of_product(product);
        for i in 0..SUMS {
            let (m, n) = wgmma::sum_place(thread as u32, i as u32);
            // Products of infinities with `lo` are meaningless.
            let below = if cross[i].to_bits() & 0x7F80_0000 == 0x7F80_0000 {
                0.0
            } else {
                cross[i]
            };
            let sum = sums[i] + below * (1.0 / 2048.0);
            gemm.update_scaled(row + m as usize, col + n as usize, sum);
        }
        tile += ctas;
    }
}

kernel! {
    name: "split-fp32",
    idea: "fp32 results from tensor cores: two f16 for each element, three products, promoted sums",
    epilogue: any,
    variants: [
        "split-fp32" = fn split_fp32(gemm: split_f32; mapped)
            block(THREADS, 1) tile(BM, BN, BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
            launch_bounds(1)
            {
                staging: Staging::Ring { bytes: (STAGES * STAGE_BYTES) as u32 },
                b: OperandLayout::K_MAJOR_ALIGNED,
                splits_operands: true,
                rounding: Rounding::Split,
            }
            => multiply(gemm, full, empty);
    ],
}
