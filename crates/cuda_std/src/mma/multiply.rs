//! The multiplications, by shape and type.

#[cfg(not(cuda_device))]
use super::Layout;
#[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
use super::needs_compute_80;
#[cfg(not(cuda_device))]
use crate::simulator::Integer8::{S8, U8};
#[cfg(not(cuda_device))]
use crate::simulator::{Multiplication, Products, Registers, multiply};
#[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
use core::arch::asm;

/// The instruction: its operands in the text are first the sums, then `a`, then `b`.
///
/// The text is volatile (not `pure`): else the compiler may move it into the branch that uses the
/// result, where not all lanes are.
#[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
macro_rules! instruction {
    (
        $instruction:literal, $operands:literal,
        $a:ident[$($a_index:literal)*], $b:ident[$($b_index:literal)*],
        $c:ident[$($sum:ident = $c_index:literal)*]
    ) => {{
        $(let $sum;)*
        asm!(
            concat!($instruction, " ", $operands, ";"),
            $(inlateout(reg) $c[$c_index] => $sum,)*
            $(in(reg) $a[$a_index],)*
            $(in(reg) $b[$b_index],)*
            options(nomem, nostack, preserves_flags)
        );
        [$($sum),*]
    }};
}

#[cfg(all(cuda_device, not(cuda_arch_at_least = "80")))]
macro_rules! instruction {
    ($instruction:literal, $operands:literal, $a:ident $a_indices:tt, $b:ident $b_indices:tt, $c:ident $c_indices:tt) => {{
        let _ = ($a, $b);
        needs_compute_80!();
        $c
    }};
}

/// `A * B + C` of f64, 8x4 by 4x8: [`Layout::M8N8K4_F64`](super::Layout::M8N8K4_F64).
///
/// # Safety
///
/// All 32 lanes of the warp reach this call together.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn m8n8k4_f64(a: [f64; 1], b: [f64; 1], c: [f64; 2]) -> [f64; 2] {
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for the lanes; no memory is touched.
    unsafe {
        instruction!(
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
            "{{{0}, {1}}}, {{{2}}}, {{{3}}}, {{{0}, {1}}}",
            a[0], b[0], c[d0 = 0 d1 = 1]
        )
    }
    #[cfg(not(cuda_device))]
    simulated_f64("mma::m8n8k4_f64", Layout::M8N8K4_F64, &a, &b, c)
}

/// Defines the multiplications of f64 that are instructions from `compute_90` on only.
macro_rules! of_16_rows {
    ($($name:ident, $layout:ident, $instruction:literal, $operands:literal, a[$($a:literal)*], b[$($b:literal)*];)*) => {
        $(
            #[doc = concat!("`A * B + C` of f64: [`Layout::", stringify!($layout), "`](super::Layout::", stringify!($layout), ").")]
            ///
            /// Compiled for `compute_80` to `compute_89`, it is [`m8n8k4_f64`] of its pieces, with
            /// the same result.
            ///
            /// # Safety
            ///
            /// All 32 lanes of the warp reach this call together.
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub unsafe fn $name(
                a: [f64; [$($a),*].len()],
                b: [f64; [$($b),*].len()],
                c: [f64; 4],
            ) -> [f64; 4] {
                #[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
                // SAFETY: the caller vouches for the lanes; no memory is touched.
                unsafe {
                    instruction!($instruction, $operands, a[$($a)*], b[$($b)*], c[d0 = 0 d1 = 1 d2 = 2 d3 = 3])
                }
                #[cfg(all(cuda_device, not(cuda_arch_at_least = "90")))]
                // SAFETY: as above.
                unsafe {
                    let (mut upper, mut lower) = ([c[0], c[1]], [c[2], c[3]]);
                    $(
                        upper = m8n8k4_f64([a[2 * $b]], [b[$b]], upper);
                        lower = m8n8k4_f64([a[2 * $b + 1]], [b[$b]], lower);
                    )*
                    // So that rustc's jump threading sees it, which does not look into called
                    // functions.
                    crate::device::stand_together!();
                    [upper[0], upper[1], lower[0], lower[1]]
                }
                #[cfg(not(cuda_device))]
                simulated_f64(concat!("mma::", stringify!($name)), Layout::$layout, &a, &b, c)
            }
        )*
    };
}

of_16_rows! {
    m16n8k4_f64, M16N8K4_F64,
        "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64",
        "{{{0}, {1}, {2}, {3}}}, {{{4}, {5}}}, {{{6}}}, {{{0}, {1}, {2}, {3}}}",
        a[0 1], b[0];
    m16n8k8_f64, M16N8K8_F64,
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
        "{{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, {{{8}, {9}}}, {{{0}, {1}, {2}, {3}}}",
        a[0 1 2 3], b[0 1];
    m16n8k16_f64, M16N8K16_F64,
        "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
        "{{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}}}, {{{12}, {13}, {14}, {15}}}, {{{0}, {1}, {2}, {3}}}",
        a[0 1 2 3 4 5 6 7], b[0 1 2 3];
}

