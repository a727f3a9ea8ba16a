//! Tensor cores: the 32 lanes of a warp multiply small matrices together, `D = A * B + C`.
//!
//! No lane holds a matrix. Each holds a fragment of all three in its registers, and [`Layout`] says
//! which elements those are. All 32 lanes take part in every function of this module: a lane that
//! is missing is undefined on a GPU and a fault in the simulator.
//!
//! | function | A x B | elements | sums | on a GPU |
//! | --- | --- | --- | --- | --- |
//! | [`m8n8k4_f64`] | 8x4 by 4x8 | f64 | f64 | one instruction |
//! | [`m16n8k4_f64`], [`m16n8k8_f64`], [`m16n8k16_f64`] | 16xK by Kx8 | f64 | f64 | one instruction from `compute_90` on, before 2, 4 and 8 of the above |
//! | [`m16n8k8_tf32`] | 16x8 by 8x8 | f32, read as tf32 | f32 | one instruction |
//! | [`m16n8k16_bf16`], [`m16n8k16_f16`] | 16x16 by 16x8 | pairs of bf16 or f16 | f32 | one instruction |
//! | [`m16n8k32_s8`], [`m16n8k32_u8`], [`m16n8k32_s8_u8`], [`m16n8k32_u8_s8`] | 16x32 by 32x8 | four i8 or u8 a register | i32 | one instruction |
//! | [`ldmatrix_x4`] and its like | | rows of 16 bytes | | loads fragments from shared memory |
//! | [`stmatrix_x4`] | | rows of 16 bytes | | stores fragments to shared memory; from `compute_90` on |
//!
//! The instructions are PTX's `mma.sync` and `ldmatrix`, and require `compute_80`. Compiled for an
//! older architecture, each function is a `trap`, which fails the launch.
//!
//! # How they round
//!
//! f64: every product and addition as one IEEE FMA, in the order of k.
//!
//! i8 and u8: exact, modulo 2^32. These are from the PTX ISA, and have not run on a GPU yet.
//!
//! All others: the products are exact. Products and C are shifted to the largest exponent among
//! them, what falls below the last bit kept is cut off, and the sum is cut off to an f32. NVIDIA
//! does not say so; it was found by M. Fasi, N. J. Higham, M. Mikaitis and S. Pranesh, "Numerical
//! behavior of NVIDIA tensor cores" (PeerJ Computer Science 7:e330, 2021; V100, T4 and A100) and
//! by F. A. Khattak and M. Mikaitis, "Accurate models of NVIDIA tensor cores" (arXiv 2512.07004,
//! 2025; up to H100 and B200). GPUs differ in how many terms they add at a time and in how many
//! bits they keep. The simulator's model is that of one addition of all products and C, with two
//! bits below the last of an f32, as found on the H100; a result beyond the largest f32 is
//! infinite, and one that is NaN has the bits 0x7FFF_FFFF. The same kernel on a GPU of another
//! generation may differ from it in the last bits.

#[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
use core::arch::asm;

mod convert;
mod layout;
mod ldmatrix;
mod multiply;
mod stmatrix;

pub use convert::{
    of_bf16, of_e4m3, of_e5m2, of_f16, pair_of_bf16, pair_of_e4m3, pair_of_e5m2, pair_of_f16,
};
pub use layout::Layout;
pub use ldmatrix::{
    ldmatrix_x1, ldmatrix_x1_trans, ldmatrix_x2, ldmatrix_x2_trans, ldmatrix_x4, ldmatrix_x4_trans,
};
pub use multiply::{
    m8n8k4_f64, m16n8k4_f64, m16n8k8_f64, m16n8k8_tf32, m16n8k16_bf16, m16n8k16_f16, m16n8k16_f64,
    m16n8k32_s8, m16n8k32_s8_u8, m16n8k32_u8, m16n8k32_u8_s8,
};
pub use stmatrix::stmatrix_x4;

/// `x` rounded to tf32: an f32 whose lower 13 bits are zero, the nearest to `x`, or of two that
/// are as near the one farther from zero.
///
/// [`m16n8k8_tf32`] ignores those bits: it cuts off what has not been rounded.
#[inline(always)]
pub fn round_to_tf32(x: f32) -> f32 {
    #[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
    {
        let rounded: u32;
        // SAFETY: it touches nothing.
        unsafe {
            asm!(
                "cvt.rna.tf32.f32 {:e}, {:e};",
                out(reg) rounded, in(reg) x, options(pure, nomem, nostack, preserves_flags)
            );
        }
        f32::from_bits(rounded)
    }
    #[cfg(not(all(cuda_device, cuda_arch_at_least = "80")))]
    {
        if x.is_finite() {
            // A carry out of the fraction makes the exponent one greater, as it should.
            f32::from_bits(x.to_bits().wrapping_add(0x1000) & 0xFFFF_E000)
        } else {
            x
        }
    }
}

/// Ends the launch: the function that calls it has no meaning on this architecture.
#[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
macro_rules! needs_compute_80 {
    () => {
        core::arch::asm!(
            "trap; // tensor cores need compute_80",
            options(nostack, preserves_flags)
        )
    };
}
#[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
use needs_compute_80;
