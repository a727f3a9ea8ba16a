//! Integer intrinsics that LLVM 7 does not have, as comparisons and selections.

use crate::error::{Error, Result};
use crate::ir::{Call, CastOperation, Editor, Type, Value};

/// Half of the widest integers.
const HALF: Type = Type::Integer(64);

/// The two arguments of a call.
pub(super) fn two<'c>(
    editor: &Editor<'_>,
    base: &str,
    call: &'c Call,
) -> Result<(&'c Value, &'c Value)> {
    match call.arguments.as_slice() {
        [left, right] => Ok((left, right)),
        _ => Err(wrong_arguments(editor, base)),
    }
}

pub(super) fn wrong_arguments(editor: &Editor<'_>, base: &str) -> Error {
    editor.error(format!(
        "the call of `llvm.{base}` does not have the intrinsic's arguments"
    ))
}

/// The integer type of the first argument, and its width.
pub(super) fn integer<'c>(
    editor: &Editor<'_>,
    base: &str,
    call: &'c Call,
) -> Result<(&'c Type, u32)> {
    let ty = call.ty.parameters.first();
    ty.and_then(|ty| Some((ty, ty.integer_width()?)))
        .filter(|(_, width)| *width <= 128)
        .ok_or_else(|| wrong_arguments(editor, base))
}

/// The smallest number of a signed type, as LLVM writes it.
pub(super) fn signed_minimum(width: u32) -> i128 {
    i128::MIN >> (128 - width)
}

/// `smin`, `smax`, `umin`, `umax`: `a < b ? a : b`
pub(super) fn extremum(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let (left, right) = two(editor, base, call)?;
    let (ty, _) = integer(editor, base, call)?;
    let predicate = match base {
        "smin" => "slt",
        "smax" => "sgt",
        "umin" => "ult",
        _ => "ugt",
    };
    let first = editor.compare(predicate, ty, left, right);
    Ok(editor.select(&first, ty, left, right))
}

/// `abs`: `a < 0 ? 0 - a : a`
pub(super) fn absolute(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let (value, _) = two(editor, base, call)?;
    let (ty, _) = integer(editor, base, call)?;
    let zero = Value::integer(0);
    let negated = editor.binary("sub", ty, &zero, value);
    let is_negative = editor.compare("slt", ty, value, &zero);
    Ok(editor.select(&is_negative, ty, &negated, value))
}

/// `scmp`, `ucmp`: `(a > b) - (a < b)`
pub(super) fn three_way(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let (left, right) = two(editor, base, call)?;
    let (ty, _) = integer(editor, base, call)?;
    let (greater, less) = match base {
        "scmp" => ("sgt", "slt"),
        _ => ("ugt", "ult"),
    };
    let result = &call.ty.result;
    let greater = editor.compare(greater, ty, left, right);
    let less = editor.compare(less, ty, left, right);
    let greater = editor.cast(CastOperation::ZeroExtend, &Type::BOOL, &greater, result);
    let less = editor.cast(CastOperation::ZeroExtend, &Type::BOOL, &less, result);
    Ok(editor.binary("sub", result, &greater, &less))
}

/// `fshl`, `fshr`, of which rotations are made: the left (right) end of `a` and `b` joined,
/// shifted by a distance that is taken modulo the width.
///
/// libNVVM knows both, but below `compute_100` it expands a 64-bit rotation to two shifts without
/// taking their distance modulo 64, and PTX's shifts clamp it instead.
pub(super) fn funnel_shift(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let (ty, width) = integer(editor, base, call)?;
    let [high, low, distance] = call.arguments.as_slice() else {
        return Err(wrong_arguments(editor, base));
    };
    if !width.is_power_of_two() {
        return Err(editor.error(format!(
            "`llvm.{base}` of {width} bits cannot be translated for a GPU"
        )));
    }
    // Two shifts the other way, the first by one, so that no shift is ever by the full width.
    let (one, last) = (Value::integer(1), Value::integer(i128::from(width) - 1));
    let distance = editor.binary("and", ty, distance, &last);
    let rest = editor.binary("xor", ty, &distance, &last);
    let (left, right) = match base {
        "fshl" => {
            let low = editor.binary("lshr", ty, low, &one);
            (
                editor.binary("shl", ty, high, &distance),
                editor.binary("lshr", ty, &low, &rest),
            )
        }
        _ => {
            let high = editor.binary("shl", ty, high, &one);
            (
                editor.binary("shl", ty, &high, &rest),
                editor.binary("lshr", ty, low, &distance),
            )
        }
    };
    Ok(editor.binary("or", ty, &left, &right))
}

