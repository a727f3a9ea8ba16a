//! Instructions, each by its kind.

use super::body::Body;
use super::expression::{Expression, rank};
use super::memory::Access;
use super::types::{self, Element, Space, signed_name};
use crate::error::Result;
use crate::ir::{CastOperation, Instruction, LocalId, Operand, Operation, Type};

impl Body<'_, '_> {
    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Result<()> {
        let result = instruction.result;
        if computes_halves(&instruction.operation) {
            return Err(self.no_type(&Type::Half));
        }
        let expression = match &instruction.operation {
            // Each way into its block gives it a value.
            Operation::Phi { .. } => return Ok(()),
            Operation::Binary {
                operation,
                ty,
                left,
                right,
                ..
            } => self.binary(operation, ty, left, right)?,
            Operation::FloatNegate { operand, .. } => {
                let value = self.operand(operand)?;
                let text = format!("-{}", value.at(rank::PRIMARY));
                Expression::of(text, rank::UNARY, &[&value])
            }
            Operation::Cast {
                operation,
                from,
                to,
                ..
            } => self.cast(*operation, from, to)?,
            Operation::Compare {
                predicate,
                ty,
                left,
                right,
                ..
            } => self.compare(predicate, ty, left, right)?,
            Operation::Load {
                ty,
                pointer,
                align,
                volatile,
                ..
            } => {
                let access = Access {
                    align: *align,
                    volatile: *volatile,
                };
                return self.load(result, ty, pointer, access);
            }
            Operation::Store {
                value,
                pointer,
                align,
                volatile,
                ..
            } => {
                let access = Access {
                    align: *align,
                    volatile: *volatile,
                };
                return self.store(value, pointer, access);
            }
            Operation::ElementPointer {
                source,
                base,
                indices,
                ..
            } => {
                let facts = self.known_pointer(&base.value)?;
                let pointer = self.operand(base)?;
                let steps = types::steps(source, indices).ok_or_else(|| self.no_type(source))?;
                self.offset(pointer, facts, &steps)?
            }
            Operation::Call(call) => return self.call(result, call),
            Operation::AtomicUpdate {
                operation,
                pointer,
                operand,
                ..
            } => return self.atomic_update(result, operation, pointer, operand),
            Operation::CompareExchange {
                pointer,
                expected,
                replacement,
                ..
            } => return self.compare_exchange(result, pointer, expected, replacement),
            Operation::Fence { .. } => return Err(self.error("a fence has not been legalized")),
            Operation::Allocate { ty, count, align } => {
                return self.allocate(result, ty, count.as_ref(), *align);
            }
            Operation::ExtractElement { vector, index } => self.extract_element(vector, index)?,
            Operation::InsertElement {
                vector,
                element,
                index,
            } => return self.insert_element(result, vector, element, index),
            Operation::ShuffleVector { left, right, mask } => self.shuffle(left, right, mask)?,
            Operation::Freeze(_)
            | Operation::Select { .. }
            | Operation::ExtractValue { .. }
            | Operation::InsertValue { .. } => {
                return self.of_parts(result, &instruction.operation);
            }
        };
        match (result, instruction.operation.result_type()) {
            (Some(id), Some(ty)) => self.define(id, &ty, expression),
            _ => Ok(()),
        }
    }

