//! Floats of 8 bits on Hopper's tensor cores, promoted to sums of f32 every 128 of the depth.
//!
//! Over `warp-specialized` and `persistent`, whose functions these are: the elements are e4m3,
//! floats with 4 bits of exponent and 3 of fraction, and 128 bytes along K are 128 of them. `wgmma`
//! takes them K-major only; an operand with rows along M or N is copied first, transposed.
//!
//! Their products are exact, but the tensor cores add them up with 14 bits (`cuda_std::wgmma`). So
//! they begin anew with each tile of 128 along K, and a thread adds their sums to its own, in f32:
//! it promotes them. Meanwhile the tensor cores multiply something else. A consumer multiplies a
//! tile in two parts, each of half of its columns. Where a thread has registers for both parts'
//! sums, besides its own, one part is promoted while the other is multiplied:
//!
//! ```text
//!   tensor cores | part 0 | part 1         |                | part 0 of the next tile | part 1
//!   threads               | promote part 0 | promote part 1 |                         | ...
//! ```
//!
//! A tile of 256 columns leaves registers for one part, and the consumers take turns:
//!
//! ```text
//!   consumer 0 | part 0 | promote | part 1 | promote | part 0 of the next tile ...
//!   consumer 1           | part 0 | promote | part 1 | promote ...
//! ```
//!
//! `warp-specialized-fp8-fast` leaves the sums to the tensor cores, and is never chosen by itself.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN), of a byte each
//! Shared-memory reads: M*N*K * (1/64 + 2/BN)
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 128 or 128 x 128 x 128; or 256
//! threads in 2, block tile 64 x 128 x 128 or 64 x 64 x 128. Rows of A and of B^T at multiples of
//! 16 bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-specialized-fp8 --dtype e4m3 --m 1000 --n 777 --k 123
//! cargo run -p host -- --kernel warp-specialized-fp8 --dtype e4m3-bf16 --m 1000 --n 776 --k 123
//! ```

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::wgmma::{self, Descriptor, KMajor};
use cuda_std::GpuFloat;

use crate::half::{Bf16, Sums, Wgmma};
use crate::kernel::kernel;
use crate::persistent;
use crate::warp_specialized::{self, Cta, Operands, Ring, StagesOf, STEPS};

/// The depth of a tile.
const BK: usize = 128;

/// e4m3 with the tensor cores' sums alone: fast accumulation, as cublasLt names it.
#[derive(Clone, Copy)]
struct Fast;

impl Wgmma<KMajor, KMajor> for Fast {
    type Sum = f32;
    const BK: usize = BK;

    #[inline(always)]
    #[cfg_attr(not(cuda_device), track_caller)]
    unsafe fn multiply_64(sums: &mut [f32; 32], a: Descriptor, b: Descriptor, adds: bool) {
        wgmma::m64n64k32_e4m3(sums, a, b, adds);
    }

    #[inline(always)]
    #[cfg_attr(not(cuda_device), track_caller)]
    unsafe fn multiply_128(sums: &mut [f32; 64], a: Descriptor, b: Descriptor, adds: bool) {
        wgmma::m64n128k32_e4m3(sums, a, b, adds);
    }

    #[inline(always)]
    #[cfg_attr(not(cuda_device), track_caller)]
    unsafe fn multiply_256(sums: &mut [f32; 128], a: Descriptor, b: Descriptor, adds: bool) {
        wgmma::m64n256k32_e4m3(sums, a, b, adds);
    }
}

/// e4m3 whose sums are promoted after each tile.
struct Promoted;

/// A consumer's tile has 64 columns, which are one part: so few products wait for memory.
impl Operands<KMajor, KMajor, 32> for Promoted {
    type Sum = f32;
    const BK: usize = BK;

