//! What each instruction says of the pointers in it.

use super::{Conflict, Element, Space, Spaces};
use crate::ir::{
    Callee, CastOperation, Function, Instruction, LocalId, Module, Operand, Operation, Type,
};
use crate::opencl::types::{part_range, parts};

impl Spaces {
    pub(super) fn visit(
        &mut self,
        module: &Module,
        function: &Function,
        instruction: &Instruction,
    ) -> std::result::Result<(), Conflict> {
        let result = instruction.result;
        match &instruction.operation {
            Operation::Allocate { ty, .. } => {
                if let Some(id) = result {
                    let node = self.part((id, 0));
                    let seed = self.new_class(Some(Space::Private));
                    self.unify(node, seed)?;
                    self.vote(
                        node,
                        ty,
                        u32::from(Element::of_all(ty) != Some(Element::Byte)),
                    );
                }
            }
            Operation::ElementPointer { base, source, .. } => {
                self.join(module, &base.ty, result, &base.value)?;
                // Offsets in bytes are LLVM's own.
                if *source != Type::Integer(8)
                    && let Some(class) = self.class_of(module, &base.value, 0)
                {
                    self.vote(class, source, 2);
                }
            }
            Operation::Phi { ty, incoming, .. } => {
                for (value, _) in incoming {
                    self.join(module, ty, result, value)?;
                }
            }
            Operation::Select {
                ty,
                then,
                otherwise,
                ..
            } => {
                self.join(module, ty, result, then)?;
                self.join(module, ty, result, otherwise)?;
            }
            Operation::Freeze(operand)
            | Operation::Cast {
                operation: CastOperation::Bitcast | CastOperation::AddressSpaceCast,
                from: operand,
                ..
            } => {
                self.join(module, &operand.ty, result, &operand.value)?;
                if let (Some(id), Some(space)) = (result, named_space(&instruction.operation)) {
                    let node = self.part((id, 0));
                    let seed = self.new_class(Some(space));
                    self.unify(node, seed)?;
                }
            }
            Operation::ExtractValue { aggregate, indices } => {
                self.extract(module, function, result, aggregate, indices)?;
            }
            Operation::InsertValue {
                aggregate,
                element,
                indices,
            } => self.insert(module, result, aggregate, element, indices)?,
            Operation::Load { ty, pointer, .. } => {
                if let Some(class) = self.class_of(module, &pointer.value, 0) {
                    self.vote(class, ty, 1);
                    for (index, part) in parts(ty).unwrap_or_default().iter().enumerate() {
                        if let (Type::Pointer(_), Some(id)) = (&part.ty, result) {
                            let content = self.content(class);
                            let node = self.part((id, index));
                            self.unify(node, content)?;
                        }
                    }
                }
            }
            Operation::Store { value, pointer, .. } => {
                if let Some(class) = self.class_of(module, &pointer.value, 0) {
                    self.vote(class, &value.ty, 1);
                    for (index, part) in parts(&value.ty).unwrap_or_default().iter().enumerate() {
                        if let Type::Pointer(_) = part.ty
                            && let Some(stored) = self.class_of(module, &value.value, index)
                        {
                            let content = self.content(class);
                            self.unify(content, stored)?;
                        }
                    }
                }
            }
            Operation::AtomicUpdate {
                pointer, operand, ..
            }
            | Operation::CompareExchange {
                pointer,
                replacement: operand,
                ..
            } => {
                if let Some(class) = self.class_of(module, &pointer.value, 0) {
                    self.vote(class, &operand.ty, 1);
                }
            }
            Operation::Call(call) => self.visit_call(module, call)?,
            _ => {}
        }
        Ok(())
    }

    /// A copy of memory copies the pointers in it. What is written or read by inline PTX is floats.
    fn visit_call(
        &mut self,
        module: &Module,
        call: &crate::ir::Call,
    ) -> std::result::Result<(), Conflict> {
        if let Callee::Assembly(assembly) = &call.callee {
            let is_float4 = String::from_utf8_lossy(&assembly.text).contains(".v4.f32");
            for (ty, value) in call.ty.parameters.iter().zip(&call.arguments) {
                if let (Type::Pointer(_), Some(class), true) =
                    (ty, self.class_of(module, value, 0), is_float4)
                {
                    self.vote(class, &Type::Float, 4);
                }
            }
            return Ok(());
        }
        let is_copy = call.symbol().is_some_and(|symbol| {
            symbol.starts_with("llvm.memcpy.") || symbol.starts_with("llvm.memmove.")
        });
        if let (true, [to, from, ..]) = (is_copy, call.arguments.as_slice())
            && let Some(to) = self.class_of(module, to, 0)
            && let Some(from) = self.class_of(module, from, 0)
        {
            let (to, from) = (self.content(to), self.content(from));
            self.unify(to, from)?;
        }
        Ok(())
    }

    fn extract(
        &mut self,
        module: &Module,
        function: &Function,
        result: Option<LocalId>,
        aggregate: &Operand,
        indices: &[u64],
    ) -> std::result::Result<(), Conflict> {
        let (Some(id), Some((first, count))) = (result, part_range(&aggregate.ty, indices)) else {
            return Ok(());
        };
        let of_result = parts(function.local_type(id)).unwrap_or_default();
        for (index, part) in of_result.iter().enumerate().take(count) {
            if let Type::Pointer(_) = part.ty
                && let Some(class) = self.class_of(module, &aggregate.value, first + index)
            {
                let node = self.part((id, index));
                self.unify(node, class)?;
            }
        }
        Ok(())
    }

    fn insert(
        &mut self,
        module: &Module,
        result: Option<LocalId>,
        aggregate: &Operand,
        element: &Operand,
        indices: &[u64],
    ) -> std::result::Result<(), Conflict> {
        let (Some(id), Some((first, count))) = (result, part_range(&aggregate.ty, indices)) else {
            return Ok(());
        };
        for (index, part) in parts(&aggregate.ty).unwrap_or_default().iter().enumerate() {
            let Type::Pointer(_) = part.ty else { continue };
            let inserted = index >= first && index < first + count;
            let class = match inserted {
                true => self.class_of(module, &element.value, index - first),
                false => self.class_of(module, &aggregate.value, index),
            };
            if let Some(class) = class {
                let node = self.part((id, index));
                self.unify(node, class)?;
            }
        }
        Ok(())
    }
}

/// The space that a cast to a pointer of the IR's says.
fn named_space(operation: &Operation) -> Option<Space> {
    match operation {
        Operation::Cast {
            to: Type::Pointer(number),
            ..
        } => Space::of_number(*number),
        _ => None,
    }
}
