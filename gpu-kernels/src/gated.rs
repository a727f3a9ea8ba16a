//! A gated unit: A times two matrices, and one matrix made of both products, in one launch.
//!
//! Over `warp-specialized`, for the feed-forward layer of most language models, `C = silu(A * B1) *
//! (A * B2)`, a SwiGLU. Two products and a kernel that multiplies them element by element write and
//! read both of them once more. Here a tile of B has columns of both matrices, so that a thread has
//! the sums of both at the same places of C, and half as many to store:
//!
//! ```text
//!                  128 columns of B1    the same 128 of B2
//!   128 rows of A | 64 sums a thread  |  64 sums a thread |  --->  64 elements of C a thread
//! ```
//!
//! The copy engine counts the two matrices as a batch, wherever the second begins: B1 above B2, in
//! one matrix of 2 * n rows, as checkpoints have `gate_up_proj`, or beside each other.
//!
//! Global-memory reads: M*N*K * (2/BM + 1/BN), for C of M x N
//! Shared-memory reads: 2*M*N*K * (1/64 + 1/(2*BN)), by the tensor cores
//! Block: 384 threads in 3 warpgroups, block tile of C 128 x 128 x 64; or 256 threads in 2, block
//! tile 64 x 64 x 64, for few rows. A row-major, B in either layout, rows of both at multiples of
//! 16 bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! It is no rung: without a gate ([`Epilogue::gate`]) it computes nothing, and
//! `gpu_gemm::gemm_gated` launches it.

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

/// The body. The barriers are in shared memory. A thread has `SUMS` sums, and `ELEMENTS` of C.
#[inline(always)]
unsafe fn multiply<
    T: Half + Wgmma<KMajor, B, Sum = f32>,
    B: Tiles,
    const CONSUMERS: usize,
    const SUMS: usize,
    const ELEMENTS: usize,
>(
    gemm: MappedGemm<'_, u16, f32, impl Epilogue>,
    full: *mut Mbarrier,  // (STAGES)
    empty: *mut Mbarrier, // (STAGES)
) where
    [f32; SUMS]: Sums<Sum = f32>,
{
    const {
        assert!(
            SUMS == 2 * ELEMENTS,
            "an element has a sum with B1 and one with B2"
        )
    }
    let (warpgroup, thread) = (warpgroup(), thread::thread_idx_x() as usize % WARPGROUP);
    let stages = Stages::<CONSUMERS, SUMS>::new(full, empty, 0);
    thread::sync_threads(); // the barriers may be used
    grid_dependency::wait(); // for kernels that write A, B and C
    let rows = gemm.m.div_ceil(Cta::<CONSUMERS, ELEMENTS>::BM);
    let cols = gemm.n.div_ceil(Cta::<CONSUMERS, ELEMENTS>::BN);
    let iterations = gemm.depth().div_ceil(BK);
    let corner = |tile| Stages::<CONSUMERS, ELEMENTS>::corner(raster::place(tile, rows, cols));
    let (mut tile, ctas) = (
        thread::block_idx_x() as usize,
        thread::grid_dim_x() as usize,
    );
    if warpgroup == 0 {
        if SUMS > 64 {
            wgmma::decrease_registers::<24>();
        }
        if thread == 0 {
            let mut at = Ring::PRODUCER;
            while tile < rows * cols {
                stages.load::<T, _, KMajor, B, 2>(&gemm, corner(tile), (0, iterations), &mut at);
                tile += ctas;
            }
        }
        return;
    }

    if SUMS > 64 {
        wgmma::increase_registers::<240>();
    }
    // As in `warp_specialized.rs`: `ptxas` gives the consumers more registers only so.
    if tile >= rows * cols {
        return;
    }
    let consumer = warpgroup - 1;
    let mut at = Ring::CONSUMER;
    while tile < rows * cols {
        let mut place = Corner::FIRST;
        let meanwhile = || place = corner(tile);
        let sums =
            stages.products::<T, KMajor, B>(iterations, consumer, thread, &mut at, meanwhile);
        let corner = place;
        let mut elements = [0.0; ELEMENTS];
        for pair in 0..ELEMENTS / 2 {
            let i = 2 * pair;
            let (m, n) = wgmma::sum_place(thread as u32, i as u32);
            let place = (
                corner.row + consumer * WM + m as usize,
                corner.col + n as usize,
            );
            let sums_from = |first: usize| [sums[first], sums[first + 1]];
            [elements[i], elements[i + 1]] =
                gemm.gated(place, sums_from(i), sums_from(ELEMENTS + i));
        }
        let of_elements = gemm.of_scaled_sums();
        let half = stages.of_sums::<ELEMENTS>();
        half.store::<T, false>(&of_elements, &elements, corner, consumer, thread);
        tile += ctas;
    }
    tma::wait_group_read::<0>(); // the boxes must be read before the CTA ends
}

/// Rows of the table, by the number of consumers, of sums and of elements of C a thread.
macro_rules! table {
    ($(
        $name:literal $entry:ident $type:ident $element:ident $b:ident
        ($consumers:literal, $sums:literal, $elements:literal);
    )*) => {
        kernel! {
            name: "gated",
            idea: "a gate makes one matrix of two products of an A, on Hopper's tensor cores",
            epilogue: gate,
            variants: [$(
                $name = fn $entry(gemm: $type; mapped)
                    block(Cta::<$consumers, $sums>::THREADS, 1)
                    tile(Cta::<$consumers, $elements>::BM, Cta::<$consumers, $elements>::BN, BK)
                    shared(
                        full: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                        empty: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                    )
                    launch_bounds(1)
                    {
                        staging: Staging::Ring { bytes: Cta::<$consumers, $sums>::BYTES as u32 },
                        b: layout!($b),
                        is_gated: true,
                    }
                    => multiply::<$element, $b, $consumers, $sums, $elements>(gemm, full, empty);
            )*],
        }
    };
}

table! {
    "gated" gated_bf16 bf16 Bf16 MnMajor (2, 128, 64);
    "gated" gated_f16 f16 F16 MnMajor (2, 128, 64);
    "gated-nt" gated_nt_bf16 bf16 Bf16 KMajor (2, 128, 64);
    "gated-nt" gated_nt_f16 f16 F16 KMajor (2, 128, 64);
    "gated-64x64" gated_64x64_bf16 bf16 Bf16 MnMajor (1, 64, 32);
    "gated-64x64" gated_64x64_f16 f16 F16 MnMajor (1, 64, 32);
    "gated-64x64-nt" gated_64x64_nt_bf16 bf16 Bf16 KMajor (1, 64, 32);
    "gated-64x64-nt" gated_64x64_nt_f16 f16 F16 KMajor (1, 64, 32);
}