    #[inline(always)]
    unsafe fn add_up<const CONSUMERS: usize, const STEP: u8>(
        stages: &StagesOf<CONSUMERS, 32, STEP>,
        iterations: usize,
        consumer: usize,
        thread: usize,
        at: &mut Ring,
        scales: impl Fn(usize, usize) -> [f32; 2],
        mut meanwhile: impl FnMut(),
    ) -> [f32; 32] {
        meanwhile();
        let tiles = stages.tiles::<KMajor, KMajor>(consumer);
        let mut sums = [0.0; 32];
        let mut of_tile = <[f32; 32]>::unset();
        let mut next = [1.0; 2];
        if iterations > 0 {
            next = scales(0, 0);
            mbarrier::wait(stages.full.add(at.stage), at.parity); // the first tiles have landed
        }
        for iteration in 0..iterations {
            let stage = (at.stage * StagesOf::<CONSUMERS, 32, STEP>::STAGE_BYTES) as u32;
            let empty = stages.empty.add(at.stage);
            multiply_part(&mut of_tile, tiles, stage, 0);
            // Loaded an iteration before they are used.
            let of_rows = next;
            next = scales((iteration + 1).min(iterations - 1), 0);
            at.advance(StagesOf::<CONSUMERS, 32, STEP>::STAGES);
            if iteration + 1 < iterations {
                mbarrier::wait(stages.full.add(at.stage), at.parity); // the next tiles have landed
            }
            of_tile.wait::<0>(); // the tiles have been read
            if thread == 0 {
                mbarrier::arrive(empty);
            }
            promote(&mut sums, &of_tile, 0, of_rows);
        }
        sums
    }
}

/// A consumer's tile has 128 columns: a thread has the sums of both parts.
impl Operands<KMajor, KMajor, 64> for Promoted {
    type Sum = f32;
    const BK: usize = BK;

    #[inline(always)]
    unsafe fn add_up<const CONSUMERS: usize, const STEP: u8>(
        stages: &StagesOf<CONSUMERS, 64, STEP>,
        iterations: usize,
        consumer: usize,
        thread: usize,
        at: &mut Ring,
        scales: impl Fn(usize, usize) -> [f32; 2],
        mut meanwhile: impl FnMut(),
    ) -> [f32; 64] {
        meanwhile();
        let tiles = stages.tiles::<KMajor, KMajor>(consumer);
        let mut sums = [0.0; 64];
        let (mut first, mut second) = (<[f32; 32]>::unset(), <[f32; 32]>::unset());
        let mut next = [[1.0; 2]; 2];
        if iterations > 0 {
            next = [scales(0, 0), scales(0, 64)];
            mbarrier::wait(stages.full.add(at.stage), at.parity); // the first tiles have landed
        }
        for iteration in 0..iterations {
            let stage = (at.stage * StagesOf::<CONSUMERS, 64, STEP>::STAGE_BYTES) as u32;
            let empty = stages.empty.add(at.stage);
            multiply_part(&mut first, tiles, stage, 0);
            multiply_part(&mut second, tiles, stage, 1);
            // Loaded an iteration before they are used.
            let [of_first, of_second] = next;
            let following = (iteration + 1).min(iterations - 1);
            next = [scales(following, 0), scales(following, 64)];
            at.advance(StagesOf::<CONSUMERS, 64, STEP>::STAGES);
            if iteration + 1 < iterations {
                mbarrier::wait(stages.full.add(at.stage), at.parity); // the next tiles have landed
            }
            first.wait::<1>();
            promote(&mut sums, &first, 0, of_first);
            second.wait::<0>(); // the tiles have been read
            if thread == 0 {
                mbarrier::arrive(empty);
            }
            promote(&mut sums, &second, 1, of_second);
        }
        sums
    }
}

/// A consumer's tile has 256 columns: a thread has the sums of one part, and the consumers take
/// turns.
impl Operands<KMajor, KMajor, 128> for Promoted {
    type Sum = f32;
    const BK: usize = BK;
    const TURNS: usize = 2;