/// `uadd.sat`, `usub.sat`, `sadd.sat`, `ssub.sat`
pub(super) fn saturating(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let (left, right) = two(editor, base, call)?;
    let (ty, width) = integer(editor, base, call)?;
    let zero = Value::integer(0);
    let is_add = base.contains("add");
    let wrapped = editor.binary(if is_add { "add" } else { "sub" }, ty, left, right);
    let overflows = overflowed(editor, base, ty, left, right, &wrapped);
    let limit = match base {
        "uadd.sat" => Value::integer(-1),
        "usub.sat" => zero,
        _ => {
            // The limit on the side of the left operand.
            let is_negative = editor.compare("slt", ty, left, &zero);
            let minimum = signed_minimum(width);
            let limits = [minimum, !minimum].map(Value::integer);
            editor.select(&is_negative, ty, &limits[0], &limits[1])
        }
    };
    Ok(editor.select(&overflows, ty, &limit, &wrapped))
}

/// Whether a sum or a difference, as `base` begins to say (`sadd`, `usub`), is wrapped.
pub(super) fn overflowed(
    editor: &mut Editor<'_>,
    base: &str,
    ty: &Type,
    left: &Value,
    right: &Value,
    wrapped: &Value,
) -> Value {
    match &base[..4] {
        "uadd" => editor.compare("ult", ty, wrapped, left),
        "usub" => editor.compare("ult", ty, left, right),
        base => {
            // The sum overflows if its sign differs from both signs, the difference if it differs
            // from the left sign and the two signs differ.
            let other = if base == "sadd" { wrapped } else { left };
            let against_left = editor.binary("xor", ty, left, wrapped);
            let against_right = editor.binary("xor", ty, right, other);
            let both = editor.binary("and", ty, &against_left, &against_right);
            editor.compare("slt", ty, &both, &Value::integer(0))
        }
    }
}

/// `ctlz`, `cttz`, `ctpop` of 128 bits, from those of its halves.
pub(super) fn count_in_halves(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let (wide, _) = integer(editor, base, call)?;
    let Some(value) = call.arguments.first() else {
        return Err(wrong_arguments(editor, base));
    };
    let (high, low) = halves(editor, wide, value);
    let mut count = |half: &Value| {
        let name = format!("llvm.{base}.i64");
        match base {
            "ctpop" => editor.intrinsic(&name, &HALF, &[(&HALF, half)]),
            // 64 for zero.
            _ => editor.intrinsic(
                &name,
                &HALF,
                &[(&HALF, half), (&Type::BOOL, &Value::integer(0))],
            ),
        }
    };
    let (high_count, low_count) = (count(&high), count(&low));
    let both = editor.binary("add", &HALF, &high_count, &low_count);
    // Zeros are counted from one end: the half at the other end counts only if this one is all
    // zeros.
    let total = match base {
        "ctpop" => both,
        _ => {
            let (near, near_count) = match base {
                "ctlz" => (&high, &high_count),
                _ => (&low, &low_count),
            };
            let is_zero = editor.compare("eq", &HALF, near, &Value::integer(0));
            editor.select(&is_zero, &HALF, &both, near_count)
        }
    };
    Ok(editor.cast(CastOperation::ZeroExtend, &HALF, &total, wide))
}

/// `bswap`, `bitreverse` of 128 bits: each half reversed, and the two swapped.
pub(super) fn reverse_in_halves(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let (wide, _) = integer(editor, base, call)?;
    let [value] = call.arguments.as_slice() else {
        return Err(wrong_arguments(editor, base));
    };
    let (high, low) = halves(editor, wide, value);
    let mut reverse = |half: &Value| {
        let name = format!("llvm.{base}.i64");
        let reversed = editor.intrinsic(&name, &HALF, &[(&HALF, half)]);
        editor.cast(CastOperation::ZeroExtend, &HALF, &reversed, wide)
    };
    let (new_low, new_high) = (reverse(&high), reverse(&low));
    let new_high = editor.binary("shl", wide, &new_high, &Value::integer(64));
    Ok(editor.binary("or", wide, &new_high, &new_low))
}

/// The upper and the lower 64 bits of 128.
fn halves(editor: &mut Editor<'_>, wide: &Type, value: &Value) -> (Value, Value) {
    let high = editor.binary("lshr", wide, value, &Value::integer(64));
    let high = editor.cast(CastOperation::Truncate, wide, &high, &HALF);
    let low = editor.cast(CastOperation::Truncate, wide, value, &HALF);
    (high, low)
}
