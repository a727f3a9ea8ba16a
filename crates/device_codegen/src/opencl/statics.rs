//! Statics that do not change: arrays in constant memory, of the program.

use super::instruction::alignment;
use super::needs::Needs;
use super::types::{self, Element};
use super::{literal, names};
use crate::error::{Error, Result, demangle};
use crate::ir::{Aggregate, Constant, Global, Symbol, Type};

/// Writes a static, unless it has been, and returns its name.
pub(super) fn constant(
    needs: &mut Needs,
    symbol: &Symbol,
    global: &Global,
    element: Element,
) -> Result<String> {
    let key = (symbol.clone(), element);
    if let Some((name, _)) = needs.statics.get(&key) {
        return Ok(name.clone());
    }
    let refuse = |problem: &str| {
        Error::new(
            &global.location,
            format!("the static `{}` {problem}", demangle(symbol)),
        )
    };
    let mut bytes = Vec::new();
    let initializer = global.initializer.as_ref();
    let is_plain = initializer.is_some_and(|value| append(&global.ty, value, &mut bytes).is_some());
    if !is_plain {
        return Err(refuse(
            "holds what OpenCL C cannot write as bytes, such as a pointer",
        ));
    }
    let size = element.bytes() as usize;
    bytes.resize(bytes.len().next_multiple_of(size).max(size), 0);
    let mut values = Vec::new();
    for chunk in bytes.chunks(size) {
        let bits = chunk
            .iter()
            .rev()
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        values.push(match element {
            Element::Float | Element::Double => {
                let (ty, value) = match element {
                    Element::Float => (Type::Float, f64::from(f32::from_bits(bits as u32))),
                    _ => (Type::Double, f64::from_bits(bits)),
                };
                if !value.is_finite() {
                    return Err(refuse(
                        "holds an infinity or a NaN, which no OpenCL C constant does; compute it",
                    ));
                }
                literal::float(&ty, &format!("0x{:016X}", value.to_bits()))
                    .ok_or_else(|| refuse("holds a float that cannot be written"))?
            }
            Element::Long => format!("{bits}ul"),
            _ => bits.to_string(),
        });
    }
    let name = format!(
        "static_{}_{}",
        needs.statics.len() + 1,
        names::of_symbol(symbol)
    );
    let align = global.align.unwrap_or(1);
    let attribute = alignment(align, element);
    let text = format!(
        "__constant {} {name}[{}]{attribute} = {{{}}};\n",
        element.name(),
        values.len(),
        values.join(", ")
    );
    needs.statics.insert(key, (name.clone(), text));
    Ok(name)
}

/// Appends the bytes of a constant. `None` if they are not known before the program runs.
fn append(ty: &Type, constant: &Constant, bytes: &mut Vec<u8>) -> Option<()> {
    let (size, _) = types::layout(ty)?;
    let size = usize::try_from(size).ok()?;
    let start = bytes.len();
    match (ty, constant) {
        (_, Constant::Zero | Constant::Undef | Constant::Poison) => {}
        (_, Constant::Bytes(text)) => bytes.extend(text.iter()),
        (Type::Integer(_), Constant::Integer(value)) => {
            bytes.extend(value.to_le_bytes().get(..size)?);
        }
        (Type::Float | Type::Double, Constant::Float(text)) => {
            let value = match text.strip_prefix("0x") {
                Some(bits) => f64::from_bits(u64::from_str_radix(bits, 16).ok()?),
                None => text.parse().ok()?,
            };
            match ty {
                Type::Float => bytes.extend((value as f32).to_le_bytes()),
                _ => bytes.extend(value.to_le_bytes()),
            }
        }
        (Type::Array(_, element) | Type::Vector(_, element), Constant::Aggregate(_, elements)) => {
            for value in elements {
                append(element, &value.value, bytes)?;
            }
        }
        (
            Type::Struct { packed, fields },
            Constant::Aggregate(Aggregate::Struct | Aggregate::PackedStruct, elements),
        ) => {
            for (field, value) in fields.iter().zip(elements) {
                let (_, align) = types::layout(field)?;
                if !packed {
                    let at = (bytes.len() - start).next_multiple_of(usize::try_from(align).ok()?);
                    bytes.resize(start + at, 0);
                }
                append(field, &value.value, bytes)?;
            }
        }
        _ => return None,
    }
    bytes.resize((start + size).max(bytes.len()), 0);
    (bytes.len() == start + size).then_some(())
}
