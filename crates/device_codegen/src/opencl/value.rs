//! Operands: variables and constants, and pointers with an offset.

use super::body::{Body, pointer_type};
use super::expression::{Expression, rank};
use super::literal;
use super::types::{self, Element, Space, Steps};
use crate::error::Result;
use crate::ir::{Aggregate, CastOperation, Constant, Operand, Symbol, Type, TypedConstant, Value};

impl Body<'_, '_> {
    /// A value that has one part.
    pub(super) fn operand(&mut self, operand: &Operand) -> Result<Expression> {
        self.value(&operand.ty, &operand.value)
    }

    /// A value that has one part.
    pub(super) fn value(&mut self, ty: &Type, value: &Value) -> Result<Expression> {
        self.part_of(ty, value, 0)
    }

    /// A part of a value.
    pub(super) fn part_of(&mut self, ty: &Type, value: &Value, index: usize) -> Result<Expression> {
        match value {
            Value::Local(id) => Ok(self.local((*id, index))),
            Value::Constant(constant) => self.constant_part(ty, constant, index),
            Value::Metadata => Err(self.error("metadata has no value in OpenCL C")),
        }
    }

    fn constant_part(
        &mut self,
        ty: &Type,
        constant: &Constant,
        index: usize,
    ) -> Result<Expression> {
        if !matches!(ty, Type::Struct { .. } | Type::Array(..)) {
            return self.constant(ty, constant);
        }
        let parts = self.parts(ty)?;
        match constant {
            Constant::Zero | Constant::Undef | Constant::Poison => {
                let part = parts.get(index).map(|part| part.ty.clone());
                let part = part.ok_or_else(|| self.no_type(ty))?;
                self.constant(&part, &Constant::Zero)
            }
            Constant::Aggregate(_, elements) => {
                let mut first = 0;
                for element in elements {
                    let count = self.parts(&element.ty)?.len();
                    if index < first + count {
                        return self.constant_part(&element.ty, &element.value, index - first);
                    }
                    first += count;
                }
                Err(self.no_type(ty))
            }
            Constant::Bytes(bytes) => match bytes.get(index) {
                Some(byte) => Ok(Expression::constant(literal::integer(8, i128::from(*byte)))),
                None => Err(self.no_type(ty)),
            },
            _ => Err(self.error(format!("a constant of type `{ty}` has no parts"))),
        }
    }

    /// A constant of a type that has one part. What is undefined is zero.
    pub(super) fn constant(&mut self, ty: &Type, constant: &Constant) -> Result<Expression> {
        let text = match (ty, constant) {
            (Type::Integer(width), Constant::Integer(value)) => {
                types::scalar_name(ty).ok_or_else(|| self.no_type(ty))?;
                let text = literal::integer(*width, *value);
                let rank = match text.starts_with('(') {
                    true => rank::UNARY,
                    false => rank::PRIMARY,
                };
                return Ok(Expression::of(text, rank, &[]));
            }
            (Type::Integer(width), Constant::Zero | Constant::Undef | Constant::Poison) => {
                literal::integer(*width, 0)
            }
            (Type::Float | Type::Double, Constant::Float(text)) => {
                let float = literal::float(ty, text);
                let text = float.ok_or_else(|| self.error(format!("`{text}` is no {ty}")))?;
                let rank = match text.starts_with('-') {
                    true => rank::UNARY,
                    false => rank::PRIMARY,
                };
                return Ok(Expression::of(text, rank, &[]));
            }
            (Type::Float, Constant::Zero | Constant::Undef | Constant::Poison) => "0.0f".to_owned(),
            (Type::Double, Constant::Zero | Constant::Undef | Constant::Poison) => "0.0".to_owned(),
            (
                Type::Pointer(_),
                Constant::Null | Constant::Zero | Constant::Undef | Constant::Poison,
            ) => "0".to_owned(),
            (Type::Vector(count, element), constant) => {
                return self.vector_constant(ty, *count, element, constant);
            }
            (_, Constant::Symbol(symbol)) => return self.symbol(symbol),
            (
                Type::Pointer(_),
                Constant::Cast(CastOperation::AddressSpaceCast | CastOperation::Bitcast, from, _),
            ) => return self.constant(&from.ty, &from.value),
            (Type::Integer(64), Constant::Cast(CastOperation::PointerToInteger, from, _)) => {
                let pointer = self.constant(&from.ty, &from.value)?;
                return Ok(Expression::cast("ulong", &pointer));
            }
            (
                _,
                Constant::ElementPointer {
                    source,
                    base,
                    indices,
                    ..
                },
            ) => return self.constant_element(source, base, indices),
            _ => {
                return Err(self.error(format!(
                    "a constant of type `{ty}` cannot be written in OpenCL C; compute it in the kernel"
                )));
            }
        };
        Ok(Expression::constant(text))
    }

