//! Inline PTX that `cuda_std`, the kernels or this compiler write, and what it means without PTX.
//!
//! An asynchronous copy is a copy, and is then complete: waiting for it takes no time. Any other
//! PTX is an error.

use super::body::Body;
use super::expression::{Expression, rank};
use super::types::Space;
use crate::error::Result;
use crate::ir::{Call, CastOperation, InlineAssembly, LocalId, Operation, Type, Value};

impl Body<'_, '_> {
    pub(super) fn assembly(
        &mut self,
        result: Option<LocalId>,
        assembly: &InlineAssembly,
        call: &Call,
    ) -> Result<()> {
        let text = String::from_utf8_lossy(&assembly.text).into_owned();
        let words: Vec<&str> = text.trim_end_matches(';').split_whitespace().collect();
        let name = words.first().copied().unwrap_or_default();
        let arguments = call.arguments.as_slice();
        match (name, arguments) {
            // It only keeps the compiler from moving accesses.
            ("", []) => self.settle(),
            ("mov.b16" | "mov.b32" | "mov.b64" | "mov.f32" | "mov.f64", [value]) => {
                let value = self.value(&call.ty.result, value)?;
                match result {
                    Some(id) => self.define(id, &call.ty.result, value),
                    None => Ok(()),
                }
            }
            // Copies have been made when they were begun. There is no kernel before this one that
            // still runs.
            (
                "cp.async.commit_group"
                | "cp.async.wait_group"
                | "cp.async.wait_all"
                | "griddepcontrol.wait"
                | "griddepcontrol.launch_dependents",
                [],
            ) => Ok(()),
            ("ld.global.v4.f32" | "ld.global.nc.v4.f32", [pointer]) => {
                self.load_float4(result, pointer)
            }
            ("st.global.v4.f32", [pointer, a, b, c, d]) => self.store_float4(pointer, [a, b, c, d]),
            ("cp.async.ca.shared.global" | "cp.async.cg.shared.global", [to, from, rest @ ..]) => {
                self.copy(&text, to, from, rest)
            }
            _ => Err(self.error(format!(
                "the inline PTX `{text}` has no meaning in OpenCL C; write what it does in Rust"
            ))),
        }
    }

    fn float4(&mut self, pointer: &Value) -> Result<Expression> {
        let (space, _) = self.known_pointer(pointer)?;
        let pointer = self.value(&Type::GENERIC_POINTER, pointer)?;
        let cast = Expression::cast(&format!("{} float4 *", space.keyword()), &pointer);
        Ok(cast.target())
    }

    fn load_float4(&mut self, result: Option<LocalId>, pointer: &Value) -> Result<()> {
        let Some(id) = result else { return Ok(()) };
        let target = self.float4(pointer)?;
        self.settle()?;
        let vector = self.kept("vector", "float4", target);
        for (index, name) in ["x", "y", "z", "w"].into_iter().enumerate() {
            let element = Expression::constant(format!("{}.{name}", vector.text));
            self.assign((id, index), &Type::Float, element)?;
        }
        Ok(())
    }

    fn store_float4(&mut self, pointer: &Value, elements: [&Value; 4]) -> Result<()> {
        let target = self.float4(pointer)?;
        let mut values = Vec::new();
        for element in elements {
            values.push(self.value(&Type::Float, element)?);
        }
        self.settle()?;
        self.say_source();
        let texts: Vec<&str> = values.iter().map(|value| value.text.as_str()).collect();
        let text = format!("{} = (float4)({});", target.text, texts.join(", "));
        let reads: Vec<&Expression> = std::iter::once(&target).chain(&values).collect();
        self.push(text, &reads);
        Ok(())
    }