    /// Instructions on all kinds of values, also those of several parts.
    fn of_parts(&mut self, result: Option<LocalId>, operation: &Operation) -> Result<()> {
        let Some(id) = result else { return Ok(()) };
        let ty = self.function.local_type(id).clone();
        let parts = self.parts(&ty)?;
        let condition = match operation {
            Operation::Select { condition, .. } if condition.ty != Type::BOOL => {
                return Err(
                    self.error("a selection by a vector cannot be written; select the elements")
                );
            }
            Operation::Select { condition, .. } => {
                let condition = self.operand(condition)?;
                Some(match parts.len() {
                    1 => condition,
                    _ => self.kept("condition", "bool", condition),
                })
            }
            _ => None,
        };
        let mut values = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            values.push(match operation {
                Operation::Freeze(operand) => self.part_of(&operand.ty, &operand.value, index)?,
                Operation::Select {
                    ty,
                    then,
                    otherwise,
                    ..
                } => {
                    let then = self.part_of(ty, then, index)?;
                    let otherwise = self.part_of(ty, otherwise, index)?;
                    let condition = condition.clone().ok_or_else(|| self.no_type(ty))?;
                    self.select(&condition, &part.ty, then, otherwise)
                }
                Operation::ExtractValue { aggregate, indices } => {
                    let (first, _) = types::part_range(&aggregate.ty, indices)
                        .ok_or_else(|| self.no_type(&aggregate.ty))?;
                    self.part_of(&aggregate.ty, &aggregate.value, first + index)?
                }
                Operation::InsertValue {
                    aggregate,
                    element,
                    indices,
                } => {
                    let (first, count) = types::part_range(&aggregate.ty, indices)
                        .ok_or_else(|| self.no_type(&aggregate.ty))?;
                    match index.checked_sub(first) {
                        Some(within) if within < count => {
                            self.part_of(&element.ty, &element.value, within)?
                        }
                        _ => self.part_of(&aggregate.ty, &aggregate.value, index)?,
                    }
                }
                _ => return Err(self.no_type(&ty)),
            });
        }
        if let [_] = parts.as_slice()
            && let Some(value) = values.pop()
        {
            return self.define(id, &ty, value);
        }
        for (index, (part, value)) in parts.iter().zip(values).enumerate() {
            self.assign((id, index), &part.ty, value)?;
        }
        Ok(())
    }

    fn insert_element(
        &mut self,
        result: Option<LocalId>,
        vector: &Operand,
        element: &Operand,
        index: &Operand,
    ) -> Result<()> {
        let Some(id) = result else { return Ok(()) };
        let index = self.known_index(&vector.ty, &index.value)?;
        let (before, element) = (self.operand(vector)?, self.operand(element)?);
        self.assign((id, 0), &vector.ty, before)?;
        let name = self.variable((id, 0));
        let itself = Expression::variable((id, 0), &name);
        self.push(
            format!("{name}.s{index:x} = {};", element.text),
            &[&itself, &element],
        );
        Ok(())
    }

    /// A stack slot: an array of the work-item's own.
    fn allocate(
        &mut self,
        result: Option<LocalId>,
        ty: &Type,
        count: Option<&Operand>,
        align: Option<u64>,
    ) -> Result<()> {
        let Some(id) = result else { return Ok(()) };
        let is_one = count.is_none_or(|count| count.value.as_integer() == Some(1));
        let (Some((bytes, natural)), true) = (types::layout(ty), is_one) else {
            return Err(self.error(format!(
                "a stack slot of type `{ty}` has no size that is known"
            )));
        };
        let element = self.spaces.element_of((id, 0));
        let name = self.variable((id, 0));
        let length = bytes.div_ceil(element.bytes()).max(1);
        let align = align.unwrap_or(natural).max(element.bytes());
        self.needs.note_element(element);
        self.push(
            format!(
                "__private {} {name}[{length}]{};",
                element.name(),
                alignment(align, element)
            ),
            &[],
        );
        Ok(())
    }

    /// The pointer that an atomic function takes, with the type of the integer there.
    fn atomic_pointer(&mut self, pointer: &Operand, ty: &Type, name: &str) -> Result<Expression> {
        let (space, _) = self.known_pointer(&pointer.value)?;
        if !matches!(space, Space::Global | Space::Local) {
            return Err(self.error(format!(
                "an atomic operation on {} memory has no meaning: no other work-item sees it",
                space.keyword()
            )));
        }
        match ty {
            Type::Integer(32) => {}
            Type::Integer(64) => self.needs.int64_atomics = true,
            _ => {
                return Err(self.error(format!(
                    "OpenCL C has no atomic operation on `{ty}`; use an integer of 32 or 64 bits"
                )));
            }
        }
        let value = self.operand(pointer)?;
        Ok(Expression::cast(
            &format!("volatile {} {name} *", space.keyword()),
            &value,
        ))
    }

    fn atomic_update(
        &mut self,
        result: Option<LocalId>,
        operation: &str,
        pointer: &Operand,
        operand: &Operand,
    ) -> Result<()> {
        let width = operand.ty.integer_width().unwrap_or(0);
        let unsigned = types::scalar_name(&operand.ty).ok_or_else(|| self.no_type(&operand.ty))?;
        let (function, is_signed) = match operation {
            "add" | "sub" | "xchg" | "and" | "or" | "xor" => (operation, false),
            "umin" | "umax" => (&operation[1..], false),
            "min" | "max" => (operation, true),
            _ => {
                return Err(self.error(format!(
                    "OpenCL C has no atomic `{operation}` of `{}`; write it as a loop around `compare_exchange`",
                    operand.ty
                )));
            }
        };
        let name = match is_signed {
            true => signed_name(width).ok_or_else(|| self.no_type(&operand.ty))?,
            false => unsigned,
        };
        let place = self.atomic_pointer(pointer, &operand.ty, name)?;
        let value = self.operand(operand)?;
        let value = match is_signed {
            true => Expression::call(&format!("as_{name}"), &[&value]),
            false => value,
        };
        let prefix = if width == 64 { "atom_" } else { "atomic_" };
        let call = Expression::call(&format!("{prefix}{function}"), &[&place, &value]);
        self.settle()?;
        self.say_source();
        let used = result.filter(|id| self.is_used(*id));
        match (used, is_signed) {
            (Some(id), true) => {
                let old = Expression::call(&format!("as_{unsigned}"), &[&call]);
                self.assign((id, 0), &operand.ty, old)
            }
            (Some(id), false) => self.assign((id, 0), &operand.ty, call),
            (None, _) => {
                self.push(format!("{};", call.text), &[&call]);
                Ok(())
            }
        }
    }

    fn compare_exchange(
        &mut self,
        result: Option<LocalId>,
        pointer: &Operand,
        expected: &Operand,
        replacement: &Operand,
    ) -> Result<()> {
        let ty = &replacement.ty;
        let name = types::scalar_name(ty).ok_or_else(|| self.no_type(ty))?;
        let place = self.atomic_pointer(pointer, ty, name)?;
        let expected = self.operand(expected)?;
        let replacement = self.operand(replacement)?;
        let expected = self.kept("expected", name, expected);
        let prefix = if *ty == Type::Integer(64) {
            "atom_"
        } else {
            "atomic_"
        };
        let call = Expression::call(
            &format!("{prefix}cmpxchg"),
            &[&place, &expected, &replacement],
        );
        self.settle()?;
        let Some(id) = result else {
            self.push(format!("{};", call.text), &[&call]);
            return Ok(());
        };
        self.assign((id, 0), ty, call)?;
        let old = self.variable((id, 0));
        let old = Expression::variable((id, 0), &old);
        let is_equal = Expression::binary(&old, "==", &expected, rank::EQUALITY);
        self.assign((id, 1), &Type::BOOL, is_equal)
    }
}

