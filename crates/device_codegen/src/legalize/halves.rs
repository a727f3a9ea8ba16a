//! Conversions of f16, which PTX has as `cvt`.
//!
//! The crate `half` converts in software unless the processor has F16C. `cuda_builder` compiles it
//! as for one that has, so that its conversions are `fpext` and this intrinsic of x86, of vectors.
//! Each element is converted by itself, from and to the scalar type `half`.

use super::Outcome;
use super::division::moved;
use super::integers::two;
use crate::Dialect;
use crate::error::Result;
use crate::ir::{Call, CastOperation, Constant, Editor, Operand, Operation, Type, Value};

/// `x86.vcvtps2ph`: each `float` rounded to the nearest half, ties to even, as the bits of the
/// half. The result has eight elements, and zeros behind those that are converted.
pub(super) fn from_floats(
    editor: &mut Editor<'_>,
    base: &str,
    call: &Call,
    dialect: Dialect,
) -> Result<Value> {
    let (floats, rounding) = two(editor, base, call)?;
    let (Some(Type::Vector(count @ ..=8, _)), Some(0)) =
        (call.ty.parameters.first(), rounding.as_integer())
    else {
        return Err(editor.error(format!(
            "`llvm.{base}` can be translated for a GPU only if it rounds to nearest"
        )));
    };
    let floats = Operand::new(Type::Vector(*count, Type::Float.into()), floats.clone());
    let mut halves = Value::Constant(Constant::Zero);
    for index in 0..*count {
        let float = extract(editor, &floats, index);
        let half = editor.cast(
            CastOperation::FloatTruncate,
            &Type::Float,
            &float,
            &Type::Half,
        );
        let bits = Type::Integer(16);
        let mut half = editor.cast(CastOperation::Bitcast, &Type::Half, &half, &bits);
        if dialect == Dialect::TypedPointers {
            half = moved(editor, &bits, &half); // see `hidden`
        }
        halves = insert(
            editor,
            &call.ty.result,
            halves,
            Operand::new(bits, half),
            index,
        );
    }
    Ok(halves)
}

/// `fpext` and `fptrunc`, of a vector or a scalar.
pub(super) fn convert(
    editor: &mut Editor<'_>,
    operation: CastOperation,
    from: &mut Operand,
    to: &Type,
    dialect: Dialect,
) -> Outcome {
    let hides = dialect == Dialect::TypedPointers && operation == CastOperation::FloatExtend;
    if hides && from.ty == Type::Half {
        from.value = hidden(editor, &from.value);
    }
    let (Type::Vector(count, from_element), Type::Vector(_, to_element)) = (&from.ty, to) else {
        return Outcome::Keep;
    };
    if (**from_element == Type::Half) == (**to_element == Type::Half) {
        return Outcome::Keep;
    }
    let mut converted = Value::Constant(Constant::Zero);
    for index in 0..*count {
        let mut element = extract(editor, from, index);
        if hides {
            element = hidden(editor, &element);
        }
        let element = editor.cast(operation, from_element, &element, to_element);
        let element = Operand::new((**to_element).clone(), element);
        converted = insert(editor, to, converted, element, index);
    }
    Outcome::Replace(Some(converted))
}

/// A half that libNVVM does not know to be loaded: it would load several neighbours at once, as
/// a vector of halves, and the older one then says `unsupported operation`. So it does if it knows
/// that halves are stored.
fn hidden(editor: &mut Editor<'_>, half: &Value) -> Value {
    let bits = Type::Integer(16);
    let number = editor.cast(CastOperation::Bitcast, &Type::Half, half, &bits);
    let number = moved(editor, &bits, &number);
    editor.cast(CastOperation::Bitcast, &bits, &number, &Type::Half)
}

fn place(index: u64) -> Operand {
    Operand::new(Type::Integer(32), Value::integer(index.into()))
}

fn extract(editor: &mut Editor<'_>, vector: &Operand, index: u64) -> Value {
    let Some(element) = vector.ty.element(index) else {
        return Value::Constant(Constant::Undef);
    };
    editor.value(
        element.clone(),
        Operation::ExtractElement {
            vector: vector.clone(),
            index: place(index),
        },
    )
}

fn insert(
    editor: &mut Editor<'_>,
    ty: &Type,
    vector: Value,
    element: Operand,
    index: u64,
) -> Value {
    editor.value(
        ty.clone(),
        Operation::InsertElement {
            vector: Operand::new(ty.clone(), vector),
            element,
            index: place(index),
        },
    )
}
