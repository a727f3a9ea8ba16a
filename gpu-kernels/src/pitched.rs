//! Rows that begin at aligned addresses: the matrices are in pitched allocations.
//!
//! Over `row-shared`: the same code, on matrices with padded rows, as from CUDA's
//! `cuMemAllocPitch`. Every row starts at a multiple of 512 bytes, so that the 32 loads of a warp
//! never touch an additional cache line. The leading dimensions LDA, LDB and LDC are the pitch in
//! elements.
//! Global-memory reads: M*K + M*N*K, as before; 4 sectors of 32 bytes for a warp's 128 bytes of B
//! instead of up to 5
//! Block: 256 threads, one row of C, as before. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel row-shared,pitched --m 1001 --n 1001 --k 1001
//! ```

use cuda_std::shared;

use crate::kernel::kernel;
use crate::row_shared::{multiply, BK, THREADS};

kernel! {
    name: "pitched",
    idea: "pitched allocations: each row of A, B and C starts at an aligned address",
    variants: [
        "pitched" = fn pitched(gemm: f32)
            block(THREADS, 1) tile(1, THREADS, BK)
            {
                grid: Grid::Rows,
                staging: Staging::RowOfA,
                allocation: Allocation::Pitched,
                rounding: Rounding::Compensated,
            }
            => multiply(gemm, shared::dynamic_shared_mem::<f32>());
    ],
}
