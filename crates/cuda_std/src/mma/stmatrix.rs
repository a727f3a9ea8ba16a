//! Fragments to shared memory: the counterpart of `ldmatrix`.

use crate::by_architecture::from_compute_90;
#[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
use crate::device::shared_address;

/// Stores fragments of 4 matrices of 8 rows of 16 bytes into shared memory: lane `8 * i + j` gives
/// the place of row j of matrix i, and lane `l` the elements `2 * (l % 4)` and `2 * (l % 4) + 1`,
/// of 16 bits, of row `l / 4` of each.
///
/// It requires `compute_90`.
///
/// # Safety
///
/// All 32 lanes of the warp reach this call together. Each `row` is 16 bytes of the block's shared
/// memory at a multiple of 16, which no other thread reads or writes.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn stmatrix_x4<T>(row: *mut T, parts: [u32; 4]) {
    from_compute_90! {
        "stmatrix needs compute_90", (row, parts),
        asm(
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [{:e}], {{{:e}, {:e}, {:e}, {:e}}};",
            in(reg) shared_address(row),
            in(reg) parts[0],
            in(reg) parts[1],
            in(reg) parts[2],
            in(reg) parts[3]
        ),
        crate::simulator::store_matrices("mma::stmatrix_x4", row.cast(), parts),
    }
}
