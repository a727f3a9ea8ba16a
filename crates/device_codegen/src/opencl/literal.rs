//! Numbers as OpenCL C writes them, bit for bit.

use crate::ir::Type;

/// A float as LLVM writes it: `1.000000e+00`, or the bits of a double, `0x36A0000000000000`, also
/// for `float`. `None` if it is neither.
pub(super) fn float(ty: &Type, text: &str) -> Option<String> {
    let value = match text.strip_prefix("0x") {
        Some(bits) => f64::from_bits(u64::from_str_radix(bits, 16).ok()?),
        None => text.parse().ok()?,
    };
    match ty {
        Type::Double => Some(match value.is_finite() {
            true => finite(value, ""),
            false => format!("as_double(0x{:016x}ul)", value.to_bits()),
        }),
        Type::Float => {
            let narrow = value as f32;
            Some(match narrow.is_finite() {
                // LLVM writes a float exactly, as the double that it is.
                true if f64::from(narrow).to_bits() != value.to_bits() => return None,
                true => finite(value, "f"),
                false => format!("as_float(0x{:08x}u)", narrow_bits(value)),
            })
        }
        _ => None,
    }
}

/// The bits of an infinity or a NaN as a float: the double's without the end of its fraction,
/// which a conversion would do too, but make a signalling NaN a quiet one.
fn narrow_bits(value: f64) -> u32 {
    let bits = value.to_bits();
    let sign = (bits >> 32) as u32 & 0x8000_0000;
    let fraction = (bits >> 29) as u32 & 0x007f_ffff;
    sign | 0x7f80_0000 | fraction
}

/// Small whole numbers as such, all others in hexadecimal.
fn finite(value: f64, suffix: &str) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let magnitude = value.abs();
    if magnitude.fract() == 0.0 && magnitude < 1e6 {
        return format!("{sign}{magnitude:.1}{suffix}");
    }
    const FRACTION: u32 = 52;
    let bits = magnitude.to_bits();
    let fraction = bits & ((1 << FRACTION) - 1);
    let (whole, exponent) = match bits >> FRACTION {
        0 => (0, -1022),
        biased => (1, biased as i64 - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x{whole}{point}{digits}p{exponent:+}{suffix}")
}

/// An integer of this width, unsigned.
pub(super) fn integer(width: u32, value: i128) -> String {
    let mask = u128::MAX >> (128 - width.clamp(1, 128));
    let value = value as u128 & mask;
    let digits = match value > 0xffff && value.count_ones() != 1 && value.is_multiple_of(2)
        || value > 0x7fff_ffff
    {
        true => format!("0x{value:x}"),
        false => value.to_string(),
    };
    match width {
        1 => if value == 1 { "true" } else { "false" }.to_owned(),
        64 => format!("{digits}ul"),
        32 => format!("{digits}u"),
        16 => format!("(ushort){digits}"),
        _ => format!("(uchar){digits}"),
    }
}
