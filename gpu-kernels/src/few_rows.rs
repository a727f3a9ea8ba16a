//! Few rows: B passes through registers once, on its way from memory, and nothing of it is kept.
//!
//! A C of a single row uses each element of B once. Nothing can be reused, so shared memory would
//! only be a detour: this kernel is memory-bound, and what counts is bytes in flight. A thread
//! reads B by 16 bytes, several such vectors before it multiplies the first. Vectors are along the
//! rows of B as it is stored, so there are two ways:
//!
//! ```text
//!   B is k x n: MN-major                      B is n x k: K-major
//!
//!        n ->                                      k ->
//!     k  [lane 0][lane 1] .. [lane 31]          n  [lane 0][lane 1] .. [lane 31]  column 0
//!     |  [lane 0][lane 1] .. [lane 31]          |  [lane 0][lane 1] .. [lane 31]  column 1
//!     v  ..                                     v  ..
//!     a lane has the sums of its columns        a lane has a part of the sums of all columns
//! ```
//!
//! - MN-major: a thread computes TN neighbouring columns of all BM rows. An element of A is the
//!   same for all lanes of a warp that read the same row of B: one load, which a cache serves.
//!   Those lanes take a k-slice, and the sums of all slices of a block are added in shared memory,
//!   in the order of their numbers. So a block has much of B in flight, but leaves only one partial
//!   sum of each element.
//! - K-major: a warp computes WN columns of all BM rows, and its lanes divide k. A vector of A
//!   serves WN of B. At the end of a segment lanes exchange their sums.
//! - On tensor cores, in f64 and 16 bits, eight or sixteen rows of A cost little more than one:
//!   vectors of either kind are what an instruction multiplies, with a few halves put together.
//! - Blocks divide the k-iterations (`stream_k.rs`), and `fix_up` adds what they leave. That costs
//!   4 us, a seventh of a product of 117 MB: so there are tiles of 32, 64 and 128 columns, one of
//!   which mostly fills a GPU with whole tiles.
//! - It begins before the kernel in front of it has ended, and has divided its work by then.
//! - Few columns are few rows of the transposed product, `C^T = B^T * A^T`: then B is what the
//!   caller names A, and neighbours in a row of C are `column_stride` elements apart.
//!
//! Numbers of 16 bits are half the bytes, so half the time. They become f32 in registers, where
//! their products are exact.
//!
//! A comes from the L1, to which it comes from the L2 once a block tile: of each byte of B that is
//! BM / WN bytes from the L1 and BM / BN from the L2, two and a quarter at most. Memory gives an SM
//! 18 bytes a clock, the L1 128. So A is not staged in shared memory, which would take a barrier
//! for each part of it.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/TN), K-major M*N*K * (1/BM + 1/WN). B comes from memory,
//! A from caches: all that memory moves is K*N of B.
//! Shared-memory reads: one of each slice's sums, once a tile
//! Block: 256 or 512 threads, block tile BM x BN, BM 1 to 16, BN 32 to 128. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel few-rows --m 1 --n 2112 --k 7168
//! ```
mod along_k;
mod along_n;
mod along_n_on_tensor_cores;
mod on_tensor_cores;
mod vector;

use cuda_std::prelude::*;

use self::along_k::AlongK;
use self::along_n::AlongN;
use self::along_n_on_tensor_cores::AlongNOnTensorCores;
use self::on_tensor_cores::OnTensorCores;
use self::vector::{Double2, Half8, Vector};
use crate::compat::grid_dependency;
use crate::element::Element;
use crate::epilogue::Epilogue;
use crate::fix_up::{update4, Sink};
use crate::fix_up_half::sink;
use crate::float4::Float4;
use crate::gemm::Gemm;
use crate::half::{Bf16, F16};
use crate::kernel::kernel;
use crate::spec::{OperandLayout, Unit};
use crate::stream_k::StreamK;

/// Lanes of a warp.
const LANES: usize = 32;

