//! Tensor cores for bf16 and f16, with sums in f32: operands of any layout, and stream-K.
//!
//! Over `async-pipeline`:
//! - a warp, not a thread, multiplies: one instruction takes fragments of 16 x 16 elements of A and
//!   16 x 8 of B from the registers of its 32 lanes. Products are exact. Only C is rounded;
//! - `ldmatrix` loads a fragment of A, or two of B, with one instruction, and can transpose them on
//!   the way to registers. So A and B may be K-major or MN-major, and neither is copied if its rows
//!   begin at multiples of 16 bytes;
//! - CTAs divide the k-iterations (`stream_k.rs`), so a small C occupies the GPU as well.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/WM + 1/WN); 3 * 2 * BK * (BM + BN) bytes a CTA, the limit for
//! static arrays
//! Block: 128 threads in 2 x 2 warps, block tile 128 x 128 x 32, warp tile 64 x 64, 8 x 16 a
//! thread. Any M, N, K. Since compute capability 8.0.
//!
//! ```sh
//! cargo run -p host -- --kernel tensor-core --dtype bf16 --m 1000 --n 776 --k 120
//! ```

use core::marker::PhantomData;

use cuda_std::mma::{self, Layout};
use cuda_std::prelude::*;
use cuda_std::warp::warp_shuffle_xor;

use crate::compat::{grid_dependency, pipeline};
use crate::epilogue::Epilogue;
use crate::fix_up::Sink;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::half::Half;
use crate::raster;
use crate::stream_k::StreamK;

/// The block tile is square, so that tiles of A and of B have the same size.
pub(crate) const BM: usize = 128;
pub(crate) const BN: usize = BM;
pub(crate) const BK: usize = 32;
/// Warp tile.
pub(crate) const WM: usize = 64;
pub(crate) const WN: usize = 64;
/// Warps of a CTA along N.
const WARPS_N: usize = BN / WN;
pub(crate) const THREADS: usize = 32 * (BM / WM) * WARPS_N;
/// The fragments of one instruction.
const FRAGMENTS: Layout = Layout::M16N8K16_HALF;
/// Instructions along M, N and K that a warp needs for a tile.
pub(crate) const STEPS_M: usize = WM / 16;
pub(crate) const STEPS_N: usize = WN / 8;
const STEPS_K: usize = BK / 16;
/// Elements of a tile of A or B, and the copies of 16 bytes that a thread issues for one.
const TILE: usize = BM * BK;
const COPIES: usize = TILE / PIECE / THREADS;
/// Stages of the ring buffer, and elements of all: a stage is a tile of A and one of B.
const STAGES: usize = 3;
pub(crate) const ELEMENTS: usize = STAGES * 2 * TILE;
/// Elements of 16 bytes, which are copied, swizzled and read together.
const PIECE: usize = 8;

/// A tile of A or B in shared memory, with rows in the direction of the stored operand.
pub trait Tile {
    /// Elements of a row.
    const WIDTH: usize;
    /// The rows and columns of the stored operand from one k-iteration to the next.
    const NEXT: (usize, usize);

    /// The row and column in the stored operand.
    fn stored(mn: usize, k: usize) -> (usize, usize);

    /// The offset of the first element of a row's piece.
    fn place(row: usize, piece: usize) -> usize;

    /// Loads four matrices of 8 x 8. The lane addresses one row, as stored: row `lane % 8` of the
    /// matrix at `(mn, k)` of the tile. A register holds two neighbours along K.
    ///
    /// # Safety
    ///
    /// All lanes of a warp call it together. The tile is complete.
    unsafe fn load(tile: *const u16, lane: usize, mn: usize, k: usize) -> [u32; 4];
}