    #[inline(always)]
    unsafe fn add_up<const CONSUMERS: usize, const STEP: u8>(
        stages: &StagesOf<CONSUMERS, 128, STEP>,
        iterations: usize,
        consumer: usize,
        thread: usize,
        at: &mut Ring,
        scales: impl Fn(usize, usize) -> [f32; 2],
        mut meanwhile: impl FnMut(),
    ) -> [f32; 128] {
        meanwhile();
        const { assert!(CONSUMERS == 2, "one has its turn while the other promotes") }
        let turns = Turns::of(
            consumer,
            stages.empty.add(StagesOf::<CONSUMERS, 128, STEP>::STAGES),
        );
        let tiles = stages.tiles::<KMajor, KMajor>(consumer);
        let mut sums = [0.0; 128];
        let mut of_part = <[f32; 64]>::unset();
        let mut next = [[1.0; 2]; 2];
        if iterations > 0 {
            next = [scales(0, 0), scales(0, 128)];
            mbarrier::wait(stages.full.add(at.stage), at.parity); // the first tiles have landed
        }
        for iteration in 0..iterations {
            let stage = (at.stage * StagesOf::<CONSUMERS, 128, STEP>::STAGE_BYTES) as u32;
            let empty = stages.empty.add(at.stage);
            turns.wait(0);
            multiply_part(&mut of_part, tiles, stage, 0);
            turns.pass(thread);
            // Loaded an iteration before they are used.
            let [of_first, of_second] = next;
            let following = (iteration + 1).min(iterations - 1);
            next = [scales(following, 0), scales(following, 128)];
            of_part.wait::<0>();
            promote(&mut sums, &of_part, 0, of_first);

            turns.wait(1);
            multiply_part(&mut of_part, tiles, stage, 1);
            turns.pass(thread);
            at.advance(StagesOf::<CONSUMERS, 128, STEP>::STAGES);
            if iteration + 1 < iterations {
                mbarrier::wait(stages.full.add(at.stage), at.parity); // the next tiles have landed
            }
            of_part.wait::<0>(); // the tiles have been read
            if thread == 0 {
                mbarrier::arrive(empty);
            }
            promote(&mut sums, &of_part, 1, of_second);
        }
        sums
    }
}

/// Starts to multiply a part of the columns of the tiles in a stage, as many as a thread has sums
/// for.
#[inline(always)]
unsafe fn multiply_part<const SUMS: usize>(
    of_part: &mut [f32; SUMS],
    (a, b): (Descriptor, Descriptor),
    stage: u32,
    part: usize,
) where
    [f32; SUMS]: Sums<Sum = f32>,
{
    let columns = 2 * SUMS;
    let of_b = stage + (part * columns * BK) as u32;
    wgmma::fence(); // the sums may be used
    for step in 0..STEPS {
        let (a, b) = (a.further(stage + 32 * step), b.further(of_b + 32 * step));
        of_part.multiply::<Fast, KMajor, KMajor>(a, b, step > 0);
    }
    wgmma::commit();
}

/// Adds the tensor cores' sums of a part to a thread's own, times the scales of its two rows.
#[inline(always)]
fn promote<const OF_PART: usize>(
    sums: &mut [f32],
    of_part: &[f32; OF_PART],
    part: usize,
    of_rows: [f32; 2],
) {
    for i in 0..OF_PART {
        let sum = &mut sums[OF_PART * part + i];
        *sum = GpuFloat::mul_add(of_part[i], of_rows[i / 2 % 2], *sum);
    }
}

/// One consumer starts a part after the other has started one. Otherwise both come to wait for the
/// tensor cores at the same time, which then have nothing to do while both promote.
struct Turns {
    own: *mut Mbarrier,
    other: *mut Mbarrier,
    /// Of the phase that ends before a first part.
    parity: u32,
}

