//! f32 on Hopper's tensor cores, rounded to tf32, in any layout.
//!
//! Over `warp-specialized`, with its producer, its two consumers and its ring, for f32 elements:
//! - the copy engine rounds elements to tf32, to nearest, as it loads them, since the tensor maps
//!   declare them as tf32. So the error is that of `tensor-core`, and no thread rounds;
//! - `wgmma` reads tiles of 32-bit elements only if they are K-major: it transposes only 16-bit
//!   elements. But its first operand may come from registers, into which threads can read a tile
//!   in any order. For `A * B` with B's rows along N, the first operand is B: the kernel computes
//!   the transpose, `C^T = B^T * A^T`, and stores it transposed again. No operand is copied.
//!
//! ```text
//!   kernel | A's rows | B's rows | multiplies | left, 128 rows      | right, 256 columns
//!   nt     | along K  | along K  | A * B      | A, shared memory    | B, shared memory
//!   tt     | along M  | along K  | A * B      | A, by registers     | B, shared memory
//!   nn     | along K  | along N  | B^T * A^T  | B^T, by registers   | A^T, shared memory
//!   tn     | along M  | along N  | as nn, of a copy of A, transposed
//! ```
//!
//! A thread's four registers of `left` are two pairs of neighbours in its tile. Any assignment of
//! the tile's rows to the instruction's rows 0, 1 ... is valid, if C is stored accordingly:
//! [`left_row`] assigns them so that each half of a warp reads from all 32 banks.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/64 + 1/256); 192 KiB of stages and 32 KiB of boxes of C a CTA
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 32, or 256 x 128 x 32 where it
//! computes the transpose; a consumer has 64 rows of `left`, and a thread 2 x 64 sums. Rows at
//! multiples of 16 bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-specialized-tf32 --math tf32 --m 1000 --n 776 --k 120
//! ```

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::prelude::*;
use cuda_std::shared;
use cuda_std::tma::{self, Swizzle};
use cuda_std::wgmma::{self, Descriptor};

use crate::compat::grid_dependency;
use crate::epilogue::Epilogue;
use crate::kernel::kernel;
use crate::mapped_gemm::{Boxes, Float2, MappedGemm, ANY, WHOLE};
use crate::raster::{self, Place};
use crate::warp_specialized::{Ring, WARPGROUP, WM};
use crate::warpgroup::warpgroup;

const CONSUMERS: usize = 2;
const THREADS: usize = (1 + CONSUMERS) * WARPGROUP;
/// The sums of a thread: a consumer has 64 x 256.
const SUMS: usize = 128;
/// Rows of the left tile, columns of the right one, and the bytes and elements of their depth.
const LEFT: usize = CONSUMERS * WM;
const RIGHT: usize = 2 * SUMS;
const DEPTH_BYTES: usize = 128;
/// Instructions along the depth, each of 32 bytes of it.
const STEPS: usize = DEPTH_BYTES / 32;
/// The depth in f32.
const BK: usize = DEPTH_BYTES / 4;
/// The columns of a box of 32 bits: 128 bytes, which a swizzle spreads over all banks. Boxes of C
/// are square.
const BOX: usize = 32;
const BOX_BYTES: usize = BOX * BOX * 4;
/// Bytes of a stage: a left tile and a right one.
const LEFT_BYTES: usize = LEFT * DEPTH_BYTES;
const STAGE_BYTES: usize = LEFT_BYTES + RIGHT * DEPTH_BYTES;
/// The stages of the ring buffer: as many as fit in shared memory.
const STAGES: usize = 4;
/// Pairs of warps store C in boxes of 32 x 32, with two in flight.
const PAIRS: usize = CONSUMERS * 2;
/// The dynamic shared memory: the ring buffer, and the boxes of C.
const BYTES: usize = STAGES * STAGE_BYTES + PAIRS * 2 * BOX_BYTES;
/// A thread's sums of a box.
const SUMS_OF_BOX: usize = SUMS * BOX / RIGHT;

/// The row of the tile, among a consumer's 64, that a lane has in registers 0 and 2, for a left
/// operand in registers; `row` is `lane / 4`. Registers 1 and 3 hold the next row.
///
/// A row of the tile is a column of its boxes. A thread reads two neighbours at a time, 8 bytes,
/// from row `lane % 4` of the box, or from the row four further on. Half of a warp reads at a
/// time:
///
/// ```text
///   k = 0 | pieces of 16 bytes: 0 1 2 3  4 5 6 7      lanes / 4 = 0 and 1 read piece 0, as (0, 1)
///   k = 1 |                     1 0 3 2  5 4 7 6      and (2, 3), 2 and 3 piece 4: swizzled by k,
///   k = 2 |                     2 3 0 1  6 7 4 5      the pieces 0 and 4 of four rows are all
///   k = 3 |                     3 2 1 0  7 6 5 4      eight places of a row, all banks
/// ```
#[inline(always)]
pub const fn left_row(warp: usize, row: usize) -> usize {
    BOX * (warp / 2) + 16 * (row / 2 % 2) + 8 * (warp % 2) + 4 * (row / 4) + 2 * (row % 2)
}

