//! Persistent CTAs that divide all k-iterations evenly, so that no SM waits for the last tile.
//!
//! Over `warp-specialized`, where CTAs take whole tiles: a C of 512 tiles takes four waves of 132
//! CTAs, the last with 116, and a C of eight tiles leaves 124 SMs idle however long K is. Here
//! CTAs take whole tiles as long as there is one for each, and divide the k-iterations of the
//! other tiles evenly (stream-K, `stream_k.rs`), where that saves more than it costs. A CTA with a
//! part of a tile stores its sums in f32 in a workspace, and `fix_up` adds them, always in the
//! same order:
//!
//! ```text
//!   5 tiles of 8 k-iterations, 4 CTAs       whole tiles      divided
//!                               CTA 0   |0.......|4.......|  |0.......|4.|
//!                               CTA 1   |1.......|           |1.......|4.|
//!                               CTA 2   |2.......|           |2.......|4.|  fix_up: tile 4
//!                               CTA 3   |3.......|           |3.......|4.|
//! ```
//!
//! So smaller tiles pay, too: a small C has more of them, and their partial sums are smaller. A
//! tile of 64 rows has a single consumer, which keeps one product in flight, since no other
//! consumer fills the gaps.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN); partial sums: written and read, 2 * 4 * BM * BN
//! bytes a CTA at most, twice
//! Shared-memory reads: M*N*K * (1/64 + 1/BN), by the tensor cores
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 64 or 128 x 128 x 64; or 256 threads
//! in 2, block tile 64 x 128 x 64 or 64 x 64 x 64. A and B in any layout, rows at multiples of 16
//! bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! ```sh
//! cargo run -p host -- --kernel persistent --dtype bf16 --m 1000 --n 776 --k 1200
//! ```

use cuda_std::mbarrier::Mbarrier;
use cuda_std::prelude::*;
use cuda_std::tma;
use cuda_std::wgmma::{self, KMajor, MnMajor};

use crate::compat::grid_dependency;
use crate::epilogue::Epilogue;
use crate::half::{Bf16, F16};
use crate::kernel::{each_of_16_bits, kernel};
use crate::mapped_gemm::{Float2, MappedGemm};
use crate::stream_k::Segments;
use crate::warp_specialized::{Cta, Operands, Output, Ring, Stages, BK, WARPGROUP, WM};
use crate::warpgroup::{layout, warpgroup, Tiles};

/// The body. The barriers are in shared memory.
#[inline(always)]
pub(crate) unsafe fn multiply<
    T: Operands<A, B, SUMS, Sum = f32>,
    C: Output<Sum = f32>,
    A: Tiles,
    B: Tiles,
    const CONSUMERS: usize,
    const SUMS: usize,
>(
    gemm: MappedGemm<'_, C::Bits, f32, impl Epilogue>,
    full: *mut Mbarrier,  // (STAGES)
    empty: *mut Mbarrier, // (STAGES + TURNS)
) {
    let (warpgroup, thread) = (warpgroup(), thread::thread_idx_x() as usize % WARPGROUP);
    let stages = Stages::<CONSUMERS, SUMS>::new(full, empty, T::TURNS);
    thread::sync_threads(); // the barriers may be used
    grid_dependency::wait(); // for copies of A and B

    let tile = (
        Cta::<CONSUMERS, SUMS>::BM,
        Cta::<CONSUMERS, SUMS>::BN,
        T::BK,
    );
    let depth = gemm.depth();
    let segments = Segments::of_launch((gemm.m, gemm.n, depth), tile, gemm.division());
    // `fix_up` may start on SMs that become free. CTAs of the next product would take SMs in the
    // order in which these become free, so that CTAs with common rows and columns were far apart:
    // several waves then took 3 % more energy.
    if segments.are_few() {
        grid_dependency::launch_dependents();
    }
    if warpgroup == 0 {
        if SUMS > 64 {
            wgmma::decrease_registers::<24>();
        }
        if thread == 0 && depth > 0 {
            let mut at = Ring::PRODUCER;
            let mut index = 0;
            while let Some(segment) = segments.get(index) {
                let corner = Stages::<CONSUMERS, SUMS>::corner(segments.place(segment));
                stages.load::<T, _, A, B, 1>(&gemm, corner, (segment.from, segment.to), &mut at);
                index += 1;
            }
        }
        return;
    }

    if SUMS > 64 {
        wgmma::increase_registers::<240>();
    }
    let consumer = warpgroup - 1;
    let mut at = Ring::CONSUMER;
    let mut index = 0;
    while let Some(segment) = segments.get(index) {
        let to = if depth == 0 { segment.from } else { segment.to };
        let place = || Stages::<CONSUMERS, SUMS>::corner(segments.place(segment));
        let range = (segment.from, to);
        let (sums, corner) = stages.sums::<T, A, B>(&gemm, place, range, consumer, thread, &mut at);
        if segments.stream_k.covers_tile(segment) {
            stages.store::<C, false>(&gemm, &sums, corner, consumer, thread);
        } else {
            let partial = segments.partial(index).add(consumer * WM * tile.1);
            store_partial(&sums, partial, thread);
        }
        index += 1;
    }
    tma::wait_group_read::<0>(); // the boxes must be read before the CTA ends
}

/// Stores a consumer's sums of a part of a tile's k-iterations in the workspace, for `fix_up`.
#[inline(always)]
unsafe fn store_partial<const SUMS: usize>(
    sums: &[f32; SUMS],
    partial: *mut f32, // (64, 2 * SUMS)
    thread: usize,
) {
    for i in 0..SUMS / 2 {
        let (m, n) = wgmma::sum_place(thread as u32, 2 * i as u32);
        let pair = Float2([sums[2 * i], sums[2 * i + 1]]);
        pair.write(partial.add(m as usize * 2 * SUMS + n as usize));
    }
}

/// Rows of the table, by the number of consumers and of sums a thread.
macro_rules! table {
    ($(
        $name:tt $entry:ident ($($types:tt)+) $input:ident $output:ident $a:ident $b:ident
        ($consumers:literal, $sums:literal);
    )*) => {
        kernel! {
            name: "persistent",
            idea: "persistent CTAs divide all k-iterations evenly, on Hopper's tensor cores",
            epilogue: any,
            variants: [$(
                $name = fn $entry(gemm: $($types)+; mapped)
                    block(Cta::<$consumers, $sums>::THREADS, 1)
                    tile(Cta::<$consumers, $sums>::BM, Cta::<$consumers, $sums>::BN, BK)
                    shared(
                        full: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                        empty: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                    )
                    launch_bounds(1)
                    {
                        grid: Grid::PersistentStreamK,
                        staging: Staging::Ring { bytes: Cta::<$consumers, $sums>::BYTES as u32 },
                        a: layout!($a),
                        b: layout!($b),
                    }
                    => multiply::<$input, $output, $a, $b, $consumers, $sums>(gemm, full, empty);
            )*],
        }
    };
}

each_of_16_bits!(table! {
    "persistent" persistent (2, 128);
    "persistent-128x128" persistent_128x128 (2, 64);
    "persistent-64x128" persistent_64x128 (1, 64);
    "persistent-64x64" persistent_64x64 (1, 32);
});