/// Whether it does more with halves than to move and to convert them. Without an extension OpenCL
/// C has no such operation.
fn computes_halves(operation: &Operation) -> bool {
    use CastOperation::{Bitcast, FloatExtend, FloatTruncate};
    let is_half = |ty: &Type| match ty {
        Type::Vector(_, element) => **element == Type::Half,
        _ => *ty == Type::Half,
    };
    match operation {
        Operation::Binary { ty, .. } | Operation::Compare { ty, .. } => is_half(ty),
        Operation::FloatNegate { operand, .. } => is_half(&operand.ty),
        Operation::Cast {
            operation: Bitcast | FloatExtend,
            ..
        } => false,
        Operation::Cast {
            operation: FloatTruncate,
            from,
            to,
            ..
        } => is_half(to) && from.ty != Type::Float,
        Operation::Cast { from, to, .. } => is_half(&from.ty) || is_half(to),
        Operation::Call(call) => {
            let is_intrinsic = call.symbol().is_some_and(|name| name.starts_with("llvm."));
            is_intrinsic && call.ty.parameters.iter().any(is_half)
        }
        _ => false,
    }
}

/// What follows the declaration of an array that is aligned better than its elements.
pub(super) fn alignment(align: u64, element: Element) -> String {
    match align > element.bytes() {
        true => format!(" __attribute__((aligned({align})))"),
        false => String::new(),
    }
}
