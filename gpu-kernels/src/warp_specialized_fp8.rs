//! Floats of 8 bits on Hopper's tensor cores, promoted to sums of f32 every 128 of the depth.
//!
//! Over `warp-specialized-int8`: the elements are e4m3, floats with 4 bits of exponent and 3 of
//! fraction. Their products are exact, but the tensor cores add them up with 14 bits
//! (`cuda_std::wgmma`). So they begin anew with each tile of 128 along K, and a thread adds their
//! sums to its own, in f32, while the tensor cores multiply for the other consumer.
//!
//! A thread has registers for its 128 sums and for half as many of the tensor cores'. So a consumer
//! multiplies a tile in two parts, each of 128 columns, and the consumers take turns:
//!
//! ```text
//!   consumer 0 | part 0 | promote | part 1 | promote | part 0 of the next tile ...
//!   consumer 1           | part 0 | promote | part 1 | promote ...
//! ```
//!
//! `warp-specialized-fp8-fast` leaves the sums to the tensor cores, and is never chosen by itself.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN), of a byte each
//! Shared-memory reads: M*N*K * (1/64 + 1/128)
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 128. Rows of A and of B^T at
//! multiples of 16 bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-specialized-fp8 --dtype e4m3 --m 1000 --n 777 --k 123
//! ```

use cuda_std::mbarrier::Mbarrier;
use cuda_std::wgmma::{self, Descriptor};

use crate::kernel::kernel;
use crate::warp_specialized_tf32::{
    multiply, KMajorOnly, BYTES, CONSUMERS, LEFT, RIGHT, STAGES, THREADS,
};

/// The sums of a thread, and those of a part.
const SUMS: usize = 128;
const OF_PART: usize = SUMS / E4m3::PARTS;

/// e4m3 with sums of f32.
struct E4m3;

/// The sums of a thread, and the tensor cores' of one part and one tile.
struct Promoted {
    sums: [f32; SUMS],
    of_part: [f32; OF_PART],
}

impl KMajorOnly for E4m3 {
    type Sum = f32;
    type Sums = Promoted;
    const BK: usize = 128;
    const PARTS: usize = 2;
    const ZERO: Promoted = Promoted {
        sums: [0.0; SUMS],
        of_part: [0.0; OF_PART],
    };

    #[inline(always)]
    fn unset() -> Promoted {
        Promoted {
            sums: [0.0; SUMS],
            of_part: wgmma::unset_64(),
        }
    }

    #[inline(always)]
    unsafe fn accumulate<const BY_REGISTERS: bool>(
        sums: &mut Promoted,
        (tile, _): (Descriptor, [f32; 4]),
        right: Descriptor,
        adds: bool,
    ) {
        const { assert!(!BY_REGISTERS, "a register has four elements along K") }
        wgmma::m64n128k32_e4m3(&mut sums.of_part, tile, right, adds);
    }

    #[inline(always)]
    unsafe fn wait(sums: &mut Promoted) {
        wgmma::wait_64::<0>(&mut sums.of_part);
    }

    #[inline(always)]
    fn promote(sums: &mut Promoted, part: usize) {
        for i in 0..OF_PART {
            sums.sums[OF_PART * part + i] += sums.of_part[i];
        }
    }

    #[inline(always)]
    fn finished(sums: Promoted) -> [f32; SUMS] {
        sums.sums
    }
}

/// e4m3 with the tensor cores' sums alone: fast accumulation, as cublasLt names it.
struct Fast;

impl KMajorOnly for Fast {
    type Sum = f32;
    type Sums = [f32; SUMS];
    const BK: usize = E4m3::BK;
    const ZERO: [f32; SUMS] = [0.0; SUMS];

    #[inline(always)]
    fn unset() -> [f32; SUMS] {
        wgmma::unset_128()
    }

    #[inline(always)]
    unsafe fn accumulate<const BY_REGISTERS: bool>(
        sums: &mut [f32; SUMS],
        (tile, _): (Descriptor, [f32; 4]),
        right: Descriptor,
        adds: bool,
    ) {
        const { assert!(!BY_REGISTERS, "a register has four elements along K") }
        wgmma::m64n256k32_e4m3(sums, tile, right, adds);
    }

    #[inline(always)]
    unsafe fn wait(sums: &mut [f32; SUMS]) {
        wgmma::wait_128::<0>(sums);
    }

    #[inline(always)]
    fn finished(sums: [f32; SUMS]) -> [f32; SUMS] {
        sums
    }
}

/// The variants, with their sums.
macro_rules! variants {
    ($($name:literal $entry:ident $sums:ident $rounding:ident;)*) => {
        kernel! {
            name: "warp-specialized-fp8",
            idea: "warp specialisation for floats of 8 bits: sums of 14 bits, promoted every 128 of K",
            epilogue: any,
            variants: [
                $(
                    $name = fn $entry(gemm: e4m3; mapped)
                        block(THREADS, 1) tile(LEFT, RIGHT, $sums::BK)
                        shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES + CONSUMERS])
                        launch_bounds(1)
                        {
                            unit: Unit::TensorCores { warp_tile: (16, RIGHT as u32) },
                            least_capability: 90,
                            one_capability: true,
                            grid: Grid::Persistent,
                            thread_tile: (2, RIGHT as u32 / 4),
                            staging: Staging::Ring { bytes: BYTES as u32 },
                            a: OperandLayout::K_MAJOR_ALIGNED,
                            b: OperandLayout::K_MAJOR_ALIGNED,
                            rounding: Rounding::$rounding,
                        }
                        => multiply::<$sums, false, false>(gemm, full, empty);
                )*
            ],
        }
    };
}

variants! {
    "warp-specialized-fp8" warp_specialized_fp8 E4m3 Promoted;
    "warp-specialized-fp8-fast" warp_specialized_fp8_fast Fast NotPromoted;
}
