//! Fragments from shared memory.
//!
//! ```text
//!   lane l gives the address of row l % 8 of matrix l / 8, 16 bytes at a multiple of 16
//!
//!   row 0   | lane 0 | lane 1 | lane 2 | lane 3 |       each lane gets 4 bytes of each matrix:
//!   row 1   | lane 4 | lane 5 | lane 6 | lane 7 |       those of row l / 4 at 4 * (l % 4)
//!   ...
//!   row 7   | lane 28  ...             lane 31  |
//!
//!   _trans, of 16-bit elements: as if row and column were exchanged first
//!
//!   lane l gets the elements of column l / 4 in the rows 2 * (l % 4) and 2 * (l % 4) + 1
//! ```
//!
//! So a matrix is 8 rows of 8 elements of 16 bits: the piece of A that one register of
//! [`m16n8k16_bf16`](super::m16n8k16_bf16) holds, or the same of B if its columns are stored as
//! rows. Or it is 8 rows of 4 elements of 32 bits: the piece that one register of
//! [`m16n8k8_tf32`](super::m16n8k8_tf32) holds.

#[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
use super::needs_compute_80;

/// Defines loads of 1, 2 or 4 matrices.
macro_rules! loads {
    ($($name:ident, $count:literal, $lanes:literal, $is_transposed:literal, $text:literal, [$($register:ident)*];)*) => {
        $(
            #[doc = concat!("Loads fragments of ", $count, " of shared memory's matrices of 8 rows of 16 bytes, register i of matrix i, ")]
            #[doc = concat!("whose rows the lanes 0 to ", $lanes, " give; the `row` of other lanes is ignored.")]
            ///
            /// See the picture in `mma/ldmatrix.rs`: lane `8 * i + j` gives row j of matrix i, and
            /// lane `l` gets 4 bytes of row `l / 4`, the `l % 4`-th; with `_trans` 2 bytes of each
            /// of two rows.
            ///
            /// # Safety
            ///
            /// All 32 lanes of the warp reach this call together. Each `row` that is not ignored is
            /// 16 bytes of the block's shared memory at a multiple of 16, which no thread writes.
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub unsafe fn $name<T>(row: *const T) -> [u32; $count] {
                #[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
                // SAFETY: the caller vouches for the lanes and the addresses.
                unsafe {
                    $(let $register;)*
                    core::arch::asm!(
                        $text,
                        $(lateout(reg) $register,)*
                        in(reg) crate::device::shared_address(row),
                        options(readonly, nostack, preserves_flags)
                    );
                    [$($register),*]
                }
                #[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
                // SAFETY: it ends the launch.
                unsafe {
                    let _ = row;
                    needs_compute_80!();
                    [0; $count]
                }
                #[cfg(not(cuda_device))]
                crate::simulator::load_matrices(
                    concat!("mma::", stringify!($name)), row.cast(), $is_transposed)
            }
        )*
    };
}

loads! {
    ldmatrix_x1, 1, 7, false,
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{{0:e}}}, [{1:e}];", [r0];
    ldmatrix_x2, 2, 15, false,
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{{0:e}, {1:e}}}, [{2:e}];", [r0 r1];
    ldmatrix_x4, 4, 31, false,
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{0:e}, {1:e}, {2:e}, {3:e}}}, [{4:e}];", [r0 r1 r2 r3];
    ldmatrix_x1_trans, 1, 7, true,
        "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {{{0:e}}}, [{1:e}];", [r0];
    ldmatrix_x2_trans, 2, 15, true,
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{{0:e}, {1:e}}}, [{2:e}];", [r0 r1];
    ldmatrix_x4_trans, 4, 31, true,
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{0:e}, {1:e}, {2:e}, {3:e}}}, [{4:e}];", [r0 r1 r2 r3];
}
