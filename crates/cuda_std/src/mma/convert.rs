//! Numbers of 16 bits, which tensor cores multiply: from f32, rounded to nearest, and to f32.

#[cfg(cuda_device)]
use core::arch::asm;

/// Defines the rounding of two f32 to 16 bits each.
macro_rules! pairs {
    ($($name:ident, $instruction:literal, $type:literal, $rounded:ident;)*) => {
        $(
            #[doc = concat!("Two numbers as ", $type, ", `low` in the lower half; each the nearest to the f32, or of")]
            /// two that are as near the even one. What is too large becomes infinite.
            #[inline(always)]
            pub fn $name(low: f32, high: f32) -> u32 {
                #[cfg(all(cuda_device, cuda_arch_at_least = "80"))]
                {
                    let pair: u32;
                    // SAFETY: it touches nothing.
                    unsafe {
                        asm!(
                            concat!($instruction, " {:e}, {}, {};"),
                            out(reg) pair, in(xmm_reg) high, in(xmm_reg) low,
                            options(pure, nomem, nostack, preserves_flags)
                        );
                    }
                    pair
                }
                #[cfg(not(all(cuda_device, cuda_arch_at_least = "80")))]
                {
                    $rounded(low) | $rounded(high) << 16
                }
            }
        )*
    };
}

pairs! {
    pair_of_bf16, "cvt.rn.bf16x2.f32", "bf16", bf16_nearest_to;
    pair_of_f16, "cvt.rn.f16x2.f32", "f16", f16_nearest_to;
}

/// The number that these bits of a bf16 stand for.
#[inline(always)]
pub fn of_bf16(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// The number that these bits of an f16 stand for.
#[inline(always)]
pub fn of_f16(bits: u16) -> f32 {
    #[cfg(cuda_device)]
    {
        let number: f32;
        // SAFETY: it touches nothing.
        unsafe {
            asm!(
                "{{ .reg .b16 half; cvt.u16.u32 half, {:e}; cvt.f32.f16 {}, half; }}",
                in(reg) bits as u32, out(xmm_reg) number,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        number
    }
    #[cfg(not(cuda_device))]
    {
        let (sign, rest) = ((bits as u32 & 0x8000) << 16, bits as u32 & 0x7FFF);
        // As the exponent and the fraction of an f32 it is too small by the difference of the
        // biases; the product is exact, also of the numbers below the smallest normal f16.
        let magnitude = if rest < 0x7C00 {
            f32::from_bits(rest << 13) * f32::from_bits((127 + 112) << 23)
        } else {
            f32::from_bits(0x7F80_0000 | rest << 13)
        };
        f32::from_bits(sign | magnitude.to_bits())
    }
}

/// The bits of the bf16 nearest to `x`.
#[cfg(not(all(cuda_device, cuda_arch_at_least = "80")))]
#[inline(always)]
fn bf16_nearest_to(x: f32) -> u32 {
    let bits = x.to_bits();
    if x.is_nan() {
        return 0x7FFF;
    }
    // Half of the last place, or a little less where the last place is even.
    (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
}

/// The bits of the f16 nearest to `x`.
#[cfg(not(all(cuda_device, cuda_arch_at_least = "80")))]
#[inline(always)]
fn f16_nearest_to(x: f32) -> u32 {
    let (sign, bits) = (x.to_bits() >> 16 & 0x8000, x.to_bits() & 0x7FFF_FFFF);
    const SMALLEST_NORMAL: u32 = (127 - 14) << 23;
    const TOO_LARGE: u32 = (127 + 16) << 23;
    if x.is_nan() {
        0x7FFF
    } else if bits >= TOO_LARGE {
        sign | 0x7C00
    } else if bits < SMALLEST_NORMAL {
        // The sum's last place is that of the smallest f16, 2^-24: the addition rounds.
        let shifted = f32::from_bits(bits) + 0.5;
        sign | (shifted.to_bits() - 0.5_f32.to_bits())
    } else {
        let rounded = bits + 0xFFF + (bits >> 13 & 1);
        sign | ((rounded - ((127 - 15) << 23)) >> 13)
    }
}
