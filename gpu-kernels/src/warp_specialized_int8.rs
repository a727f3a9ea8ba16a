//! Integers of 8 bits on Hopper's tensor cores, with exact sums of 32 bits.
//!
//! Over `warp-specialized`, whose function this is: 128 bytes along K are 128 elements instead of
//! 64, and an instruction multiplies 32 of them in the time of 16. `wgmma` takes both tiles K-major
//! only, since it transposes only elements of 16 bits. So an operand with rows along M or N is
//! copied first, transposed.
//!
//! A product of two elements has at most 2^14, so sums are exact up to a depth of 2^17, and modulo
//! 2^32 beyond.
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN), of a byte each
//! Shared-memory reads: M*N*K * (1/64 + 1/BN)
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 128 or 128 x 128 x 128; or 256
//! threads in 2, block tile 64 x 128 x 128 or 64 x 64 x 128. Rows of A and of B^T at multiples of
//! 16 bytes. Any M, N, K. Only for compute capability 9.0.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-specialized-int8 --dtype i8 --m 1000 --n 777 --k 123
//! ```

use cuda_std::mbarrier::Mbarrier;
use cuda_std::wgmma::{self, Descriptor, KMajor};

use crate::half::Wgmma;
use crate::kernel::kernel;
use crate::warp_specialized::{multiply, Cta};

/// The depth of a tile.
const BK: usize = 128;

/// i8 with sums of i32.
#[derive(Clone, Copy)]
struct Int8;

impl Wgmma<KMajor, KMajor> for Int8 {
    type Sum = i32;
    const BK: usize = BK;

    #[inline(always)]
    #[cfg_attr(not(cuda_device), track_caller)]
    unsafe fn multiply_64(sums: &mut [i32; 32], a: Descriptor, b: Descriptor, adds: bool) {
        wgmma::m64n64k32_s8(sums, a, b, adds);
    }

    #[inline(always)]
    #[cfg_attr(not(cuda_device), track_caller)]
    unsafe fn multiply_128(sums: &mut [i32; 64], a: Descriptor, b: Descriptor, adds: bool) {
        wgmma::m64n128k32_s8(sums, a, b, adds);
    }

    #[inline(always)]
    #[cfg_attr(not(cuda_device), track_caller)]
    unsafe fn multiply_256(sums: &mut [i32; 128], a: Descriptor, b: Descriptor, adds: bool) {
        wgmma::m64n256k32_s8(sums, a, b, adds);
    }
}

/// Rows of the table, by the number of consumers and of sums a thread.
macro_rules! table {
    ($($name:literal $entry:ident ($consumers:literal, $sums:literal);)*) => {
        kernel! {
            name: "warp-specialized-int8",
            idea: "warp specialisation for 8 bits: tiles twice as deep, and sums that are exact",
            variants: [$(
                $name = fn $entry(gemm: i8; mapped)
                    block(Cta::<$consumers, $sums>::THREADS, 1)
                    tile(Cta::<$consumers, $sums>::BM, Cta::<$consumers, $sums>::BN, BK)
                    shared(
                        full: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                        empty: [Mbarrier; Cta::<$consumers, $sums>::STAGES],
                    )
                    launch_bounds(1)
                    {
                        staging: Staging::Ring { bytes: Cta::<$consumers, $sums>::BYTES as u32 },
                    }
                    => multiply::<Int8, i32, KMajor, KMajor, $consumers, $sums, 8>(
                        gemm, full, empty
                    );
            )*],
        }
    };
}

table! {
    "warp-specialized-int8" warp_specialized_int8 (2, 128);
    "warp-specialized-int8-128x128" warp_specialized_int8_128x128 (2, 64);
    "warp-specialized-int8-64x128" warp_specialized_int8_64x128 (1, 64);
    "warp-specialized-int8-64x64" warp_specialized_int8_64x64 (1, 32);
}
