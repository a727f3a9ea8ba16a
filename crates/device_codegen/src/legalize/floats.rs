//! Float operations that a dialect lacks.

use super::Outcome;
use super::integers::{two, wrong_arguments};
use crate::error::Result;
use crate::ir::{Call, CastOperation, Constant, Editor, Operand, Type, Value, float_constant};

/// `fneg x` becomes `-0.0 - x`, as LLVM 7 says it.
pub(super) fn negate(editor: &mut Editor<'_>, operand: &Operand) -> Outcome {
    let zero = Value::Constant(Constant::Float("-0.000000e+00".into()));
    Outcome::Replace(Some(editor.binary(
        "fsub",
        &operand.ty,
        &zero,
        &operand.value,
    )))
}

/// `frem a, b` calls libdevice, whose function is exact: libNVVM would expand it to
/// `a - floor(a / b) * b`, which is rounded three times and is NaN for an infinite b.
pub(super) fn remainder(
    editor: &mut Editor<'_>,
    ty: &Type,
    left: &Value,
    right: &Value,
) -> Result<Outcome> {
    let name = match ty {
        Type::Float => "__nv_fmodf",
        Type::Double => "__nv_fmod",
        _ => {
            return Err(editor.error(format!(
                "the remainder of type `{ty}` cannot be translated for a GPU; convert to f32 or f64"
            )));
        }
    };
    let value = editor.intrinsic(name, ty, &[(ty, left), (ty, right)]);
    Ok(Outcome::Replace(Some(value)))
}

/// The float type of the first argument with the integer type of its bits and the width of its
/// mantissa.
struct Format<'c> {
    float: &'c Type,
    bits: Type,
    width: u32,
    mantissa: u32,
}

fn format<'c>(editor: &Editor<'_>, base: &str, call: &'c Call) -> Result<Format<'c>> {
    let format = |float, width, mantissa| Format {
        float,
        bits: Type::Integer(width),
        width,
        mantissa,
    };
    match call.ty.parameters.first() {
        Some(ty @ Type::Float) => Ok(format(ty, 32, 23)),
        Some(ty @ Type::Double) => Ok(format(ty, 64, 52)),
        _ => Err(editor.error(format!(
            "`llvm.{base}` can be translated for `float` and `double` only"
        ))),
    }
}

/// `fabs`, `trunc`, `rint` and its synonyms: libNVVM has them under names of its own.
pub(super) fn by_nvvm_name(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let format = format(editor, base, call)?;
    let [value] = call.arguments.as_slice() else {
        return Err(wrong_arguments(editor, base));
    };
    let name = match base {
        "fabs" | "trunc" => base,
        // To the nearest, ties to even: PTX's `cvt.rni`.
        _ => "round",
    };
    let suffix = if format.width == 32 { "f" } else { "d" };
    let name = format!("llvm.nvvm.{name}.{suffix}");
    Ok(editor.intrinsic(&name, format.float, &[(format.float, value)]))
}

/// `copysign(x, y)`: the bits of x but for its sign, which is y's.
pub(super) fn copy_sign(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let Format {
        float, bits, width, ..
    } = format(editor, base, call)?;
    let (magnitude, sign) = two(editor, base, call)?;
    let mask = 1_i128 << (width - 1);
    let magnitude = editor.cast(CastOperation::Bitcast, float, magnitude, &bits);
    let magnitude = editor.binary("and", &bits, &magnitude, &Value::integer(mask - 1));
    let sign = editor.cast(CastOperation::Bitcast, float, sign, &bits);
    let sign = editor.binary("and", &bits, &sign, &Value::integer(-mask));
    let both = editor.binary("or", &bits, &magnitude, &sign);
    Ok(editor.cast(CastOperation::Bitcast, &bits, &both, float))
}

/// `minimumnum`, `maximumnum`: the other operand if one is NaN. PTX's `min` and `max` are exactly
/// that, and order -0 below +0.
pub(super) fn extremum_of_numbers(
    editor: &mut Editor<'_>,
    base: &str,
    call: &Call,
) -> Result<Value> {
    let format = format(editor, base, call)?;
    let (left, right) = two(editor, base, call)?;
    let name = if base.starts_with("min") {
        "fmin"
    } else {
        "fmax"
    };
    let suffix = if format.width == 32 { "f" } else { "d" };
    let name = format!("llvm.nvvm.{name}.{suffix}");
    let float = format.float;
    Ok(editor.intrinsic(&name, float, &[(float, left), (float, right)]))
}

