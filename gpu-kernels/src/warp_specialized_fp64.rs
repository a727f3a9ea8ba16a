//! f64 on Hopper's tensor cores by warps that only multiply: the copy engine loads the tiles.
//!
//! Over `fp64-tensor`, with the producer and the ring of `warp-specialized`:
//! - one thread has the copy engine load whole tiles. The warps that multiply compute no addresses
//!   of copies and no bounds, and no barrier stops all of them: each waits only for the tiles;
//! - fragments are read from shared memory while earlier instructions multiply, even across
//!   stages: the tensor cores of a warp scheduler always have an instruction;
//! - it computes the transpose, `C^T = B^T * A^T`. Then two elements in neighbouring registers of
//!   a fragment are neighbours in the tiles, too: a read is 16 bytes.
//!
//! ```text
//!   read       |  B 1  |  B 2  |  B 3  | A, B 0 |  B 1  |  B 2  | ...    fragments
//!   multiply   |  B 0  |  B 1  |  B 2  |  B 3   |  B 0  |  B 1  | ...    of 16 columns of B
//!                                      \ the next k-step, or the next stage
//! ```
//!
//! The k of a fragment are assigned so that a lane's are neighbours, and its rows of A so that
//! each quarter of a warp reads from all 32 banks: [`in_a_tile`], [`in_b_tile`].
//!
//! It rounds as the CUDA cores do: each product is an IEEE FMA, though not in the order of k.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/WM + 1/WN); 128 KiB of stages a CTA
//! Block: 384 threads in 3 warpgroups, block tile 128 x 128 x 16, warp tile 32 x 64, 8 x 8 a
//! thread. For a small C, which needs more tiles: 256 threads in 2 warpgroups, 64 x 64 x 16 in
//! warp tiles of 32 x 32, and 32 x 64 x 16 in warp tiles of 16 x 32. Rows at multiples of 16
//! bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-specialized-fp64 --dtype f64 --m 1000 --n 776 --k 120
//! ```

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::mma;
use cuda_std::prelude::*;
use cuda_std::shared;
use cuda_std::tma::Swizzle;
use cuda_std::wgmma;

use crate::compat::grid_dependency;
use crate::kernel::kernel;
use crate::mapped_gemm::{MappedGemm, Pair};
use crate::raster::{self, Place};
use crate::warp_specialized::{Ring, WARPGROUP};

/// Rows of tiles in shared memory have 128 bytes, which a swizzle spreads over all banks.
const BK: usize = 16;
const ROW_BYTES: usize = 128;
/// Instructions along K for a stage: each multiplies 16 columns of B by 8 rows of A, over 8 k.
const STEPS_K: usize = BK / 8;
/// The bytes of a box: 16 columns of B.
const BOX_BYTES: usize = BK * ROW_BYTES;
/// Tiles of A, and of B, in the ring buffer.
const STAGES: usize = 4;

/// A CTA with this number of multiplying warps along M and N, and of instructions along M and N
/// that each needs for its tile.
struct Cta<const WARPS_M: usize, const WARPS_N: usize, const STEPS_M: usize, const STEPS_N: usize>;

/// 128 x 128, with two warps on each warp scheduler.
type Large = Cta<4, 2, 4, 4>;
/// 64 x 64 and 32 x 64, with one warp on each: an SM holds two such CTAs.
type Middle = Cta<2, 2, 4, 2>;
type Small = Cta<2, 2, 2, 2>;

