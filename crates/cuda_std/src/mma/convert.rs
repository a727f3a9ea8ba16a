//! Numbers of 8 and 16 bits, which tensor cores multiply: from f32, rounded to nearest, and to f32.

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

/// Defines the rounding of two f32 to 8 bits each, given the bits of fraction, the bias of the
/// exponent and the largest number.
macro_rules! pairs_of_8_bits {
    ($($name:ident, $instruction:literal, $type:literal, $fraction:literal, $bias:literal, $largest:literal;)*) => {
        $(
            #[doc = concat!("Two numbers as ", $type, ", `low` in the lower byte; each the nearest to the f32, or of")]
            /// two that are as near the even one. What is too large, infinity too, becomes the
            /// largest number; NaN becomes 0x7F. One instruction from `compute_89` on, as the PTX
            /// ISA has it; it has not run on a GPU yet.
            #[inline(always)]
            pub fn $name(low: f32, high: f32) -> u16 {
                #[cfg(all(cuda_device, target_feature = "compute_89"))]
                {
                    let pair: u32;
                    // SAFETY: it touches nothing.
                    unsafe {
                        asm!(
                            concat!(
                                "{{ .reg .b16 pair; ", $instruction, " pair, {}, {}; ",
                                "cvt.u32.u16 {:e}, pair; }}"
                            ),
                            in(xmm_reg) high, in(xmm_reg) low, out(reg) pair,
                            options(pure, nomem, nostack, preserves_flags)
                        );
                    }
                    pair as u16
                }
                #[cfg(not(all(cuda_device, target_feature = "compute_89")))]
                {
                    let [low, high] =
                        [low, high].map(|x| float8_nearest_to::<$fraction, $bias, $largest>(x));
                    low | high << 8
                }
            }
        )*
    };
}

pairs_of_8_bits! {
    pair_of_e4m3, "cvt.rn.satfinite.e4m3x2.f32", "e4m3", 3, 7, 0x7E;
    pair_of_e5m2, "cvt.rn.satfinite.e5m2x2.f32", "e5m2", 2, 15, 0x7B;
}

/// The bits of the float of 8 bits nearest to `x`.
#[cfg(not(all(cuda_device, target_feature = "compute_89")))]
#[inline(always)]
fn float8_nearest_to<const FRACTION: u32, const BIAS: u32, const LARGEST: u32>(x: f32) -> u16 {
    let (sign, bits) = (x.to_bits() >> 24 & 0x80, x.to_bits() & 0x7FFF_FFFF);
    let smallest_normal = (128 - BIAS) << 23;
    if x.is_nan() {
        return 0x7F;
    }
    let magnitude = if bits < smallest_normal {
        // The sum's last place is that of the smallest number: the addition rounds.
        let unit = f32::from_bits((128 - BIAS + 23 - FRACTION) << 23);
        (f32::from_bits(bits) + unit).to_bits() - unit.to_bits()
    } else {
        let (cut, last) = (23 - FRACTION, bits >> (23 - FRACTION) & 1);
        let rounded = bits + (1 << (cut - 1)) - 1 + last;
        (rounded - ((127 - BIAS) << 23)) >> cut
    };
    (sign
        | if magnitude < LARGEST {
            magnitude
        } else {
            LARGEST
        }) as u16
}

/// The number with these bits as an e4m3: a sign, 4 bits of exponent and 3 of fraction; no infinity,
/// and one NaN of each sign.
#[inline(always)]
pub fn of_e4m3(bits: u8) -> f32 {
    let (sign, exponent, fraction) = (bits as u32 >> 7, bits as u32 >> 3 & 15, bits as u32 & 7);
    let magnitude = match (exponent, fraction) {
        (15, 7) => f32::NAN,
        (0, _) => fraction as f32 / 512.0,
        _ => f32::from_bits((exponent + 127 - 7) << 23 | fraction << 20),
    };
    f32::from_bits(sign << 31 | magnitude.to_bits())
}

/// The number with these bits as an e5m2: the upper half of an f16.
#[inline(always)]
pub fn of_e5m2(bits: u8) -> f32 {
    of_f16((bits as u16) << 8)
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