    fn vector_constant(
        &mut self,
        ty: &Type,
        count: u64,
        element: &Type,
        constant: &Constant,
    ) -> Result<Expression> {
        let name = types::vector_name(ty).ok_or_else(|| self.no_type(ty))?;
        let zero = Constant::Zero;
        let elements: Vec<&Constant> = match constant {
            Constant::Aggregate(Aggregate::Vector, elements) => {
                elements.iter().map(|element| &element.value).collect()
            }
            Constant::Zero | Constant::Undef | Constant::Poison => vec![&zero; count as usize],
            _ => return Err(self.error(format!("a constant of type `{ty}` cannot be written"))),
        };
        let mut texts = Vec::new();
        for constant in elements {
            texts.push(self.constant(element, constant)?.text);
        }
        let text = format!("({name})({})", texts.join(", "));
        Ok(Expression::of(text, rank::UNARY, &[]))
    }

    /// A static as a pointer to its first element.
    fn symbol(&mut self, symbol: &Symbol) -> Result<Expression> {
        match self.statics.get(symbol) {
            Some(name) => Ok(Expression::constant(name.clone())),
            None => Err(self.error(format!(
                "`{}` has no address in OpenCL C",
                crate::error::demangle(symbol)
            ))),
        }
    }

    fn constant_element(
        &mut self,
        source: &Type,
        base: &TypedConstant,
        indices: &[TypedConstant],
    ) -> Result<Expression> {
        let value = Value::Constant(base.value.clone());
        let facts = self.known_pointer(&value)?;
        let pointer = self.constant(&base.ty, &base.value)?;
        let indices: Vec<Operand> = indices
            .iter()
            .map(|index| Operand::new(index.ty.clone(), Value::Constant(index.value.clone())))
            .collect();
        let steps = types::steps(source, &indices).ok_or_else(|| self.no_type(source))?;
        self.offset(pointer, facts, &steps)
    }

    /// Where a pointer leads, or an error: OpenCL C cannot access memory of an unknown space.
    pub(super) fn known_pointer(&self, pointer: &Value) -> Result<(Space, Element)> {
        self.pointer_facts(pointer).ok_or_else(|| {
            self.error(
                "the address space of a pointer is not known: it comes from an integer, or from memory that this \
                 kernel has not written a pointer to; pass the pointer as a parameter of the kernel",
            )
        })
    }

    /// A pointer some steps further on.
    pub(super) fn offset(
        &mut self,
        pointer: Expression,
        (space, element): (Space, Element),
        steps: &Steps<'_>,
    ) -> Result<Expression> {
        let bytes = element.bytes();
        let is_whole = steps.constant % i128::from(bytes) == 0
            && steps
                .variable
                .iter()
                .all(|(_, stride)| stride.is_multiple_of(bytes));
        if is_whole {
            return self.sum(pointer, steps, bytes);
        }
        let byte_pointer = pointer_type(space, "uchar");
        let first = Expression::cast(&byte_pointer, &pointer);
        let sum = self.sum(first, steps, 1)?;
        Ok(Expression::cast(&pointer_type(space, element.name()), &sum))
    }

    /// A pointer plus its steps, counted in units of `unit` bytes.
    fn sum(&mut self, pointer: Expression, steps: &Steps<'_>, unit: u64) -> Result<Expression> {
        let (base, mut index) = match &pointer.indexed {
            Some((base, index)) => (base.clone(), index.clone()),
            None => (pointer.at(rank::PRIMARY), String::new()),
        };
        let mut operands = vec![pointer];
        for (operand, stride) in &steps.variable {
            let count = self.operand(operand)?;
            let count = match operand.ty.integer_width() {
                Some(64) => count,
                // Narrower indices have a sign.
                Some(width @ (8 | 16 | 32)) => {
                    let name = types::signed_name(width).unwrap_or_default();
                    let signed = Expression::call(&format!("as_{name}"), &[&count]);
                    Expression::cast("long", &signed)
                }
                _ => return Err(self.no_type(&operand.ty)),
            };
            let factor = stride / unit;
            let text = match factor {
                1 => count.at(rank::SUM),
                _ => format!("{} * {factor}", count.at(rank::PRODUCT)),
            };
            if !index.is_empty() {
                index.push_str(" + ");
            }
            index.push_str(&text);
            operands.push(count);
        }
        let constant = steps.constant / i128::from(unit);
        match (constant, index.is_empty()) {
            (0, _) => {}
            (_, true) => index = constant.to_string(),
            (1.., false) => index.push_str(&format!(" + {constant}")),
            (_, false) => index.push_str(&format!(" - {}", constant.unsigned_abs())),
        }
        let operands: Vec<&Expression> = operands.iter().collect();
        if index.is_empty() {
            return Ok(operands[0].clone());
        }
        let mut sum = Expression::of(format!("{base} + {index}"), rank::SUM, &operands);
        sum.indexed = Some((base, index));
        Ok(sum)
    }
}