/// A way of reading B, and what it makes of a segment: the sums of each k-slice.
trait Way<V: Vector, const BM: usize, const BN: usize> {
    /// Depth of a k-iteration.
    const BK: usize;
    /// K-slices whose sums are added in shared memory.
    const SLICES: usize;
    const A: OperandLayout;
    const B: OperandLayout;
    const UNIT: Unit;

    /// The sums of a thread.
    type Sums;

    /// Those over the part `k = (from, to)` of K, for the tile at `(row, col)`.
    unsafe fn multiply<C, E: Copy>(
        gemm: &Gemm<'_, V::Element, C, V::Sum, E>,
        tile: (usize, usize),
        k: (usize, usize),
    ) -> Self::Sums;

    /// Puts them where those of other threads are added.
    unsafe fn write(sums: Self::Sums, slice_sums: *mut V::Sum);
}

/// The body of every variant.
#[inline(always)]
unsafe fn multiply<
    W: Way<V, BM, BN>,
    V: Vector,
    C,
    S: Sink<Sum = V::Sum>,
    const BM: usize,
    const BN: usize,
>(
    gemm: Gemm<'_, V::Element, C, V::Sum, impl Epilogue<V::Sum>>,
    c: S,
    slice_sums: *mut V::Sum, // (SLICES, BM, BN), in shared memory
) {
    let thread = thread::thread_idx_x() as usize;
    let depth = gemm.depth();
    let block_x = thread::block_idx_x() as usize;
    let (stream_k, mut work) = StreamK::of_launch((gemm.m, gemm.n, depth), (BM, BN, W::BK));
    let mut workspace_tile = 2 * block_x;
    grid_dependency::wait(); // for whatever writes A, B and C, and for who reads the partial sums
    grid_dependency::launch_dependents(); // `fix_up` may start on SMs that become free
    while work.begin < work.end {
        let segment = stream_k.segment(work);
        let (tile_row, tile_col) = stream_k.tile_position(segment.tile);
        let (tile_row, tile_col) = (tile_row * BM, tile_col * BN);
        let from = segment.from * W::BK;
        let to = if segment.to * W::BK < depth {
            segment.to * W::BK
        } else {
            depth
        };
        let sums = W::multiply(&gemm, (tile_row, tile_col), (from, to));

        thread::sync_threads(); // every thread has finished reading the sums of the segment before
        W::write(sums, slice_sums);
        thread::sync_threads(); // the sums of all slices are there

        // A thread adds four columns of a row.
        if thread < BM * BN / 4 {
            let mut sums = [V::Sum::ZERO; 4];
            for slice in 0..W::SLICES {
                let float4 = Float4::read(slice_sums.add(slice * BM * BN + 4 * thread));
                for j in 0..4 {
                    sums[j] = sums[j].plus(float4.0[j]);
                }
            }
            let (row, col) = (tile_row + 4 * thread / BN, tile_col + 4 * thread % BN);
            if row < gemm.m && !stream_k.covers_tile(segment) {
                Float4(sums).write(gemm.partials.add(workspace_tile * BM * BN + 4 * thread));
            } else if row < gemm.m && col < gemm.n {
                update4(&gemm, &c, (row, col), Float4(sums));
            }
        }
        work.begin += segment.to - segment.from;
        workspace_tile = 2 * block_x + 1;
    }
}

/// The warp and the lane of a thread.
#[inline(always)]
fn warp_and_lane() -> (usize, usize) {
    let thread = thread::thread_idx_x() as usize;
    (thread / LANES, thread % LANES)
}

/// `index`, or the last one: what is read there in place of what does not exist is not used.
#[inline(always)]
fn last_or(index: usize, count: usize) -> usize {
    if index < count {
        index
    } else {
        count - 1
    }
}