impl<const WARPS_M: usize, const WARPS_N: usize, const STEPS_M: usize, const STEPS_N: usize>
    Cta<WARPS_M, WARPS_N, STEPS_M, STEPS_N>
{
    /// Warp tile.
    const WM: usize = 8 * STEPS_M;
    const WN: usize = 16 * STEPS_N;
    /// Block tile.
    const BM: usize = WARPS_M * Self::WM;
    const BN: usize = WARPS_N * Self::WN;
    const CONSUMERS: usize = WARPS_M * WARPS_N;
    const THREADS: usize = WARPGROUP + 32 * Self::CONSUMERS;
    /// Bytes of a stage: a tile of A and one of B.
    const A_BYTES: usize = Self::BM * ROW_BYTES;
    const STAGE_BYTES: usize = Self::A_BYTES + Self::BN / 16 * BOX_BYTES;
    const BYTES: usize = STAGES * Self::STAGE_BYTES;
    /// Whether the warps that multiply need registers from the producer.
    const WANTS_REGISTERS: bool = STEPS_M * STEPS_N == 16;

    /// The body. The barriers are in shared memory.
    #[inline(always)]
    unsafe fn multiply(
        gemm: MappedGemm<'_, f64, f64>,
        full: *mut Mbarrier,  // (STAGES)
        empty: *mut Mbarrier, // (STAGES)
    ) {
        let ring = shared::dynamic_shared_mem_aligned::<u8, 1024>();
        let thread = thread::thread_idx_x() as usize;
        if thread == 0 {
            for stage in 0..STAGES {
                mbarrier::init(full.add(stage), 1);
                mbarrier::init(empty.add(stage), Self::CONSUMERS as u32); // one arrival from each warp
            }
            mbarrier::fence_init();
        }
        thread::sync_threads(); // the barriers may be used
        grid_dependency::wait(); // for kernels that write A, B and C

        let (rows, cols) = (gemm.m.div_ceil(Self::BM), gemm.n.div_ceil(Self::BN));
        let mut tile = thread::block_idx_x() as usize;
        let ctas = thread::grid_dim_x() as usize;
        let iterations = gemm.depth().div_ceil(BK);
        if thread < WARPGROUP {
            if Self::WANTS_REGISTERS {
                wgmma::decrease_registers::<40>();
            }
            if thread == 0 {
                let mut at = Ring::PRODUCER;
                while tile < gemm.products() * rows * cols {
                    let Place { product, row, col } = raster::place(tile, rows, cols);
                    let (of_a, of_b) = (gemm.a_of(product), gemm.b_of(product));
                    let (row, col) = ((row * Self::BM) as u32, (col * Self::BN) as u32);
                    for iteration in 0..iterations {
                        let full = full.add(at.stage);
                        mbarrier::wait(empty.add(at.stage), at.parity); // the stage has been read
                        mbarrier::arrive_expect_tx(full, Self::STAGE_BYTES as u32);
                        let a_tile = ring.add(at.stage * Self::STAGE_BYTES); // (Self::BM, BK)
                        let b_tile = a_tile.add(Self::A_BYTES); // (Self::BN / 16, BK, 16)
                        let k = (iteration * BK) as u32;
                        of_a.load(a_tile, k, row, full);
                        for i in 0..Self::BN / 16 {
                            let of_box = b_tile.add(i * BOX_BYTES);
                            of_b.load(of_box, col + 16 * i as u32, k, full);
                        }
                        at.advance(STAGES);
                    }
                    tile += ctas;
                }
            }
            return;
        }

        if Self::WANTS_REGISTERS {
            wgmma::increase_registers::<232>();
        }
        let (warp, lane) = (thread / 32 - WARPGROUP / 32, thread % 32);
        let (warp_row, warp_col) = (warp / WARPS_N * Self::WM, warp % WARPS_N * Self::WN);
        let fragments = Fragments {
            a: [false, true].map(|is_upper| warp_row * ROW_BYTES + in_a_tile(lane, is_upper)),
            b: [false, true]
                .map(|is_odd| Self::A_BYTES + warp_col / 16 * BOX_BYTES + in_b_tile(lane, is_odd)),
        };
        let mut at = Ring::CONSUMER;
        while tile < gemm.products() * rows * cols {
            let mut sums = [[[0.0_f64; 4]; STEPS_M]; STEPS_N];
            if iterations > 0 {
                mbarrier::wait(full.add(at.stage), at.parity); // the first tiles have landed
                let mut stage = ring.add(at.stage * Self::STAGE_BYTES).cast_const();
                let mut a_frag = [[0.0; 2]; STEPS_M];
                for i in 0..STEPS_M {
                    a_frag[i] = fragments.of_a(stage, 0, i);
                }
                let mut b_frag = fragments.of_b(stage, 0, 0);
                for _ in 1..iterations {
                    let mut next = at;
                    next.advance(STAGES);
                    let next_stage = ring.add(next.stage * Self::STAGE_BYTES).cast_const();
                    fragments.multiply_stage(
                        &mut sums,
                        (&mut a_frag, &mut b_frag),
                        stage,
                        Some((next_stage, full.add(next.stage), next.parity)),
                    );
                    // The last instruction above uses the reads of all lanes, so they are done.
                    if lane == 0 {
                        mbarrier::arrive(empty.add(at.stage));
                    }
                    at = next;
                    stage = next_stage;
                }
                fragments.multiply_stage(&mut sums, (&mut a_frag, &mut b_frag), stage, None);
                if lane == 0 {
                    mbarrier::arrive(empty.add(at.stage));
                }
                at.advance(STAGES);
            }
            let Place { product, row, col } = raster::place(tile, rows, cols);
            Self::store(
                &gemm.of_product(product),
                &sums,
                row * Self::BM + warp_row,
                col * Self::BN + warp_col,
                lane,
            );
            tile += ctas;
        }
    }

    /// Stores a warp's sums: a lane has two neighbours of a row of C, and eight lanes have 16.
    #[inline(always)]
    unsafe fn store(
        gemm: &MappedGemm<'_, f64, f64>,
        sums: &[[[f64; 4]; STEPS_M]; STEPS_N],
        row: usize,
        col: usize,
        lane: usize,
    ) {
        let by_pairs =
            gemm.rows_are_aligned() && row + Self::WM <= gemm.m && col + Self::WN <= gemm.n;
        for j in 0..STEPS_N {
            for i in 0..STEPS_M {
                for half in 0..2 {
                    let row = row + 8 * i + a_row(2 * (lane % 4) + half);
                    let col = col + 16 * j + 2 * (lane / 4);
                    let two = [sums[j][i][half], sums[j][i][half + 2]];
                    if by_pairs {
                        gemm.update2(row, col, two);
                    } else {
                        gemm.update(row, col, two[0]);
                        gemm.update(row, col + 1, two[1]);
                    }
                }
            }
        }
    }
}

