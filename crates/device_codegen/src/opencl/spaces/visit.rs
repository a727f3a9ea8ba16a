//! What each instruction says of the pointers in it.

use super::{Conflict, Element, Space, Spaces};
use crate::ir::{Call, Callee, CastOperation, Instruction, Module, Operand, Operation, Type};

impl Spaces {
    pub(super) fn visit(
        &mut self,
        module: &Module,
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
                    && let Some(class) = self.class_of(module, &base.value)
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
            Operation::Load { ty, pointer, .. } => self.vote_for_target(module, pointer, ty),
            Operation::Store { value, pointer, .. } => {
                self.vote_for_target(module, pointer, &value.ty);
            }
            Operation::Call(call) => self.visit_call(module, call),
            _ => {}
        }
        Ok(())
    }

    fn vote_for_target(&mut self, module: &Module, pointer: &Operand, ty: &Type) {
        if let Some(class) = self.class_of(module, &pointer.value) {
            self.vote(class, ty, 1);
        }
    }

    /// The vectors that inline PTX reads or writes consist of floats.
    fn visit_call(&mut self, module: &Module, call: &Call) {
        let Callee::Assembly(assembly) = &call.callee else {
            return;
        };
        if !String::from_utf8_lossy(&assembly.text).contains(".v4.f32") {
            return;
        }
        for (ty, value) in call.ty.parameters.iter().zip(&call.arguments) {
            if let (Type::Pointer(_), Some(class)) = (ty, self.class_of(module, value)) {
                self.vote(class, &Type::Float, 4);
            }
        }
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
