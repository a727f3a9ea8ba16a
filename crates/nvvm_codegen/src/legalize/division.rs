//! Division by a number that is not known when compiling.
//!
//! The newer libNVVM (LLVM 20's dialect) moves a division of unsigned numbers before the test for
//! zero that guards it, for a GPU does not trap, and then takes it for granted that the divisor is
//! not zero: the test is gone. `a.checked_div(b).unwrap_or(3)` in a loop gave what the hardware
//! gives for a division by zero. So the divisor passes through a `mov` in inline PTX, about which
//! libNVVM concludes nothing, and `ptxas` removes it again. Signed division was not seen to fail;
//! it is done in the same way.

use super::Outcome;
use super::editor::Editor;
use crate::ir::{
    Attribute, Call, Callee, CastOperation, FunctionType, InlineAssembly, Operation, Type, Value,
};

/// Replaces the divisor of `udiv`, `sdiv`, `urem` or `srem`.
pub(super) fn hide_divisor(editor: &mut Editor<'_>, ty: &Type, divisor: &mut Value) -> Outcome {
    let Type::Integer(width) = *ty else {
        return Outcome::Keep;
    };
    if matches!(divisor, Value::Constant(_)) {
        return Outcome::Keep;
    }
    *divisor = match width {
        16 | 32 | 64 => moved(editor, width, divisor),
        0..16 => {
            let wide = editor.cast(CastOperation::ZeroExtend, ty, divisor, &Type::Integer(16));
            let moved = moved(editor, 16, &wide);
            editor.cast(CastOperation::Truncate, &Type::Integer(16), &moved, ty)
        }
        // Of a wider number its lowest bits will do.
        _ => {
            let low = Type::Integer(16);
            let bits = editor.cast(CastOperation::Truncate, ty, divisor, &low);
            let moved = moved(editor, 16, &bits);
            let moved = editor.cast(CastOperation::ZeroExtend, &low, &moved, ty);
            let rest = editor.binary("and", ty, divisor, &Value::integer(-0x1_0000));
            editor.binary("or", ty, &rest, &moved)
        }
    };
    Outcome::Keep
}

/// The same number, of 16, 32 or 64 bits, out of libNVVM's sight.
fn moved(editor: &mut Editor<'_>, width: u32, value: &Value) -> Value {
    let ty = Type::Integer(width);
    let register = match width {
        16 => 'h',
        32 => 'r',
        _ => 'l',
    };
    let mut call = Call::plain(
        Callee::Assembly(InlineAssembly {
            side_effect: false,
            text: format!("mov.b{width} $0, $1;").into_bytes(),
            constraints: format!("={register},{register}"),
        }),
        FunctionType {
            result: ty.clone(),
            parameters: vec![ty.clone()],
        },
        vec![value.clone()],
    );
    call.attributes = ["nounwind", "readnone"].map(Attribute::flag).to_vec();
    editor.value(ty, Operation::Call(Box::new(call)))
}