/// Writes the kernel: of each variant how it reads B and its launch, and a line for each type of A,
/// B and C.
macro_rules! few_rows {
    ($(
        $name:literal $way:ty, threads($threads:literal) tile($bm:literal, $bn:literal)
            thread_tile($tm:literal, $tn:literal) launch_bounds($ctas:literal) $rate:expr;
            $($entry:ident ($($types:tt)+) $vector:ty, $output:ident;)+
    )*) => {
        kernel! {
            name: "few-rows",
            idea: "for a C of few rows: each element of B is read once, straight into registers",
            epilogue: any,
            variants: [$($(
                $name = fn $entry(gemm: $($types)+)
                    block($threads, 1)
                    tile($bm, $bn, <$way as Way<$vector, $bm, $bn>>::BK)
                    shared(slice_sums: [
                        <$vector as Vector>::Sum;
                        <$way as Way<$vector, $bm, $bn>>::SLICES * $bm * $bn
                    ])
                    launch_bounds($ctas)
                    {
                        unit: <$way as Way<$vector, $bm, $bn>>::UNIT,
                        thread_tile: ($tm, $tn),
                        least_capability: 80,
                        k_slices: $tm * $tn * $threads / ($bm * $bn),
                        grid: Grid::StreamK,
                        staging: Staging::None,
                        a: <$way as Way<$vector, $bm, $bn>>::A,
                        b: <$way as Way<$vector, $bm, $bn>>::B,
                        gemv_like: true,
                        rate: Some($rate),
                    }
                    => multiply::<$way, $vector, _, _, $bm, $bn>(
                        gemm, sink!($output)(&gemm), slice_sums,
                    );
            )+)*],
        }
    };
}