/// `minimum`, `maximum`: as above, but NaN if one operand is. `a + b` is a NaN then.
pub(super) fn ordered_extremum(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let number = extremum_of_numbers(editor, base, call)?;
    let (left, right) = two(editor, base, call)?;
    let float = &call.ty.result;
    let is_unordered = editor.compare("uno", float, left, right);
    let nan = editor.binary("fadd", float, left, right);
    Ok(editor.select(&is_unordered, float, &nan, &number))
}

/// `fptosi.sat`, `fptoui.sat`: the nearest number that the integer type has; 0 for NaN.
///
/// The plain conversion is undefined outside of the type's range, and is not selected there.
pub(super) fn to_integer_saturating(
    editor: &mut Editor<'_>,
    base: &str,
    call: &Call,
) -> Result<Value> {
    let Format { float, .. } = format(editor, base, call)?;
    let to = &call.ty.result;
    let ([value], Some(width @ 1..=128)) = (call.arguments.as_slice(), to.integer_width()) else {
        return Err(wrong_arguments(editor, base));
    };
    let zero = Value::integer(0);
    let is_signed = base == "fptosi.sat";
    let (conversion, exponent) = match is_signed {
        true => (CastOperation::FloatToSigned, width - 1),
        false => (CastOperation::FloatToUnsigned, width),
    };
    // The limits are powers of two, or zero, and so exact. 2^128 is above all floats: nothing but
    // infinity saturates.
    let above = match (float, exponent) {
        (Type::Float, 128) => f64::INFINITY,
        _ => 2_f64.powi(exponent as i32),
    };
    let (minimum, maximum, below) = match is_signed {
        true => (
            i128::MIN >> (128 - width),
            i128::MAX >> (128 - width),
            -above,
        ),
        false => (0, -1, 0.0),
    };
    let converted = editor.cast(conversion, float, value, to);
    let is_below = editor.compare("olt", float, value, &float_constant(below));
    let clamped = editor.select(&is_below, to, &Value::integer(minimum), &converted);
    let is_above = editor.compare("oge", float, value, &float_constant(above));
    let clamped = editor.select(&is_above, to, &Value::integer(maximum), &clamped);
    // libNVVM takes a constant that it has not worked out for no NaN if compared with itself.
    let is_nan = editor.compare("uno", float, value, &float_constant(0.0));
    Ok(editor.select(&is_nan, to, &zero, &clamped))
}

/// `is.fpclass(x, mask)`: whether x is of one of the classes in the mask, told from its bits.
///
/// The mask's bits, from LLVM's language reference: 0 signalling NaN, 1 quiet NaN, 2 -inf, 3
/// -normal, 4 -subnormal, 5 -0, 6 +0, 7 +subnormal, 8 +normal, 9 +inf.
pub(super) fn is_class(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let Format {
        float,
        bits: ty,
        width,
        mantissa,
    } = format(editor, base, call)?;
    let (value, mask) = two(editor, base, call)?;
    let Some(mask) = mask.as_integer() else {
        return Err(wrong_arguments(editor, base));
    };
    let bits = editor.cast(CastOperation::Bitcast, float, value, &ty);
    let sign_bit = 1_i128 << (width - 1);
    let magnitude = editor.binary("and", &ty, &bits, &Value::integer(sign_bit - 1));
    let is_negative = editor.compare("slt", &ty, &bits, &Value::integer(0));
    let infinity = sign_bit - (1 << mantissa);
    let quiet = infinity | (1 << (mantissa - 1));
    let one_normal = 1 << mantissa;
    // The classes by magnitude: the first of the range, one past its last, the bits in the mask
    // for + and for -.
    let classes = [
        (0, 1, 6, 5),
        (1, one_normal, 7, 4),
        (one_normal, infinity, 8, 3),
        (infinity, infinity + 1, 9, 2),
        (infinity + 1, quiet, 0, 0),
        (quiet, sign_bit, 1, 1),
    ];
    let mut any = Value::integer(0);
    for (first, end, positive, negative) in classes {
        let (positive, negative) = (mask >> positive & 1 == 1, mask >> negative & 1 == 1);
        if !positive && !negative {
            continue;
        }
        // magnitude - first < end - first, without sign: one comparison for the range.
        let offset = editor.binary("sub", &ty, &magnitude, &Value::integer(first));
        let mut holds = editor.compare("ult", &ty, &offset, &Value::integer(end - first));
        if positive != negative {
            let bool_type = Type::BOOL;
            let sign = match negative {
                true => is_negative.clone(),
                false => editor.binary("xor", &bool_type, &is_negative, &Value::integer(1)),
            };
            holds = editor.binary("and", &bool_type, &holds, &sign);
        }
        any = editor.binary("or", &Type::BOOL, &any, &holds);
    }
    Ok(any)
}