impl Turns {
    /// The first turn is consumer 0's: nobody has arrived at its barrier, whose phase before the
    /// first has ended.
    #[inline(always)]
    unsafe fn of(consumer: usize, turns: *mut Mbarrier) -> Turns {
        Turns {
            own: turns.add(consumer),
            other: turns.add(1 - consumer),
            parity: 1 - consumer as u32,
        }
    }

    /// Each tile has two turns, so that the parities are those of the parts.
    #[inline(always)]
    unsafe fn wait(&self, part: u32) {
        mbarrier::wait_turn(self.own, self.parity ^ part);
    }

    #[inline(always)]
    unsafe fn pass(&self, thread: usize) {
        if thread == 0 {
            mbarrier::arrive(self.other);
        }
    }
}

/// Rows of the table: the type of C, how sums are kept, the number of consumers and of sums a
/// thread, and the module of the body, with its last parameter.
macro_rules! table {
    ($(
        $name:literal $entry:ident ($($types:tt)+) $c:ident $operands:ident $rounding:ident
        ($consumers:literal, $sums:literal) $grid:ident $module:ident ($($last:literal)?);
    )*) => {
        kernel! {
            name: "warp-specialized-fp8",
            idea: "warp specialisation for floats of 8 bits: sums of 14 bits, promoted every 128 of K",
            epilogue: any,
            variants: [$(
                $name = fn $entry(gemm: $($types)+; mapped)
                    block(Cta::<$consumers, $sums>::THREADS, 1)
                    tile(Cta::<$consumers, $sums>::BM, Cta::<$consumers, $sums>::BN, BK)
                    shared(
                        full: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                        empty: [Mbarrier; Cta::<$consumers, $sums>::STAGES + $consumers],
                    )
                    launch_bounds(1)
                    {
                        grid: Grid::$grid,
                        staging: Staging::Ring { bytes: Cta::<$consumers, $sums>::BYTES as u32 },
                        rounding: Rounding::$rounding,
                    }
                    => $module::multiply::<$operands, $c, KMajor, KMajor, $consumers, $sums $(, $last)?>(
                        gemm, full, empty
                    );
            )*],
        }
    };
}

table! {
    "warp-specialized-fp8" warp_specialized_fp8 (e4m3) f32 Promoted Promoted
        (2, 128) Persistent warp_specialized (8);
    "warp-specialized-fp8" warp_specialized_fp8_bf16 (e4m3 -> bf16) Bf16 Promoted Promoted
        (2, 128) Persistent warp_specialized (8);
    "warp-specialized-fp8-128x128" warp_specialized_fp8_128x128 (e4m3) f32 Promoted Promoted
        (2, 64) PersistentStreamK persistent ();
    "warp-specialized-fp8-128x128" warp_specialized_fp8_128x128_bf16 (e4m3 -> bf16) Bf16 Promoted
        Promoted (2, 64) PersistentStreamK persistent ();
    "warp-specialized-fp8-64x128" warp_specialized_fp8_64x128 (e4m3) f32 Promoted Promoted
        (1, 64) PersistentStreamK persistent ();
    "warp-specialized-fp8-64x128" warp_specialized_fp8_64x128_bf16 (e4m3 -> bf16) Bf16 Promoted
        Promoted (1, 64) PersistentStreamK persistent ();
    "warp-specialized-fp8-64x64" warp_specialized_fp8_64x64 (e4m3) f32 Promoted Promoted
        (1, 32) PersistentStreamK persistent ();
    "warp-specialized-fp8-64x64" warp_specialized_fp8_64x64_bf16 (e4m3 -> bf16) Bf16 Promoted
        Promoted (1, 32) PersistentStreamK persistent ();
    "warp-specialized-fp8-fast" warp_specialized_fp8_fast (e4m3) f32 Fast NotPromoted
        (2, 128) Persistent warp_specialized (8);
    "warp-specialized-fp8-fast" warp_specialized_fp8_fast_bf16 (e4m3 -> bf16) Bf16 Fast NotPromoted
        (2, 128) Persistent warp_specialized (8);
}