// Memory limits a single row of tiles. So the rates are fitted to two rows of tiles (4096 x 1 to
// 16 x 4096, H200), or guessed from the bytes of B in flight; those of f64 on tensor cores to one
// CTA on each SM and two (8 and 16 x 7168 x 8192). In 16 bits, tiles of 32 columns would
// have 128 k-slices: 38 us for 1 x 24576 x 1536, where tiles of 64 columns take 21 (H200).
few_rows! {
    "few-rows-1" AlongN<4, 8, 8>, threads(256) tile(1, 128)
        thread_tile(1, 4) launch_bounds(2) Rate::h200(3.2, 0.3, 2);
        few_rows_1 (f32) Float4, f32;
    "few-rows-1x64" AlongN<4, 8, 16>, threads(256) tile(1, 64)
        thread_tile(1, 4) launch_bounds(3) Rate::h200(3.2, 0.3, 3);
        few_rows_1x64 (f32) Float4, f32;
    "few-rows-1x32" AlongN<4, 8, 64>, threads(512) tile(1, 32)
        thread_tile(1, 4) launch_bounds(1) Rate::h200(3.2, 0.3, 1);
        few_rows_1x32 (f32) Float4, f32;
    "few-rows-4" AlongN<4, 8, 8>, threads(256) tile(4, 128)
        thread_tile(4, 4) launch_bounds(2) Rate::h200(12.0, 0.3, 2);
        few_rows_4 (f32) Float4, f32;
    "few-rows-4x64" AlongN<4, 4, 16>, threads(256) tile(4, 64)
        thread_tile(4, 4) launch_bounds(3) Rate::h200(12.0, 0.3, 3);
        few_rows_4x64 (f32) Float4, f32;
    "few-rows-4x32" AlongN<4, 8, 64>, threads(512) tile(4, 32)
        thread_tile(4, 4) launch_bounds(1) Rate::h200(9.0, 0.3, 1);
        few_rows_4x32 (f32) Float4, f32;
    "few-rows-1" AlongN<8, 8, 16>, threads(256) tile(1, 128)
        thread_tile(1, 8) launch_bounds(2) Rate::h200(6.4, 0.3, 2);
        few_rows_1_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_1_f16 (f16) Half8<F16>, F16;
        few_rows_1_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_1_f16_f32 (f16 -> f32) Half8<F16>, f32;
    "few-rows-1x64" AlongN<8, 8, 32>, threads(256) tile(1, 64)
        thread_tile(1, 8) launch_bounds(3) Rate::h200(6.4, 0.3, 3);
        few_rows_1x64_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_1x64_f16 (f16) Half8<F16>, F16;
        few_rows_1x64_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_1x64_f16_f32 (f16 -> f32) Half8<F16>, f32;
    "few-rows-1x32" AlongN<2, 8, 32>, threads(512) tile(1, 32)
        thread_tile(1, 2) launch_bounds(1) Rate::h200(1.6, 0.3, 1);
        few_rows_1x32_f64 (f64) Double2, f64;
    "few-rows-8" AlongNOnTensorCores<1, 8, 8>, threads(256) tile(8, 64)
        thread_tile(2, 8) launch_bounds(2) Rate::h200(48.0, 0.3, 2);
        few_rows_8_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_8_f16 (f16) Half8<F16>, F16;
        few_rows_8_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_8_f16_f32 (f16 -> f32) Half8<F16>, f32;
    "few-rows-16" AlongNOnTensorCores<2, 8, 8>, threads(256) tile(16, 64)
        thread_tile(4, 8) launch_bounds(2) Rate::h200(80.0, 0.3, 2);
        few_rows_16_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_16_f16 (f16) Half8<F16>, F16;
        few_rows_16_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_16_f16_f32 (f16 -> f32) Half8<F16>, f32;
    "few-rows-8" AlongNOnTensorCores<1, 8, 2>, threads(256) tile(8, 64)
        thread_tile(2, 2) launch_bounds(2) Rate::h200(9.0, 0.8, 2);
        few_rows_8_f64 (f64) Double2, f64;
    "few-rows-16" AlongNOnTensorCores<2, 8, 4>, threads(256) tile(16, 32)
        thread_tile(4, 2) launch_bounds(2) Rate::h200(17.0, 0.7, 2);
        few_rows_16_f64 (f64) Double2, f64;
    "few-rows-1-nt" AlongK<4>, threads(256) tile(1, 32)
        thread_tile(1, 4) launch_bounds(2) Rate::h200(4.4, 0.1, 2);
        few_rows_1_nt (f32) Float4, f32;
    "few-rows-8-nt" AlongK<4>, threads(256) tile(8, 32)
        thread_tile(8, 4) launch_bounds(1) Rate::h200(15.0, 0.3, 1);
        few_rows_8_nt (f32) Float4, f32;
    "few-rows-1-nt" AlongK<4>, threads(256) tile(1, 32)
        thread_tile(1, 4) launch_bounds(2) Rate::h200(2.2, 0.1, 2);
        few_rows_1_nt_f64 (f64) Double2, f64;
    "few-rows-8-nt" OnTensorCores<1, 4, 4>, threads(256) tile(8, 32)
        thread_tile(2, 2) launch_bounds(2) Rate::h200(9.0, 0.8, 2);
        few_rows_8_nt_f64 (f64) Double2, f64;
    "few-rows-16-nt" OnTensorCores<2, 4, 4>, threads(256) tile(16, 32)
        thread_tile(4, 2) launch_bounds(2) Rate::h200(17.0, 0.7, 2);
        few_rows_16_nt_f64 (f64) Double2, f64;
    "few-rows-16-nt" OnTensorCores<2, 4, 4>, threads(256) tile(16, 32)
        thread_tile(4, 2) launch_bounds(2) Rate::h200(80.0, 0.3, 2);
        few_rows_16_nt_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_16_nt_f16 (f16) Half8<F16>, F16;
        few_rows_16_nt_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_16_nt_f16_f32 (f16 -> f32) Half8<F16>, f32;
    "few-rows-8-nt" OnTensorCores<1, 4, 4>, threads(256) tile(8, 32)
        thread_tile(2, 2) launch_bounds(2) Rate::h200(48.0, 0.3, 2);
        few_rows_8_nt_bf16 (bf16) Half8<Bf16>, Bf16;
        few_rows_8_nt_f16 (f16) Half8<F16>, F16;
        few_rows_8_nt_bf16_f32 (bf16 -> f32) Half8<Bf16>, f32;
        few_rows_8_nt_f16_f32 (f16 -> f32) Half8<F16>, f32;
}