/// The row of A, among the 8 of an instruction, for its column `col`: the rows of two neighbours
/// are four apart.
#[inline(always)]
pub const fn a_row(col: usize) -> usize {
    col % 2 * 4 + col / 2
}

/// The offset of a lane's two elements of A, in bytes from the warp's first row: `k` and `k + 1`
/// of row `a_row(lane / 4)`, where `k` is `2 * (lane % 4)`, or 8 more if `is_upper`.
///
/// A quarter of a warp reads four pieces of 16 bytes of each of two rows. The swizzle depends on
/// the row, and rows four apart have these pieces in different halves:
///
/// ```text
///   row 0 | 0 1 2 3 | . . . . |     lanes 0 to 3 and 4 to 7 read the pieces 0 to 3 of rows 0 and 4
///   row 4 | . . . . | 0 1 2 3 |
/// ```
#[inline(always)]
pub const fn in_a_tile(lane: usize, is_upper: bool) -> usize {
    let piece = lane % 4 + if is_upper { 4 } else { 0 };
    Swizzle::Bytes128.place(a_row(lane / 4) * ROW_BYTES + piece * 16)
}

/// The offset of a lane's two elements of B, in bytes from a box: columns `2 * (lane / 4)` and the
/// next, at `k = 2 * (lane % 4)`, or one more if `is_odd`.
///
/// A quarter of a warp reads two neighbouring pieces of 16 bytes of each of four rows, all even or
/// all odd. The swizzle depends on the row:
///
/// ```text
///   k = 0 | 0 1 . . . . . . |     lanes 0 to 7 read the pieces 0 and 1
///   k = 2 | . . 0 1 . . . . |
///   k = 4 | . . . . 0 1 . . |
///   k = 6 | . . . . . . 0 1 |
/// ```
#[inline(always)]
pub const fn in_b_tile(lane: usize, is_odd: bool) -> usize {
    let k = lane % 4 * 2 + if is_odd { 1 } else { 0 };
    Swizzle::Bytes128.place(k * ROW_BYTES + lane / 4 * 16)
}

