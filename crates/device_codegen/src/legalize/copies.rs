//! Copies between places that may overlap.
//!
//! libNVVM 12.9 writes a `memmove` of known length as accesses as wide as the alignment allows, and
//! what is left over as narrower ones, which come last in both directions: where the target lies
//! behind the source, they read what the wide ones have overwritten. (`[u32; 5]`, rotated right by
//! two: the last element is that which the copy of the first two has just written. It is so for
//! `compute_75`, `compute_90` and `compute_100`, at opt levels 0 and 3.) So what is left over is
//! read before the copy and written after it.
//!
//! It does the same with a length that it does not know, where it knows an alignment: nine bytes
//! on the stack, which it has aligned to four, rotated left by a number that is not constant. There
//! a function copies what would be left over first, if the target lies behind the source.

use super::Outcome;
use super::division::moved;
use super::editor::Editor;
use crate::ir::{Call, Callee, FunctionType, Operand, Operation, Type, Value};

/// The widest access, in bytes: none of a multiple of it is left over.
const WIDEST: u64 = 16;

/// What copies the end of a range first.
const END: &str = "__nvvm_memmove_end";

/// The function of this name. It returns the length that is still to be copied: where the target
/// begins within the source, a multiple of 16 bytes.
pub(super) fn definition(symbol: &str) -> Option<String> {
    (symbol == END).then(|| {
        format!(
            "define internal i64 @{END}(ptr %to, ptr %from, i64 %length) {{\n\
             start:\n  \
               %to.at = ptrtoint ptr %to to i64\n  \
               %from.at = ptrtoint ptr %from to i64\n  \
               %distance = sub i64 %to.at, %from.at\n  \
               %is.within = icmp ult i64 %distance, %length\n  \
               %whole = and i64 %length, -{WIDEST}\n  \
               %is.more = icmp ugt i64 %length, %whole\n  \
               %is.needed = and i1 %is.within, %is.more\n  \
               br i1 %is.needed, label %copy, label %end\n\
             copy:\n  \
               %after = phi i64 [ %length, %start ], [ %at, %copy ]\n  \
               %at = sub i64 %after, 1\n  \
               %source = getelementptr i8, ptr %from, i64 %at\n  \
               %target = getelementptr i8, ptr %to, i64 %at\n  \
               %byte = load i8, ptr %source, align 1\n  \
               store i8 %byte, ptr %target, align 1\n  \
               %goes.on = icmp ugt i64 %at, %whole\n  \
               br i1 %goes.on, label %copy, label %end\n\
             end:\n  \
               %rest = phi i64 [ %length, %start ], [ %whole, %copy ]\n  \
               ret i64 %rest\n\
             }}\n"
        )
    })
}

/// Writes a `memmove` of known length out as one of a multiple of 16 bytes, if any, and loads
/// before and stores behind it. Of any other length the end is copied first, and the rest is put
/// out of sight, since libNVVM may find it out.
pub(super) fn rewrite(editor: &mut Editor<'_>, call: &mut Call) -> Outcome {
    let ([to, from, length, volatile], [_, _, ty, _]) =
        (call.arguments.as_slice(), call.ty.parameters.as_slice())
    else {
        return Outcome::Keep;
    };
    let known = length.as_integer();
    let Some(bytes) = known.and_then(|bytes| u64::try_from(bytes).ok()) else {
        let callee = Callee::Symbol(END.into());
        let function = FunctionType {
            result: ty.clone(),
            parameters: call.ty.parameters[..3].to_vec(),
        };
        let rest = match &function.parameters[..] {
            [to, from, Type::Integer(64)]
                if *to == Type::GENERIC_POINTER && *from == Type::GENERIC_POINTER =>
            {
                let arguments = call.arguments[..3].to_vec();
                let call = Call::plain(callee, function, arguments);
                editor.value(ty.clone(), Operation::Call(Box::new(call)))
            }
            _ => length.clone(),
        };
        call.arguments[2] = moved(editor, ty, &rest);
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
