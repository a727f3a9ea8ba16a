//! Rows that begin where memory likes them to: the matrices lie in pitched allocations.
//!
//! Over `row-shared`: the same code, on matrices whose rows the driver has moved apart (`cuMemAllocPitch`, filled and
//! emptied with 2-D copies). Every row starts at a multiple of 512 bytes, so that the 32 loads of a warp never touch one
//! cache line more than they must; the leading dimensions LDA, LDB and LDC are the pitch in elements.
//! Global-memory reads: M*K + M*N*K, as before; 4 lines of 32 bytes for a warp's 128 bytes of B instead of up to 5
//! Block: 256 threads, one row of C, as before. Any M, N, K.
//!
//! ```sh
//! cargo run -p host -- --kernel row-shared,pitched --m 1001 --n 1001 --k 1001
//! ```

use cuda_std::shared;

use crate::gemm::gemm_kernel;
use crate::row_shared::multiply;
#[cfg(not(published_cuda_std))]
use crate::row_shared::{PART, THREADS};
#[cfg(not(published_cuda_std))]
use crate::spec::{variant, Allocation, Grid, Kernel, Stages};

#[cfg(not(published_cuda_std))]
pub static KERNEL: Kernel = Kernel {
    name: "pitched",
    idea: "rows of A, B and C that begin at the addresses memory likes: pitched allocations",
    source: file!(),
    variants: &[variant!(
        "pitched",
        F32(pitched),
        block(THREADS, 1),
        tile(1, THREADS, PART),
        grid: Grid::Rows,
        stages: Stages::RowOfA,
        allocation: Allocation::Pitched,
    )],
};

gemm_kernel! {
    fn pitched(gemm: f32) {
        multiply(gemm, shared::dynamic_shared_mem::<f32>())
    }
}