/// The offsets of a lane's fragments, in bytes from a stage.
struct Fragments {
    /// For the lower and the upper 8 k.
    a: [usize; 2],
    /// For even and odd k.
    b: [usize; 2],
}

impl Fragments {
    /// The fragment of the 8 rows `i` of A at a k-step.
    #[inline(always)]
    unsafe fn of_a(&self, stage: *const u8, step: usize, i: usize) -> [f64; 2] {
        Pair::read(stage.add(self.a[step] + i * 8 * ROW_BYTES).cast())
    }

    /// The fragments of the 16 columns `i` of B at a k-step: the even and the odd k.
    #[inline(always)]
    unsafe fn of_b(&self, stage: *const u8, step: usize, i: usize) -> [[f64; 2]; 2] {
        let mut slices = [[0.0; 2]; 2];
        for odd in 0..2 {
            let at = self.b[odd] + step * 8 * ROW_BYTES + i * BOX_BYTES;
            slices[odd] = Pair::read(stage.add(at).cast());
        }
        slices
    }

    /// Adds the products of a stage to the sums. The fragments hold its first k-step before, and
    /// the first k-step of the next stage after, which this waits for, if there is one.
    #[inline(always)]
    unsafe fn multiply_stage<const STEPS_M: usize, const STEPS_N: usize>(
        &self,
        sums: &mut [[[f64; 4]; STEPS_M]; STEPS_N],
        (a_frag, b_frag): (&mut [[f64; 2]; STEPS_M], &mut [[f64; 2]; 2]),
        stage: *const u8,
        next: Option<(*const u8, *mut Mbarrier, u32)>,
    ) {
        for step in 0..STEPS_K {
            for j in 0..STEPS_N {
                let is_last = step == STEPS_K - 1 && j == STEPS_N - 1;
                // The stage and k-step of the fragments that are needed next.
                let (next_stage, next_step) = match next {
                    Some((next_stage, full, parity)) if is_last => {
                        mbarrier::wait(full, parity); // its tiles have landed
                        (next_stage, 0)
                    }
                    _ => (stage, step + 1),
                };
                let has_next = !is_last || next.is_some();
                let b = *b_frag;
                if has_next {
                    *b_frag = match j == STEPS_N - 1 {
                        true => self.of_b(next_stage, next_step, 0),
                        false => self.of_b(stage, step, j + 1),
                    };
                }
                let b = [b[0][0], b[0][1], b[1][0], b[1][1]];
                for i in 0..STEPS_M {
                    sums[j][i] = mma::m16n8k8_f64(b, a_frag[i], sums[j][i]);
                    if has_next && j == STEPS_N - 1 {
                        a_frag[i] = self.of_a(next_stage, next_step, i);
                    }
                }
            }
        }
    }
}

/// The variants: names, CTAs, CTAs on an SM, and rates.
macro_rules! variants {
    ($($name:literal $entry:ident $cta:ident launch_bounds($ctas:literal) $rate:expr;)*) => {
        kernel! {
            name: "warp-specialized-fp64",
            idea: "warp specialisation for 64 bits: fragments are read while others are multiplied",
            variants: [
                $(
                    $name = fn $entry(gemm: f64; mapped)
                        block($cta::THREADS, 1) tile($cta::BM, $cta::BN, BK)
                        shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
                        launch_bounds($ctas)
                        {
                            unit: Unit::TensorCores {
                                warp_tile: ($cta::WM as u32, $cta::WN as u32),
                            },
                            thread_tile: ($cta::WM as u32 / 4, $cta::WN as u32 / 8),
                            staging: Staging::Ring { bytes: $cta::BYTES as u32 },
                            rate: Some($rate),
                        }
                        => $cta::multiply(gemm, full, empty);
                )*
            ],
        }
    };
}

variants! {
    "warp-specialized-fp64" warp_specialized_fp64 Large
        launch_bounds(1) Rate::h200(62.0, 1.0, 1);
    "warp-specialized-fp64-64x64" warp_specialized_fp64_64x64 Middle
        launch_bounds(2) Rate::h200(54.0, 0.7, 2);
    "warp-specialized-fp64-32x64" warp_specialized_fp64_32x64 Small
        launch_bounds(2) Rate::h200(52.0, 0.14, 2);
}