/// The offset at which a thread first reads a left tile that goes through registers, in bytes: two
/// neighbours of row `lane % 4` of a box. In each eight rows, it reads them in a row and in the
/// row four below, where the swizzle places them 64 bytes before or after.
#[inline(always)]
pub const fn in_left(consumer: usize, warp: usize, lane: usize) -> usize {
    let neighbours = left_row(warp, lane / 4);
    let in_box = lane % 4 * BOX * 4 + neighbours % BOX * 4;
    let of_box = (consumer * WM + neighbours) / BOX * BK * BOX * 4;
    of_box + Swizzle::Bytes128.place(in_box)
}

/// Converts a pair for `left` and `right` to a pair for rows and columns of C, or the other way
/// round.
#[inline(always)]
fn swapped_if<T, const TRANSPOSED: bool>((first, second): (T, T)) -> (T, T) {
    if TRANSPOSED {
        (second, first)
    } else {
        (first, second)
    }
}

/// The body. The barriers are in shared memory.
#[inline(always)]
unsafe fn multiply<const BY_REGISTERS: bool, const TRANSPOSED: bool>(
    gemm: MappedGemm<'_, f32, f32, impl Epilogue>,
    full: *mut Mbarrier,  // (STAGES)
    empty: *mut Mbarrier, // (STAGES)
) {
    const { assert!(BY_REGISTERS || !TRANSPOSED, "B along K is as it must be") }
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
    grid_dependency::wait(); // for kernels that write A, B and C

    let (bm, bn) = swapped_if::<_, TRANSPOSED>((LEFT, RIGHT));
    let (rows, cols) = (gemm.m.div_ceil(bm), gemm.n.div_ceil(bn));
    // The product of a tile, and its first row of `left` and column of `right`.
    let corner = |tile: usize| {
        let Place { product, row, col } = raster::place(tile, rows, cols);
        let (left, right) = swapped_if::<_, TRANSPOSED>((row * bm, col * bn));
        (product, left, right)
    };
    let mut tile = thread::block_idx_x() as usize;
    let ctas = thread::grid_dim_x() as usize;
    let iterations = gemm.depth().div_ceil(BK);
    if warpgroup == 0 {
        wgmma::decrease_registers::<24>();
        if thread == 0 {
            let mut at = Ring::PRODUCER;
            while tile < gemm.products() * rows * cols {
                let (product, left, right) = corner(tile);
                let operands = (gemm.a_of(product), gemm.b_of(product));
                let (of_left, of_right) = swapped_if::<_, TRANSPOSED>(operands);
                for iteration in 0..iterations {
                    let full = full.add(at.stage);
                    mbarrier::wait(empty.add(at.stage), at.parity); // the stage has been read
                    mbarrier::arrive_expect_tx(full, STAGE_BYTES as u32);
                    let left_tile = ring.add(at.stage * STAGE_BYTES);
                    let right_tile = left_tile.add(LEFT_BYTES); // (RIGHT, BK)
                    let k = (iteration * BK) as u32;
                    if BY_REGISTERS {
                        // (LEFT / 32, BK, 32)
                        for i in 0..LEFT / BOX {
                            let left = (left + i * BOX) as u32;
                            let of_box = left_tile.add(i * BK * BOX * 4);
                            of_left.load(of_box, left, k, full);
                        }
                    } else {
                        of_left.load(left_tile, k, left as u32, full); // (LEFT, BK)
                    }
                    of_right.load(right_tile, k, right as u32, full);
                    at.advance(STAGES);
                }
                tile += ctas;
            }
        }
        return;
    }

    wgmma::increase_registers::<240>();
    let consumer = warpgroup - 1;
    let (warp, lane) = (thread / 32, thread % 32);
    let in_left = in_left(consumer, warp, lane);
    let boxes = ring.add(STAGES * STAGE_BYTES);
    let left_tiles = Descriptor::new(ring.add(consumer * WM * DEPTH_BYTES)).uniform();
    let right_tiles = Descriptor::new(ring.add(LEFT_BYTES)).uniform();
    let mut at = Ring::CONSUMER;
    while tile < gemm.products() * rows * cols {
        let mut sums = if iterations > 0 {
            wgmma::unset_128()
        } else {
            [0.0; SUMS]
        };
        let mut left = [[0.0_f32; 4]; STEPS];
        if iterations > 0 {
            mbarrier::wait(full.add(at.stage), at.parity); // the first tiles have landed
            if BY_REGISTERS {
                left = fragments(ring.add(at.stage * STAGE_BYTES), in_left);
            }
        }
        for iteration in 0..iterations {
            let stage = (at.stage * STAGE_BYTES) as u32;
            let tiles = (left_tiles.further(stage), left, right_tiles.further(stage));
            multiply_stage::<BY_REGISTERS>(&mut sums, tiles, iteration > 0);
            let empty = empty.add(at.stage);
            at.advance(STAGES);
            // This wait overlaps the product, so that the next one begins right after it.
            let mut next = left;
            if iteration + 1 < iterations {
                mbarrier::wait(full.add(at.stage), at.parity); // the next tiles have landed
                if BY_REGISTERS {
                    next = fragments(ring.add(at.stage * STAGE_BYTES), in_left);
                }
            }
            wgmma::wait_128::<0>(&mut sums); // the tiles have been read
            if BY_REGISTERS {
                for step in 0..STEPS {
                    wgmma::keep(left[step]);
                }
            }
            if thread == 0 {
                mbarrier::arrive(empty);
            }
            left = next;
        }
        let (product, left, right) = corner(tile);
        let place = SumsPlace {
            left: left + consumer * WM,
            right,
            warp,
            lane,
        };
        let columns_end = if TRANSPOSED {
            place.left + WM
        } else {
            place.right + RIGHT
        };
        if gemm.stores_boxes(columns_end) {
            let pair = consumer * 2 + warp / 2;
            let of_c = gemm.c_of(product);
            let gemm = gemm.of_product(product);
            let (end_row, end_col) =
                swapped_if::<_, TRANSPOSED>((place.left + WM, place.right + RIGHT));
            if !gemm.has_epilogue() || end_row <= gemm.m && end_col <= gemm.n {
                store_boxes::<BY_REGISTERS, TRANSPOSED, WHOLE>(
                    &gemm, of_c, &sums, place, boxes, pair,
                );
            } else {
                store_boxes::<BY_REGISTERS, TRANSPOSED, ANY>(
                    &gemm, of_c, &sums, place, boxes, pair,
                );
            }
        } else {
            let gemm = gemm.of_product(product);
            for i in 0..SUMS {
                let (row, col) = swapped_if::<_, TRANSPOSED>(place.of_sum::<BY_REGISTERS>(i));
                gemm.update(row, col, sums[i]);
            }
        }
        tile += ctas;
    }
}