/// Rows of 32 elements along K: four pieces, half of all banks. Their order changes with every
/// second row, so that the eight rows that `ldmatrix` reads at once are in different banks.
///
/// ```text
///   row 0   | k 0 ..  7 | k 8 .. 15 | k 16 .. 23 | k 24 .. 31 |    banks  0 .. 15
///   row 1   | k 0 ..  7 | k 8 .. 15 | k 16 .. 23 | k 24 .. 31 |          16 .. 31
///   row 2   | k 8 .. 15 | k 0 ..  7 | k 24 .. 31 | k 16 .. 23 |           0 .. 15
///   row 4   | k 16 .. 23 | k 24 .. 31 | k 0 ..  7 | k 8 .. 15 |           0 .. 15
///   row 6   | k 24 .. 31 | k 16 .. 23 | k 8 .. 15 | k 0 ..  7 |           0 .. 15
///   row 8 as row 0 ...
/// ```
pub struct KMajor;

impl Tile for KMajor {
    const WIDTH: usize = BK;
    const NEXT: (usize, usize) = (0, BK);

    #[inline(always)]
    fn stored(mn: usize, k: usize) -> (usize, usize) {
        (mn, k)
    }

    #[inline(always)]
    fn place(row: usize, piece: usize) -> usize {
        row * BK + (piece ^ (row / 2 % 4)) * PIECE
    }

    #[inline(always)]
    unsafe fn load(tile: *const u16, lane: usize, mn: usize, k: usize) -> [u32; 4] {
        mma::ldmatrix_x4(tile.add(Self::place(mn + lane % 8, k / PIECE)))
    }
}

/// Rows of 128 elements along M or N: 16 pieces, twice all banks. Each of eight rows has its
/// pieces in another order, so that the same piece of all eight rows is in different banks.
///
/// ```text
///   k 0   | piece 0 | piece 1 | piece 2 | piece 3 | ... | piece 7 | piece 8 ...
///   k 1   | piece 1 | piece 0 | piece 3 | piece 2 | ... | piece 6 | piece 9 ...
///   k 2   | piece 2 | piece 3 | piece 0 | piece 1 | ... | piece 5 | piece 10 ...
///   ...
///   k 7   | piece 7 | piece 6 | piece 5 | piece 4 | ... | piece 0 | piece 15 ...
///   k 8 as k 0 ...
/// ```
pub struct MnMajor;

impl Tile for MnMajor {
    const WIDTH: usize = BM;
    const NEXT: (usize, usize) = (BK, 0);

    #[inline(always)]
    fn stored(mn: usize, k: usize) -> (usize, usize) {
        (k, mn)
    }

    #[inline(always)]
    fn place(row: usize, piece: usize) -> usize {
        row * BM + (piece ^ (row % 8)) * PIECE
    }

    #[inline(always)]
    unsafe fn load(tile: *const u16, lane: usize, mn: usize, k: usize) -> [u32; 4] {
        mma::ldmatrix_x4_trans(tile.add(Self::place(k + lane % 8, mn / PIECE)))
    }
}

/// A thread's copies of an operand: every THREADS-th piece of a tile.
struct Loader<T> {
    /// The thread's first piece of the next tile.
    source: *const u16,
    leading: usize,
    /// The row and column of the next tile in the stored operand, and the operand's size.
    row: usize,
    col: usize,
    rows: usize,
    cols: usize,
    /// The place of the thread's first piece in a tile.
    row_in_tile: usize,
    piece: usize,
    tile: PhantomData<T>,
}

impl<T: Tile> Loader<T> {
    /// The rows from one piece of a thread to the next.
    const APART: usize = THREADS * PIECE / T::WIDTH;

    /// A loader of the tiles from `(mn, k)` on, for an operand of this size.
    #[inline(always)]
    fn new(
        operand: &[u16],
        leading: usize,
        size: (usize, usize),
        (mn, k): (usize, usize),
        thread: usize,
    ) -> Self {
        let pieces = T::WIDTH / PIECE;
        let (row_in_tile, piece) = (thread / pieces, thread % pieces);
        let (row, col) = T::stored(mn, k);
        let (rows, cols) = T::stored(size.0, size.1);
        let first = (row + row_in_tile) * leading + col + piece * PIECE;
        Loader {
            source: operand.as_ptr().wrapping_add(first),
            leading,
            row,
            col,
            rows,
            cols,
            row_in_tile,
            piece,
            tile: PhantomData,
        }
    }

