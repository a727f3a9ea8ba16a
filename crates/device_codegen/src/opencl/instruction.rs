//! Instructions, each by its kind.

use super::body::Body;
use super::expression::{Expression, rank};
use super::types::{self, Element};
use crate::error::Result;
use crate::ir::{Instruction, LocalId, Operand, Operation, Type};

impl Body<'_, '_> {
    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Result<()> {
        let result = instruction.result;
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
            Operation::Load { volatile: true, .. } | Operation::Store { volatile: true, .. } => {
                return Err(self.error("a volatile access cannot be written in OpenCL C"));
            }
            Operation::Load {
                ty, pointer, align, ..
            } => return self.load(result, ty, pointer, *align),
            Operation::Store {
                value,
                pointer,
                align,
                ..
            } => return self.store(value, pointer, *align),
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
            Operation::Allocate { ty, count, align } => {
                return self.allocate(result, ty, count.as_ref(), *align);
            }
            Operation::AtomicUpdate { .. } | Operation::CompareExchange { .. } => {
                return Err(self.error(
                    "an atomic operation cannot be written in OpenCL C; let one thread compute what several would add",
                ));
            }
            Operation::Fence { .. } => {
                return Err(self.error("a fence cannot be written in OpenCL C; use a barrier"));
            }
            Operation::ExtractElement { vector, .. }
            | Operation::InsertElement { vector, .. }
            | Operation::ShuffleVector { left: vector, .. }
            | Operation::InsertValue {
                aggregate: vector, ..
            } => return Err(self.no_type(&vector.ty)),
            Operation::Freeze(_) | Operation::Select { .. } | Operation::ExtractValue { .. } => {
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
                    self.select(&condition, part, then, otherwise)
                }
                Operation::ExtractValue { aggregate, indices } => {
                    let (first, _) = types::part_range(&aggregate.ty, indices)
                        .ok_or_else(|| self.no_type(&aggregate.ty))?;
                    self.part_of(&aggregate.ty, &aggregate.value, first + index)?
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
            self.assign((id, index), part, value)?;
        }
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
}

/// What follows the declaration of an array that is aligned better than its elements.
pub(super) fn alignment(align: u64, element: Element) -> String {
    match align > element.bytes() {
        true => format!(" __attribute__((aligned({align})))"),
        false => String::new(),
    }
}
