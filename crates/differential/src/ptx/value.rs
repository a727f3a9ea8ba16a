//! Types of PTX and what an instruction computes of plain values.

use anyhow::{Context, Result, bail};

/// A type such as `s32`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Type {
    pub(super) kind: Kind,
    pub(super) width: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Signed,
    Unsigned,
    Float,
    Predicate,
}

impl Type {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "pred" {
            return Some(Self {
                kind: Kind::Predicate,
                width: 1,
            });
        }
        let (kind, width) = text.split_at_checked(1)?;
        let kind = match kind {
            "s" => Kind::Signed,
            "u" | "b" => Kind::Unsigned,
            "f" => Kind::Float,
            _ => return None,
        };
        let width = width
            .parse()
            .ok()
            .filter(|width| [8, 16, 32, 64].contains(width))?;
        Some(Self { kind, width })
    }

    pub(super) fn of(parts: &[String]) -> Result<Self> {
        parts
            .iter()
            .rev()
            .find_map(|part| Self::parse(part))
            .context("an instruction without a type")
    }

    /// The low bits of a value, extended as the type says.
    pub(super) fn number(self, bits: u64) -> i128 {
        let unused = 64 - self.width.max(1);
        match self.kind {
            Kind::Signed => i128::from(((bits << unused) as i64) >> unused),
            _ => i128::from((bits << unused) >> unused),
        }
    }

    pub(super) fn float(self, bits: u64) -> f64 {
        match self.width {
            16 => half(bits),
            32 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        }
    }
}

/// The bits of a float. Every NaN that an instruction makes is this one.
pub(super) fn float_bits(ty: Type, value: f64) -> u64 {
    match (ty.width, value.is_nan()) {
        (16, true) => 0x7fff,
        (16, false) => half_bits(value),
        (32, true) => 0x7fff_ffff,
        (32, false) => u64::from((value as f32).to_bits()),
        (_, true) => 0x7fff_ffff_ffff_ffff,
        (_, false) => value.to_bits(),
    }
}

/// The number that the bits of a half stand for.
fn half(bits: u64) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 31, (bits & 0x3ff) as f64);
    let magnitude = match exponent {
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => fraction * 2_f64.powi(-24),
        _ => (1024.0 + fraction) * 2_f64.powi(exponent as i32 - 25),
    };
    if bits >> 15 & 1 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// The bits of the half nearest to a number, of two that are as near the even one.
fn half_bits(value: f64) -> u64 {
    let (sign, magnitude) = (value.to_bits() >> 63 << 15, value.abs());
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    // The exponent of the last place, of a subnormal half if it is less.
    let last = ((magnitude.to_bits() >> 52) as i32 - 1023 - 10).max(-24);
    let places = (magnitude * 2_f64.powi(-last)).round_ties_even() as u64;
    // 1024 and more are a normal half, whose first bit is the lowest of its exponent.
    sign | ((last + 24) as u64 * 1024 + places)
}

pub(super) fn compare(predicate: &str, ty: Type, left: u64, right: u64) -> Result<bool> {
    if ty.kind == Kind::Float {
        let (left, right) = (ty.float(left), ty.float(right));
        let unordered = left.is_nan() || right.is_nan();
        let ordered = match predicate.trim_end_matches('u') {
            "eq" => left == right,
            "ne" => left != right && !unordered,
            "lt" => left < right,
            "le" => left <= right,
            "gt" => left > right,
            "ge" => left >= right,
            "num" | "n" => return Ok(!unordered),
            "nan" => return Ok(unordered),
            _ => bail!("the comparison `{predicate}`"),
        };
        let accepts_unordered = predicate.len() == 3 && predicate.ends_with('u');
        return Ok(ordered || accepts_unordered && unordered);
    }
    let unsigned = Type {
        kind: Kind::Unsigned,
        ..ty
    };
    let ((a, b), (c, d)) = (
        (ty.number(left), ty.number(right)),
        (unsigned.number(left), unsigned.number(right)),
    );
    Ok(match predicate {
        "eq" => a == b,
        "ne" => a != b,
        "lt" => a < b,
        "le" => a <= b,
        "gt" => a > b,
        "ge" => a >= b,
        "lo" => c < d,
        "ls" => c <= d,
        "hi" => c > d,
        "hs" => c >= d,
        _ => bail!("the comparison `{predicate}`"),
    })
}

/// `cvt`: the parts between the opcode and the two types say how to round and whether to saturate.
pub(super) fn convert(parts: &[String], to: Type, from: Type, bits: u64) -> Result<u64> {
    let rounding = parts
        .iter()
        .find(|part| part.len() >= 2 && part.starts_with('r'))
        .map(String::as_str);
    let saturates = parts.iter().any(|part| part == "sat");
    let (is_float, was_float) = (to.kind == Kind::Float, from.kind == Kind::Float);
    if !was_float {
        let value = from.number(bits);
        if !is_float {
            let clamped = if saturates {
                value.clamp(minimum(to), maximum(to))
            } else {
                value
            };
            return Ok(to.number(clamped as u64) as u64);
        }
        return Ok(match (to.width, rounding) {
            // What `f64` does not hold is infinite.
            (16, Some("rn")) => float_bits(to, value as f64),
            (32, Some("rn")) => u64::from((value as f32).to_bits()),
            (64, Some("rn")) => (value as f64).to_bits(),
            _ => bail!("rounding {rounding:?}"),
        });
    }
    let value = from.float(bits);
    let whole = match rounding {
        Some("rzi") => value.trunc(),
        Some("rni") => value.round_ties_even(),
        Some("rmi") => value.floor(),
        Some("rpi") => value.ceil(),
        _ => value,
    };
    if is_float {
        if saturates {
            bail!("saturation of floats");
        }
        return match (to.width, from.width, rounding) {
            (32, 64, Some("rn"))
            | (16, 32 | 64, Some("rn"))
            | (64, 32, None)
            | (32 | 64, 16, None)
            | (_, _, Some("rzi" | "rni" | "rmi" | "rpi")) => Ok(float_bits(to, whole)),
            _ => bail!("rounding {rounding:?}"),
        };
    }
    if whole.is_nan() {
        // So the PTX reference has it.
        let is_zero = from.width < 64 && to.width < 64;
        return Ok(if is_zero { 0 } else { 1 << (to.width - 1) });
    }
    Ok((whole as i128).clamp(minimum(to), maximum(to)) as u64)
}

fn minimum(ty: Type) -> i128 {
    match ty.kind {
        Kind::Signed => -(1 << (ty.width - 1)),
        _ => 0,
    }
}

fn maximum(ty: Type) -> i128 {
    match ty.kind {
        Kind::Signed => (1 << (ty.width - 1)) - 1,
        _ => (1 << ty.width) - 1,
    }
}

/// `prmt.b32` in its default mode.
pub(super) fn permute(left: u64, right: u64, selector: u64) -> u64 {
    let bytes = (left & 0xffff_ffff) | right << 32;
    (0..4).fold(0, |out, position| {
        let control = selector >> (4 * position) & 15;
        let byte = bytes >> (8 * (control & 7)) & 255;
        let byte = match (control & 8 != 0, byte & 128 != 0) {
            (true, true) => 255,
            (true, false) => 0,
            (false, _) => byte,
        };
        out | byte << (8 * position)
    })
}