/// Starts to multiply the tiles of a stage.
#[inline(always)]
unsafe fn multiply_stage<const BY_REGISTERS: bool>(
    sums: &mut [f32; SUMS],
    (left_tile, left, right_tile): (Descriptor, [[f32; 4]; STEPS], Descriptor),
    adds: bool,
) {
    wgmma::fence(); // the sums, and the left operand, may be used
    for step in 0..STEPS {
        let of_step = 32 * step as u32;
        let (tile, right) = (left_tile.further(of_step), right_tile.further(of_step));
        let adds = adds || step > 0;
        if BY_REGISTERS {
            wgmma::m64n256k8_tf32_of_registers(sums, left[step], right, adds);
        } else {
            wgmma::m64n256k8_tf32(sums, tile, right, adds);
        }
    }
    wgmma::commit();
}

/// A thread's fragments of a left tile in registers, each with a depth of 8.
#[inline(always)]
unsafe fn fragments(left_tile: *const u8, in_left: usize) -> [[f32; 4]; STEPS] {
    let mut left = [[0.0_f32; 4]; STEPS];
    for step in 0..STEPS {
        let low = left_tile.add(in_left + step * 8 * BOX * 4);
        let high = left_tile.add((in_left ^ 64) + (step * 8 + 4) * BOX * 4);
        let low = Float2::read(low.cast()).0;
        let high = Float2::read(high.cast()).0;
        left[step] = [low[0], low[1], high[0], high[1]];
    }
    left
}

/// The places of a thread's sums, in a consumer's 64 rows of `left` and 256 columns of `right`.
#[derive(Clone, Copy)]
struct SumsPlace {
    left: usize,
    right: usize,
    warp: usize,
    lane: usize,
}

impl SumsPlace {
    /// The row of `left` and the column of `right` of sum `i`.
    #[inline(always)]
    fn of_sum<const BY_REGISTERS: bool>(&self, i: usize) -> (usize, usize) {
        let thread = (32 * self.warp + self.lane) as u32;
        let (row, col) = wgmma::sum_place(thread, i as u32);
        let row = if BY_REGISTERS {
            left_row(self.warp, self.lane / 4) + i / 2 % 2
        } else {
            row as usize
        };
        (self.left + row, self.right + col as usize)
    }
}