    /// Starts to copy the next tile to `target`, with zeros beyond the operand.
    ///
    /// # Safety
    ///
    /// `target` is a tile that no thread reads; rows of the operand begin at multiples of 16 bytes.
    #[inline(always)]
    unsafe fn copy(&mut self, target: *mut u16) {
        let piece = |i: usize| {
            let down = i * Self::APART;
            let place = T::place(self.row_in_tile + down, self.piece);
            let source = self.source.wrapping_add(down * self.leading);
            (target.add(place).cast::<Float4>(), source.cast(), down)
        };
        // Most tiles are exact, and need fewer instructions.
        if self.row + TILE / T::WIDTH <= self.rows && self.col + T::WIDTH <= self.cols {
            for i in 0..COPIES {
                let (target, source, _) = piece(i);
                pipeline::memcpy_async(target, source);
            }
        } else {
            let of_row = bytes_in_bounds(self.col + self.piece * PIECE, self.cols);
            for i in 0..COPIES {
                let (target, source, down) = piece(i);
                let is_row = self.row + self.row_in_tile + down < self.rows;
                pipeline::memcpy_async_zfill(target, source, if is_row { of_row } else { 0 });
            }
        }
        let (rows, cols) = T::NEXT;
        self.row += rows;
        self.col += cols;
        self.source = self.source.wrapping_add(rows * self.leading + cols);
    }
}

/// The bytes of the piece at `start` that are before `end`.
#[inline(always)]
fn bytes_in_bounds(start: usize, end: usize) -> u32 {
    let elements = end.saturating_sub(start);
    if elements < PIECE {
        2 * elements as u32
    } else {
        16
    }
}