    /// `cp.async.ca.shared.global [$0], [$1], 4, $2;`: the first `$2` of 4 bytes, then zeros.
    fn copy(&mut self, text: &str, to: &Value, from: &Value, rest: &[Value]) -> Result<()> {
        let bytes = text
            .split(',')
            .nth(2)
            .map(|bytes| bytes.trim_end_matches(';').trim());
        // A vector may alias everything, and so may this type of one word.
        let vector = match bytes {
            Some("4") => &self.needs.alias("uint", 4),
            Some("8") => "float2",
            Some("16") => "float4",
            _ => {
                return Err(self.error(format!(
                    "the inline PTX `{text}` copies an unknown number of bytes"
                )));
            }
        };
        let width = bytes
            .and_then(|bytes| bytes.parse::<u32>().ok())
            .unwrap_or(0);
        let to = self.shared_pointer(to)?;
        let (from_space, _) = self.known_pointer(from)?;
        let from = self.value(&Type::GENERIC_POINTER, from)?;
        let target =
            Expression::cast(&format!("{} {vector} *", Space::Local.keyword()), &to).target();
        let source =
            Expression::cast(&format!("{} {vector} *", from_space.keyword()), &from).target();
        let zero = Expression::constant(match width {
            4 => "0u".to_owned(),
            _ => format!("({vector})(0.0f)"),
        });
        let value = match rest {
            [] => source,
            [valid] => match valid.as_integer() {
                Some(0) => zero,
                Some(valid) if valid == i128::from(width) => source,
                Some(_) => {
                    return Err(self.error(format!(
                        "the inline PTX `{text}` copies a part of {width} bytes"
                    )));
                }
                None => {
                    let valid = self.value(&Type::Integer(32), valid)?;
                    let all = Expression::constant(format!("{width}u"));
                    let is_all = Expression::binary(&valid, "==", &all, rank::EQUALITY);
                    match width {
                        4 => self.select(&is_all, &Type::Integer(32), source, zero),
                        _ => return self.copy_part(&target, &from, from_space, &valid, width),
                    }
                }
            },
            _ => {
                return Err(self.error(format!(
                    "the inline PTX `{text}` has more operands than a copy"
                )));
            }
        };
        self.settle()?;
        self.say_source();
        self.push(
            format!("{} = {};", target.text, value.text),
            &[&target, &value],
        );
        Ok(())
    }

    /// A vector of which only the first bytes are read, in full floats.
    fn copy_part(
        &mut self,
        target: &Expression,
        from: &Expression,
        space: Space,
        valid: &Expression,
        width: u32,
    ) -> Result<()> {
        self.settle()?;
        self.say_source();
        let count = width / 4;
        let from = Expression::cast(&format!("{} float *", space.keyword()), from);
        let valid_text = valid.at(rank::SUM);
        let elements: Vec<String> = (0..count)
            .map(|index| {
                let end = (index + 1) * 4;
                format!(
                    "{valid_text} >= {end}u ? {}[{index}] : 0.0f",
                    from.at(rank::PRIMARY)
                )
            })
            .collect();
        let text = format!("{} = (float{count})({});", target.text, elements.join(", "));
        self.push(text, &[target, &from, valid]);
        Ok(())
    }

    /// The pointer that an address in shared memory was made of (`shared_address`).
    fn shared_pointer(&mut self, address: &Value) -> Result<Expression> {
        let mut value = address.clone();
        for kind in [
            CastOperation::PointerToInteger,
            CastOperation::AddressSpaceCast,
        ] {
            let Value::Local(id) = value else { break };
            match self
                .function
                .definition(id)
                .map(|instruction| &instruction.operation)
            {
                Some(Operation::Cast {
                    operation, from, ..
                }) if *operation == kind => {
                    value = from.value.clone();
                }
                _ => break,
            }
        }
        let facts = self.pointer_facts(&value);
        let mut address = self.value(&Type::Integer(32), address)?;
        match (facts, address.text.strip_prefix("(uint)")) {
            (Some((Space::Local, _)), Some(pointer)) => {
                address.text = pointer.to_owned();
                Ok(address)
            }
            _ => {
                Err(self
                    .error("the target of an asynchronous copy is not known to be shared memory"))
            }
        }
    }
}