/// Stores the sums of two warps, 32 rows of `left`, with the copy engine: box after box is written
/// to shared memory, and copied while the next is written. A thread has two neighbours of a row of
/// C: sums 0 and 1 of four along `right`, or, transposed, 0 and 2 along `left`. `TILE` says
/// what is known of the rows.
#[inline(always)]
unsafe fn store_boxes<const BY_REGISTERS: bool, const TRANSPOSED: bool, const TILE: u8>(
    gemm: &MappedGemm<'_, f32, f32, impl Epilogue>,
    of_c: Boxes<'_>,
    sums: &[f32; SUMS],
    place: SumsPlace,
    boxes: *mut u8, // (PAIRS, 2, 32, 32)
    pair: usize,
) {
    let leads = place.warp.is_multiple_of(2) && place.lane == 0;
    for part in 0..RIGHT / BOX {
        let target = boxes.add((pair * 2 + part % 2) * BOX_BYTES);
        if leads {
            tma::wait_group_read::<1>(); // the box before the last has been read
        }
        thread::named_barrier(1 + pair as u32, 64); // the box may be written
        for four in 0..SUMS_OF_BOX / 4 {
            for neighbours in 0..2 {
                let i = SUMS_OF_BOX * part + 4 * four;
                let (first, second) = if TRANSPOSED {
                    (i + neighbours, i + neighbours + 2)
                } else {
                    (i + 2 * neighbours, i + 2 * neighbours + 1)
                };
                let (left, right) = place.of_sum::<BY_REGISTERS>(first);
                let (row, col) = swapped_if::<_, TRANSPOSED>((left, right));
                let values = [first, second].map(|i| gemm.alpha * sums[i]);
                let finished = Float2(gemm.finished(gemm.at_in::<TILE>(row, col, 2), values));
                let in_box = (row % BOX * BOX + col % BOX) * 4;
                finished.write(target.add(Swizzle::Bytes128.place(in_box)).cast());
            }
        }
        tma::fence_shared(); // the copy engine sees the box
        thread::named_barrier(1 + pair as u32, 64); // the box is complete
        if leads {
            let left = (place.left + place.warp / 2 * BOX) as u32;
            let right = (place.right + part * BOX) as u32;
            let (row, col) = swapped_if::<_, TRANSPOSED>((left, right));
            of_c.store(col, row, target);
            tma::commit_group();
        }
    }
    // Both boxes have been read, as they must be before the CTA ends. Waiting only after the last
    // tile costs registers, and `ptxas` then makes each product wait for the previous one.
    if leads {
        tma::wait_group_read::<0>();
    }
}

/// The variants: whether the left operand goes through registers, and whether it is B.
macro_rules! variants {
    ($(
        $name:literal $entry:ident a $a:ident b $b:ident tile $m:ident $n:ident
        by_registers $by_registers:literal transposed $transposed:literal;
    )*) => {
        kernel! {
            name: "warp-specialized-tf32",
            idea: "warp specialisation for 32 bits: the copy engine rounds to 11, and registers transpose",
            epilogue: any,
            variants: [
                $(
                    $name = fn $entry(gemm: tf32; mapped)
                        block(THREADS, 1) tile($m, $n, BK)
                        shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
                        launch_bounds(1)
                        {
                            unit: Unit::TensorCores { warp_tile: if $transposed {
                                (RIGHT as u32, 16)
                            } else {
                                (16, RIGHT as u32)
                            } },
                            thread_tile: if $transposed {
                                (RIGHT as u32 / 4, 2)
                            } else {
                                (2, RIGHT as u32 / 4)
                            },
                            staging: Staging::Ring { bytes: BYTES as u32 },
                            a: OperandLayout::$a,
                            b: OperandLayout::$b,
                            rounding: Rounding::Tf32,
                        }
                        => multiply::<$by_registers, $transposed>(gemm, full, empty);
                )*
            ],
        }
    };
}

variants! {
    "warp-specialized-tf32" warp_specialized_tf32 a K_MAJOR_ALIGNED b MN_MAJOR_ALIGNED
        tile RIGHT LEFT by_registers true transposed true;
    "warp-specialized-tf32-nt" warp_specialized_tf32_nt a K_MAJOR_ALIGNED b K_MAJOR_ALIGNED
        tile LEFT RIGHT by_registers false transposed false;
    "warp-specialized-tf32-tt" warp_specialized_tf32_tt a MN_MAJOR_ALIGNED b K_MAJOR_ALIGNED
        tile LEFT RIGHT by_registers true transposed false;
}
