//! `llvm.*.with.overflow` of 8 and 128 bits, which libNVVM lacks: the wrapped result and whether
//! it is wrong.

use super::integers::{integer, overflowed, signed_minimum, two};
use crate::error::Result;
use crate::ir::{Call, CastOperation, Editor, Type, Value};

/// `{ result, overflows }`
pub(super) fn with_overflow(editor: &mut Editor<'_>, base: &str, call: &Call) -> Result<Value> {
    let (left, right) = two(editor, base, call)?;
    let (ty, width) = integer(editor, base, call)?;
    let operation = &base[1..4];
    let is_signed = base.starts_with('s');
    let wrapped = editor.binary(operation, ty, left, right);
    let overflows = match operation {
        "add" | "sub" => overflowed(editor, base, ty, left, right, &wrapped),
        _ if width <= 64 => {
            product_in_double_width(editor, ty, width, is_signed, left, right, &wrapped)
        }
        _ => product_undone_by_division(editor, ty, width, is_signed, left, right, &wrapped),
    };
    Ok(editor.pair((ty, wrapped), (&Type::BOOL, overflows)))
}

/// The product of twice the width is not the wrapped one.
fn product_in_double_width(
    editor: &mut Editor<'_>,
    ty: &Type,
    width: u32,
    is_signed: bool,
    left: &Value,
    right: &Value,
    wrapped: &Value,
) -> Value {
    let double = Type::Integer(width * 2);
    let extend = match is_signed {
        true => CastOperation::SignExtend,
        false => CastOperation::ZeroExtend,
    };
    let left = editor.cast(extend, ty, left, &double);
    let right = editor.cast(extend, ty, right, &double);
    let exact = editor.binary("mul", &double, &left, &right);
    let wrapped = editor.cast(extend, ty, wrapped, &double);
    editor.compare("ne", &double, &exact, &wrapped)
}

/// The product, divided by its left factor, is not the right factor.
///
/// A left factor of 0 never overflows, and one of -1 only with the smallest number; both are
/// excluded from the division.
fn product_undone_by_division(
    editor: &mut Editor<'_>,
    ty: &Type,
    width: u32,
    is_signed: bool,
    left: &Value,
    right: &Value,
    wrapped: &Value,
) -> Value {
    let (zero, one, minus_one) = (Value::integer(0), Value::integer(1), Value::integer(-1));
    let truth = &Type::BOOL;
    let is_zero = editor.compare("eq", ty, left, &zero);
    if !is_signed {
        let divisor = editor.select(&is_zero, ty, &one, left);
        let quotient = editor.binary("udiv", ty, wrapped, &divisor);
        let differs = editor.compare("ne", ty, &quotient, right);
        return editor.select(&is_zero, truth, &zero, &differs);
    }
    let is_minus_one = editor.compare("eq", ty, left, &minus_one);
    let is_special = editor.binary("or", truth, &is_zero, &is_minus_one);
    let divisor = editor.select(&is_special, ty, &one, left);
    let quotient = editor.binary("sdiv", ty, wrapped, &divisor);
    let differs = editor.compare("ne", ty, &quotient, right);
    let minimum = Value::integer(signed_minimum(width));
    let is_minimum = editor.compare("eq", ty, right, &minimum);
    let special = editor.binary("and", truth, &is_minus_one, &is_minimum);
    editor.select(&is_special, truth, &special, &differs)
}
