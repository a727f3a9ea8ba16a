//! Division by a number that is not known when compiling.
//!
//! The newer libNVVM (LLVM 20's dialect) moves a division of unsigned numbers before the test for
//! zero that guards it, for a GPU does not trap, and then takes it for granted that the divisor is
//! not zero: the test is gone. `a.checked_div(b).unwrap_or(3)` in a loop gave what the hardware
//! gives for a division by zero. So the divisor passes through a `mov` in inline PTX, about which
//! libNVVM concludes nothing, and `ptxas` removes it again. Signed division was not seen to fail;
//! it is done in the same way.
//!
//! The older one (LLVM 7's dialect) takes a quotient of floats for not less than zero if neither
//! the dividend nor the divisor is, and -0.0 is not: `(n as f64 / -0.0).clamp(-100.0, 100.0)` lost
//! its lower limit. So there a divisor of floats, unless it is a constant other than that, passes
//! through a `mov` too.
//!
//! The older one also takes a remainder `x % c` for `x - x / c * c`, in which x occurs twice. Where
//! one remainder is computed from another, as by an unrolled loop, it walks through all
//! occurrences, and takes twice as long with each. So the results of some of these divisions pass
//! through a `mov`, of which it does not know what was divided.

use std::collections::HashSet;

use super::Outcome;
use crate::Dialect;
use crate::ir::{
    Attribute, Call, Callee, CastOperation, Constant, Editor, Function, FunctionType,
    InlineAssembly, LocalId, Operation, Type, Value,
};

/// Divisions of integers.
const INTEGERS: [&str; 4] = ["udiv", "sdiv", "urem", "srem"];

/// How many divisions an expression may hold, with all repetitions.
const MOST_DIVISIONS: u32 = 256;

/// The divisions whose results are hidden, so that no expression holds too many.
pub(super) fn ends_of_chains(function: &Function) -> HashSet<LocalId> {
    let mut divisions = vec![0_u32; function.locals.len()];
    let mut ends = HashSet::new();
    for instruction in function.instructions() {
        let Some(result) = instruction.result else {
            continue;
        };
        // libNVVM looks into neither of them.
        if let Operation::Phi { .. } | Operation::Load { .. } = instruction.operation {
            continue;
        }
        let mut count = 0_u32;
        for value in instruction.operation.values() {
            if let Value::Local(id) = value {
                count = count.saturating_add(divisions[id.0 as usize]);
            }
        }
        if let Operation::Binary { operation, ty, .. } = &instruction.operation
            && INTEGERS.contains(&operation.as_str())
            && matches!(ty, Type::Integer(16 | 32 | 64))
        {
            count = count.saturating_mul(2).saturating_add(1);
            if count > MOST_DIVISIONS {
                ends.insert(result);
                count = 0;
            }
        }
        divisions[result.0 as usize] = count;
    }
    ends
}

/// The division, and its result hidden.
pub(super) fn end_chain(
    editor: &mut Editor<'_>,
    operation: &str,
    ty: &Type,
    left: &Value,
    right: &Value,
) -> Outcome {
    let result = editor.binary(operation, ty, left, right);
    Outcome::Replace(Some(moved(editor, ty, &result)))
}

/// Whether libNVVM draws a wrong conclusion from a divisor that it knows.
pub(super) fn misleads(operation: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::TypedPointers => operation == "fdiv",
        Dialect::OpaquePointers => INTEGERS.contains(&operation),
    }
}

/// Replaces the divisor of such an operation.
pub(super) fn hide_divisor(editor: &mut Editor<'_>, ty: &Type, divisor: &mut Value) -> Outcome {
    let is_known = match divisor {
        Value::Constant(Constant::Float(number)) => !is_negative_zero(number),
        Value::Constant(_) => true,
        _ => false,
    };
    if is_known {
        return Outcome::Keep;
    }
    let sixteen = Type::Integer(16);
    *divisor = match *ty {
        Type::Integer(16 | 32 | 64) | Type::Float | Type::Double => moved(editor, ty, divisor),
        Type::Integer(0..16) => {
            let wide = editor.cast(CastOperation::ZeroExtend, ty, divisor, &sixteen);
            let moved = moved(editor, &sixteen, &wide);
            editor.cast(CastOperation::Truncate, &sixteen, &moved, ty)
        }
        // Of a wider number its lowest bits will do.
        Type::Integer(_) => {
            let bits = editor.cast(CastOperation::Truncate, ty, divisor, &sixteen);
            let moved = moved(editor, &sixteen, &bits);
            let moved = editor.cast(CastOperation::ZeroExtend, &sixteen, &moved, ty);
            let rest = editor.binary("and", ty, divisor, &Value::integer(-0x1_0000));
            editor.binary("or", ty, &rest, &moved)
        }
        _ => return Outcome::Keep,
    };
    Outcome::Keep
}

/// LLVM writes it as a decimal number or by its bits as a double, whatever its type.
fn is_negative_zero(number: &str) -> bool {
    number == "0x8000000000000000"
        || number
            .parse::<f64>()
            .is_ok_and(|number| number == 0.0 && number.is_sign_negative())
}

/// The same number, of a type that a register has, out of libNVVM's sight.
pub(super) fn moved(editor: &mut Editor<'_>, ty: &Type, value: &Value) -> Value {
    let (suffix, register) = match ty {
        Type::Float => ("f32", 'f'),
        Type::Double => ("f64", 'd'),
        Type::Integer(16) => ("b16", 'h'),
        Type::Integer(32) => ("b32", 'r'),
        _ => ("b64", 'l'),
    };
    let mut call = Call::plain(
        Callee::Assembly(InlineAssembly {
            side_effect: false,
            text: format!("mov.{suffix} $0, $1;").into_bytes(),
            constraints: format!("={register},{register}"),
        }),
        FunctionType {
            result: ty.clone(),
            parameters: vec![ty.clone()],
        },
        vec![value.clone()],
    );
    call.attributes = ["nounwind", "readnone"].map(Attribute::flag).to_vec();
    editor.value(ty.clone(), Operation::Call(Box::new(call)))
}