/// `A * B + C` of tf32 with sums in f32, 16x8 by 8x8:
/// [`Layout::M16N8K8_TF32`](super::Layout::M16N8K8_TF32).
///
/// The lower 13 bits of `a` and `b` are ignored: [`round_to_tf32`](super::round_to_tf32) first, or
/// they are cut off.
///
/// # Safety
///
/// All 32 lanes of the warp reach this call together.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn m16n8k8_tf32(a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4] {
    let (a, b) = (a.map(f32::to_bits), b.map(f32::to_bits));
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for the lanes; no memory is touched.
    unsafe {
        instruction!(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
            "{{{0:e}, {1:e}, {2:e}, {3:e}}}, {{{4:e}, {5:e}, {6:e}, {7:e}}}, {{{8:e}, {9:e}}}, {{{0:e}, {1:e}, {2:e}, {3:e}}}",
            a[0 1 2 3], b[0 1], c[d0 = 0 d1 = 1 d2 = 2 d3 = 3]
        )
    }
    #[cfg(not(cuda_device))]
    simulated(
        "mma::m16n8k8_tf32",
        Products::Tf32,
        Layout::M16N8K8_TF32,
        &a,
        &b,
        c.map(f32::to_bits),
    )
    .map(f32::from_bits)
}

/// Defines the multiplications of elements of which several share a register.
macro_rules! of_packed {
    ($($name:ident, $of:literal, $sum:ident, $layout:ident, $products:expr, $instruction:literal;)*) => {
        $(
            #[doc = concat!("`A * B + C` of ", $of, " with sums in ", stringify!($sum), ": [`Layout::", stringify!($layout), "`](super::Layout::", stringify!($layout), ").")]
            /// The first element of a register is in its lowest bits.
            ///
            /// # Safety
            ///
            /// All 32 lanes of the warp reach this call together.
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub unsafe fn $name(a: [u32; 4], b: [u32; 2], c: [$sum; 4]) -> [$sum; 4] {
                #[cfg(cuda_device)]
                // SAFETY: the caller vouches for the lanes; no memory is touched.
                unsafe {
                    instruction!(
                        $instruction,
                        "{{{0:e}, {1:e}, {2:e}, {3:e}}}, {{{4:e}, {5:e}, {6:e}, {7:e}}}, {{{8:e}, {9:e}}}, {{{0:e}, {1:e}, {2:e}, {3:e}}}",
                        a[0 1 2 3], b[0 1], c[d0 = 0 d1 = 1 d2 = 2 d3 = 3]
                    )
                }
                #[cfg(not(cuda_device))]
                {
                    let name = concat!("mma::", stringify!($name));
                    let sums = c.map(|sum| u32::from_ne_bytes(sum.to_ne_bytes()));
                    simulated(name, $products, Layout::$layout, &a, &b, sums)
                        .map(|sum| $sum::from_ne_bytes(sum.to_ne_bytes()))
                }
            }
        )*
    };
}

of_packed! {
    m16n8k16_bf16, "bf16", f32, M16N8K16_HALF, Products::Bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
    m16n8k16_f16, "f16", f32, M16N8K16_HALF, Products::F16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
    m16n8k32_s8, "i8", i32, M16N8K32_INTEGERS, Products::Integers8(S8, S8), "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32";
    m16n8k32_u8, "u8", i32, M16N8K32_INTEGERS, Products::Integers8(U8, U8), "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32";
    m16n8k32_s8_u8, "i8 by u8", i32, M16N8K32_INTEGERS, Products::Integers8(S8, U8), "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32";
    m16n8k32_u8_s8, "u8 by i8", i32, M16N8K32_INTEGERS, Products::Integers8(U8, S8), "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32";
}

/// What the simulator makes of a multiplication of f64.
#[cfg(not(cuda_device))]
#[track_caller]
#[inline]
fn simulated_f64<const N: usize>(
    function: &'static str,
    layout: Layout,
    a: &[f64],
    b: &[f64],
    c: [f64; N],
) -> [f64; N] {
    let of = |elements: &[f64]| Registers::of(elements, |x| x.to_bits());
    let products = Products::F64;
    let multiplication = Multiplication { layout, products };
    let sums = multiply(function, multiplication, [of(a), of(b), of(&c)]);
    core::array::from_fn(|i| f64::from_bits(sums.0[i]))
}

/// What the simulator makes of a multiplication whose sums have 32 bits.
#[cfg(not(cuda_device))]
#[track_caller]
#[inline]
fn simulated<const N: usize>(
    function: &'static str,
    products: Products,
    layout: Layout,
    a: &[u32],
    b: &[u32],
    c: [u32; N],
) -> [u32; N] {
    let of = |words: &[u32]| Registers::of(words, |&word| word.into());
    let multiplication = Multiplication { layout, products };
    let sums = multiply(function, multiplication, [of(a), of(b), of(&c)]);
    core::array::from_fn(|i| sums.0[i] as u32)
}
