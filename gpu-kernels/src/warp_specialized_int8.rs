//! Integers of 8 bits on Hopper's tensor cores, with exact sums of 32 bits.
//!
//! Over `warp-specialized-tf32`, whose function this is: 128 bytes along K are 128 elements instead
//! of 32, and an instruction multiplies 32 of them in the time of 8. `wgmma` takes both tiles from
//! shared memory, K-major, since it transposes only elements of 16 bits. Neither does a thread
//! transpose here: a register holds four elements along K, which in an MN-major tile are in four
//! rows. So an operand with rows along M or N is copied first, transposed.
//!
//! A product of two elements has at most 2^14, so sums are exact up to a depth of 2^17, and modulo
//! 2^32 beyond.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN), of a byte each
//! Shared-memory reads: M*N*K * (1/64 + 1/256)
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 128. Rows of A and of B^T at
//! multiples of 16 bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-specialized-int8 --dtype i8 --m 1000 --n 777 --k 123
//! ```

use cuda_std::mbarrier::Mbarrier;
use cuda_std::wgmma::{self, Descriptor};

use crate::kernel::kernel;
use crate::warp_specialized_tf32::{multiply, KMajorOnly, BYTES, LEFT, RIGHT, STAGES, THREADS};

/// i8 with sums of i32.
struct Int8;

impl KMajorOnly for Int8 {
    type Sum = i32;
    const BK: usize = 128;

    #[inline(always)]
    fn unset() -> [i32; 128] {
        wgmma::unset_128_s32()
    }

    #[inline(always)]
    unsafe fn accumulate<const BY_REGISTERS: bool>(
        sums: &mut [i32; 128],
        (tile, _): (Descriptor, [f32; 4]),
        right: Descriptor,
        adds: bool,
    ) {
        const { assert!(!BY_REGISTERS, "a register has four elements along K") }
        wgmma::m64n256k32_s8(sums, tile, right, adds);
    }

    #[inline(always)]
    unsafe fn wait(sums: &mut [i32; 128]) {
        wgmma::wait_128_s32::<0>(sums);
    }
}

kernel! {
    name: "warp-specialized-int8",
    idea: "warp specialisation for 8 bits: tiles four times as deep, and sums that are exact",
    variants: [
        "warp-specialized-int8" = fn warp_specialized_int8(gemm: i8; mapped)
            block(THREADS, 1) tile(LEFT, RIGHT, Int8::BK)
            shared(full: [Mbarrier; STAGES], empty: [Mbarrier; STAGES])
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
            }
            => multiply::<Int8, false, false>(gemm, full, empty);
    ],
}
