//! Copies between places that may overlap.
//!
//! libNVVM 12.9 writes a `memmove` of known length as accesses as wide as the alignment allows, and
//! what is left over as narrower ones, which come last in both directions: where the target lies
//! behind the source, they read what the wide ones have overwritten. (`[u32; 5]`, rotated right by
//! two: the last element is that which the copy of the first two has just written. It is so for
//! `compute_75`, `compute_90` and `compute_100`, at opt levels 0 and 3.) So what is left over is
//! read before the copy and written after it.

use super::Outcome;
use super::division::moved;
use super::editor::Editor;
use crate::ir::{Call, Operand, Operation, Type, Value};

/// The widest access, in bytes: none of a multiple of it is left over.
const WIDEST: u64 = 16;

/// Writes a `memmove` of known length out as one of a multiple of 16 bytes, if any, and loads
/// before and stores behind it. Any other length is put out of sight, since libNVVM may find it out.
pub(super) fn rewrite(editor: &mut Editor<'_>, call: &mut Call) -> Outcome {
    let ([to, from, length, volatile], [_, _, ty, _]) =
        (call.arguments.as_slice(), call.ty.parameters.as_slice())
    else {
        return Outcome::Keep;
    };
    let known = length.as_integer();
    let Some(bytes) = known.and_then(|bytes| u64::try_from(bytes).ok()) else {
        call.arguments[2] = moved(editor, ty, length);
        return Outcome::Keep;
    };
    let whole = bytes - bytes % WIDEST;
    if whole == bytes || volatile.as_integer() != Some(0) {
        return Outcome::Keep;
    }
    let align = call.align_of(0).min(call.align_of(1));
    let at = |editor: &mut Editor<'_>, position: usize, base: &Value, offset: u64| {
        let ty = call.ty.parameters[position].clone();
        let address = Operation::ElementPointer {
            flags: Vec::new(),
            source: Type::Integer(8),
            base: Operand {
                ty: ty.clone(),
                value: base.clone(),
            },
            indices: vec![Operand {
                ty: Type::Integer(64),
                value: Value::integer(offset.into()),
            }],
        };
        let value = editor.value(ty.clone(), address);
        Operand { ty, value }
    };
    let mut parts = Vec::new();
    let mut offset = whole;
    while offset < bytes {
        let widths = [8, 4, 2];
        let fits = |width: &u64| *width <= align && *width <= bytes - offset;
        let width = widths.into_iter().find(fits).unwrap_or(1);
        let pointer = at(editor, 1, from, offset);
        let ty = Type::Integer(8 * width as u32);
        let load = Operation::Load {
            ty: ty.clone(),
            pointer,
            align: Some(width),
            volatile: false,
            order: None,
        };
        let value = editor.value(ty.clone(), load);
        parts.push((offset, width, Operand { ty, value }));
        offset += width;
    }
    if whole > 0 {
        let mut call = call.clone();
        call.arguments[2] = Value::integer(whole.into());
        editor.effect(Operation::Call(Box::new(call)));
    }
    for (offset, width, value) in parts {
        let pointer = at(editor, 0, to, offset);
        editor.effect(Operation::Store {
            value,
            pointer,
            align: Some(width),
            volatile: false,
            order: None,
        });
    }
    Outcome::Replace(None)
}
