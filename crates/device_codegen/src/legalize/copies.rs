//! Copies between places that may overlap.
//!
//! libNVVM 12.9 is wrong about a `memmove` in two ways, for `compute_75`, `compute_90` and
//! `compute_100`, at opt levels 0 and 3:
//! - It copies by accesses as wide as the alignment allows, and the remainder by narrower ones.
//!   These come last in both directions: where the target is behind the source, they read bytes
//!   that the wide ones have overwritten. (`[u32; 5]`, rotated right by two: the last element is
//!   the one that the copy of the first two has just written.) It takes the alignment from the
//!   call, or from the variable, and finds lengths that the IR does not have as constants.
//! - For a known length it finds the direction by the lower halves of the addresses, which is wrong
//!   where the lower halves overflow between them.
//!
//! So up to 64 bytes are all loaded before the first is stored. Where there are more, or the number
//! is not known, a function copies from the last to the first if the target begins within the
//! source; what is left to libNVVM is forward, and of a length that it does not see.

use super::Outcome;
use super::division::moved;
use crate::ir::{Call, Callee, Editor, FunctionType, Operand, Operation, Type, Value};

/// The most bytes that are loaded before the first is stored.
const FEW: u64 = 64;

/// What copies from the last byte to the first.
const BACKWARD: &str = "__nvvm_memmove_backward";

/// The function of this name. It copies if the target begins within the source, and returns the
/// length that is still to be copied: nothing then, else all.
pub(super) fn definition(symbol: &str) -> Option<String> {
    let copy = |part: &str, ty: &str, bytes: u32| {
        format!(
            "{part}:\n  \
               %{part}.end = phi i64 [ %length, %width ], [ %{part}.at, %{part} ]\n  \
               %{part}.at = sub i64 %{part}.end, {bytes}\n  \
               %{part}.from = getelementptr i8, ptr %from, i64 %{part}.at\n  \
               %{part}.to = getelementptr i8, ptr %to, i64 %{part}.at\n  \
               %{part}.value = load {ty}, ptr %{part}.from, align {bytes}\n  \
               store {ty} %{part}.value, ptr %{part}.to, align {bytes}\n  \
               %{part}.more = icmp ne i64 %{part}.at, 0\n  \
               br i1 %{part}.more, label %{part}, label %end\n"
        )
    };
    (symbol == BACKWARD).then(|| {
        format!(
            "define internal i64 @{BACKWARD}(ptr %to, ptr %from, i64 %length) {{\n\
             start:\n  \
               %to.at = ptrtoint ptr %to to i64\n  \
               %from.at = ptrtoint ptr %from to i64\n  \
               %distance = sub i64 %to.at, %from.at\n  \
               %is.within = icmp ult i64 %distance, %length\n  \
               br i1 %is.within, label %width, label %end\n\
             width:\n  \
               %both = or i64 %to.at, %from.at\n  \
               %all = or i64 %both, %length\n  \
               %odd = and i64 %all, 7\n  \
               %are.words = icmp eq i64 %odd, 0\n  \
               br i1 %are.words, label %words, label %bytes\n\
             {}{}\
             end:\n  \
               %rest = phi i64 [ %length, %start ], [ 0, %words ], [ 0, %bytes ]\n  \
               ret i64 %rest\n\
             }}\n",
            copy("words", "i64", 8),
            copy("bytes", "i8", 1),
        )
    })
}

/// Writes a `memmove` of few bytes out as loads and stores. Any other is left to libNVVM only as
/// far as it is forward, with a length that is put out of sight.
pub(super) fn rewrite(editor: &mut Editor<'_>, call: &mut Call) -> Outcome {
    let ([to, from, length, volatile], [_, _, ty, _]) =
        (call.arguments.as_slice(), call.ty.parameters.as_slice())
    else {
        return Outcome::Keep;
    };
    let known = length.as_integer();
    let known = known.and_then(|bytes| u64::try_from(bytes).ok());
    let bytes = known.filter(|bytes| *bytes <= FEW && volatile.as_integer() == Some(0));
    let Some(bytes) = bytes else {
        let function = FunctionType {
            result: ty.clone(),
            parameters: call.ty.parameters[..3].to_vec(),
        };
        const GENERIC: Type = Type::GENERIC_POINTER;
        let rest = match function.parameters[..] {
            [GENERIC, GENERIC, Type::Integer(64)] => {
                let callee = Callee::Symbol(BACKWARD.into());
                let backward = Call::plain(callee, function, call.arguments[..3].to_vec());
                editor.value(ty.clone(), Operation::Call(Box::new(backward)))
            }
            // rustc's pointers are generic, and its lengths have 64 bits.
            _ => length.clone(),
        };
        call.arguments[2] = moved(editor, ty, &rest);
        return Outcome::Keep;
    };
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
    let mut offset = 0;
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