/// The body of all variants. The stages are in shared memory.
#[inline(always)]
pub(crate) unsafe fn multiply<T: Half, A: Tile, B: Tile, C>(
    gemm: Gemm<'_, u16, C, f32, impl Epilogue>,
    c: impl Sink<Sum = f32>,
    stages: *mut u16, // (STAGES, A and B, TILE)
) {
    const {
        assert!(BM == BN, "tiles of A and B have one size");
        assert!(COPIES * PIECE * THREADS == TILE, "tiles split evenly");
        assert!(BK == STEPS_K * FRAGMENTS.depth as usize, "full fragments");
        assert!(
            WM == 16 * STEPS_M && WN == 8 * STEPS_N,
            "full fragments too"
        );
        assert!(STEPS_N.is_multiple_of(2), "two fragments of B at a time");
        assert!(STAGES >= 2, "one stage is read, the others arrive");
    }
    if cfg!(all(cuda_device, not(cuda_arch_at_least = "80"))) {
        T::multiply_8([0; 4], [0; 2], [0.0; 4]); // a trap: no launch runs this there
        return;
    }
    grid_dependency::wait(); // for copies of A and B
    grid_dependency::launch_dependents(); // `fix_up` may start on SMs that become free

    // The first row and column of this thread's warp in the block tile.
    let thread = thread::thread_idx_x() as usize;
    let (warp, lane) = (thread / 32, thread % 32);
    let (row, col) = (warp / WARPS_N * WM, warp % WARPS_N * WN);
    // The 8 x 8 matrix, among 16 x 16, in which the lane addresses a row for `ldmatrix`: in A the
    // second is below the first, in B it is further along K, like the registers of a fragment.
    let (second, third) = (lane / 8 % 2 * 8, lane / 16 * 8);
    let (a_row, a_k) = (row + second, third);
    let (b_col, b_k) = (col + third, second);

    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (stream_k, mut work) = StreamK::of_launch((gemm.m, gemm.n, depth), (BM, BN, BK));
    let mut workspace_tile = 2 * block_x;
    while work.begin < work.end {
        let segment = stream_k.segment(work);
        let (tile_row, tile_col) = stream_k.tile_position(segment.tile);
        let (tile_row, tile_col) = (tile_row * BM, tile_col * BN);
        let k0 = segment.from * BK;
        // With depth 0, a tile still has an iteration, in which nothing is read.
        let iterations = match depth {
            0 => 0,
            _ => segment.to - segment.from,
        };
        let (of_a, of_b) = ((gemm.m, depth), (gemm.n, depth));
        let mut a = Loader::<A>::new(gemm.a, gemm.lda, of_a, (tile_row, k0), thread);
        let mut b = Loader::<B>::new(gemm.b, gemm.ldb, of_b, (tile_col, k0), thread);
        let mut copy = |stage: usize| {
            a.copy(stages.add(stage * 2 * TILE));
            b.copy(stages.add((stage * 2 + 1) * TILE));
        };

        let mut accumulators = [[[0.0f32; 4]; STEPS_N]; STEPS_M];
        thread::sync_threads(); // every thread has finished reading the previous segment
        for stage in 0..STAGES - 1 {
            if stage < iterations {
                copy(stage);
            }
            pipeline::commit();
        }
        let mut stage = 0;
        for iteration in 0..iterations {
            pipeline::wait_prior::<{ STAGES as u32 - 2 }>();
            // This stage is complete, and every thread has finished reading the previous one.
            thread::sync_threads();
            if iteration + STAGES - 1 < iterations {
                copy(if stage == 0 { STAGES - 1 } else { stage - 1 });
            }
            pipeline::commit();

            let a_tile = stages.add(stage * 2 * TILE).cast_const();
            let b_tile = a_tile.add(TILE);
            for step in 0..STEPS_K {
                let mut a_frag = [[0; 4]; STEPS_M];
                let mut b_frag = [[0; 2]; STEPS_N];
                for i in 0..STEPS_M {
                    a_frag[i] = A::load(a_tile, lane, a_row + 16 * i, a_k + 16 * step);
                }
                for j in 0..STEPS_N / 2 {
                    let [p, q, r, s] = B::load(b_tile, lane, b_col + 16 * j, b_k + 16 * step);
                    b_frag[2 * j] = [p, q];
                    b_frag[2 * j + 1] = [r, s];
                }
                for i in 0..STEPS_M {
                    for index in 0..STEPS_N {
                        let j = raster::serpentine(i, index, STEPS_N);
                        accumulators[i][j] =
                            T::multiply_8(a_frag[i], b_frag[j], accumulators[i][j]);
                    }
                }
            }
            stage = if stage == STAGES - 1 { 0 } else { stage + 1 };
        }

        let partial = gemm.partials.wrapping_add(workspace_tile * BM * BN); // (BM, BN)
        for i in 0..STEPS_M {
            for j in 0..STEPS_N {
                let (m, n, sums) = four_of_a_row(lane as u32, accumulators[i][j]);
                let (row, col) = (row + 16 * i + m, col + 8 * j + n);
                let in_bounds = tile_row + row < gemm.m;
                if in_bounds && stream_k.covers_tile(segment) {
                    c.update4(tile_row + row, tile_col + col, sums);
                } else if in_bounds {
                    sums.write(partial.add(row * BN + col));
                }
            }
        }
        work.begin += segment.to - segment.from;
        workspace_tile = 2 * block_x + 1;
    }
}

/// In 16 x 8 sums a lane has two neighbours in each of two rows. Two lanes exchange sums, so that
/// each has four neighbours in one row. Returns their first row and column, and the sums.
///
/// ```text
///              col 0 1    col 2 3                    col 0 1 2 3
///   row 0      lane 0     lane 1         row 0       lane 0
///   row 8      lane 0     lane 1         row 8       lane 1
/// ```
#[inline(always)]
unsafe fn four_of_a_row(lane: u32, sums: [f32; 4]) -> (usize, usize, Float4) {
    let [p, q, r, s] = sums;
    let is_odd = lane % 2 == 1;
    let (give, keep) = if is_odd {
        ([p, q], [r, s])
    } else {
        ([r, s], [p, q])
    };
    let exchanged = [
        warp_shuffle_xor(!0, give[0], 1, 32).0,
        warp_shuffle_xor(!0, give[1], 1, 32).0,
    ];
    let (left, right) = if is_odd {
        (exchanged, keep)
    } else {
        (keep, exchanged)
    };
    // The even lane's first sum, the odd lane's third.
    let (row, col) = FRAGMENTS.c(lane, if is_odd { 2 } else { 0 });
    let four = Float4([left[0], left[1], right[0], right[1]]);
    (row as usize, (col / 4 * 4) as usize, four)
}
