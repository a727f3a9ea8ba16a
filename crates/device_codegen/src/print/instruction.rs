//! Instructions, one a line; with typed pointers a cast may come before or after.

use super::constant::element_at;
use super::function::{Body, address_space};
use super::names::{escaped, quoted};
use crate::ir::{Call, Callee, Instruction, Operand, Operation, Type};

impl Body<'_, '_> {
    pub(super) fn instruction(&mut self, instruction: &Instruction) {
        self.source = self.printer.source(instruction.source);
        let result = instruction.result.map(|id| self.names.local(id));
        let result_name = result.clone().unwrap_or_default();
        let metadata = self.printer.attachments(&instruction.metadata);
        let text = match &instruction.operation {
            Operation::Allocate { ty, count, align } => {
                let pointee = self.ty(ty);
                let count = count
                    .as_ref()
                    .map_or_else(String::new, |count| format!(", {}", self.operand(count)));
                let text = format!("alloca {pointee}{count}{}{metadata}", alignment(*align));
                self.made_pointer(&result_name, &pointee, 0, &text);
                return;
            }
            Operation::ElementPointer {
                flags,
                source,
                base,
                indices,
            } => {
                let pointee = self.ty(source);
                let pointer = self.pointer_to(&pointee, base);
                let steps = indices.iter().map(|index| index.value.as_integer());
                let element = self.ty(element_at(source, steps));
                let indices: String = indices
                    .iter()
                    .map(|index| format!(", {}", self.operand(index)))
                    .collect();
                let text = format!(
                    "getelementptr {}{pointee}, {pointer}{indices}{metadata}",
                    words(flags)
                );
                self.made_pointer(&result_name, &element, address_space(&base.ty), &text);
                return;
            }
            operation => self.operation(operation),
        };
        match result {
            Some(result) => self.line(&format!("{result} = {text}{metadata}")),
            None => self.line(&format!("{text}{metadata}")),
        }
    }

    fn operation(&mut self, operation: &Operation) -> String {
        match operation {
            Operation::Binary {
                operation,
                flags,
                ty,
                left,
                right,
            } => format!(
                "{operation} {}{} {}, {}",
                words(flags),
                self.ty(ty),
                self.value(ty, left),
                self.value(ty, right)
            ),
            Operation::FloatNegate { flags, operand } => {
                format!("fneg {}{}", words(flags), self.operand(operand))
            }
            Operation::Freeze(operand) => format!("freeze {}", self.operand(operand)),
            Operation::Cast {
                operation,
                flags,
                from,
                to,
            } => format!(
                "{} {}{} to {}",
                operation.name(),
                words(flags),
                self.operand(from),
                self.ty(to)
            ),
            Operation::Compare {
                float,
                flags,
                predicate,
                ty,
                left,
                right,
            } => format!(
                "{} {}{predicate} {} {}, {}",
                if *float { "fcmp" } else { "icmp" },
                words(flags),
                self.ty(ty),
                self.value(ty, left),
                self.value(ty, right)
            ),
            Operation::Select {
                flags,
                condition,
                ty,
                then,
                otherwise,
            } => {
                let name = self.ty(ty);
                format!(
                    "select {}{}, {name} {}, {name} {}",
                    words(flags),
                    self.operand(condition),
                    self.value(ty, then),
                    self.value(ty, otherwise)
                )
            }
            Operation::Phi {
                flags,
                ty,
                incoming,
            } => {
                let incoming: Vec<String> = incoming
                    .iter()
                    .map(|(value, from)| {
                        format!(
                            "[ {}, %{} ]",
                            self.value(ty, value),
                            self.names.block(*from)
                        )
                    })
                    .collect();
                format!(
                    "phi {}{} {}",
                    words(flags),
                    self.ty(ty),
                    incoming.join(", ")
                )
            }
            Operation::Load {
                ty,
                pointer,
                align,
                volatile,
                ..
            } => {
                let ty = self.ty(ty);
                let pointer = self.pointer_to(&ty, pointer);
                format!(
                    "load {}{ty}, {pointer}{}",
                    volatile_word(*volatile),
                    alignment(*align)
                )
            }
            Operation::Store {
                value,
                pointer,
                align,
                volatile,
                ..
            } => {
                let pointer = self.pointer_to(&self.ty(&value.ty), pointer);
                format!(
                    "store {}{}, {pointer}{}",
                    volatile_word(*volatile),
                    self.operand(value),
                    alignment(*align)
                )
            }
            Operation::AtomicUpdate {
                operation,
                volatile,
                pointer,
                operand,
                ..
            } => {
                let pointer = self.pointer_to(&self.ty(&operand.ty), pointer);
                format!(
                    "atomicrmw {}{operation} {pointer}, {} monotonic",
                    volatile_word(*volatile),
                    self.operand(operand)
                )
            }
            Operation::CompareExchange {
                weak,
                volatile,
                pointer,
                expected,
                replacement,
                ..
            } => {
                let pointer = self.pointer_to(&self.ty(&expected.ty), pointer);
                format!(
                    "cmpxchg {}{}{pointer}, {}, {} monotonic monotonic",
                    if *weak { "weak " } else { "" },
                    volatile_word(*volatile),
                    self.operand(expected),
                    self.operand(replacement)
                )
            }
            Operation::Fence { .. } => "fence seq_cst".to_owned(),
            Operation::ExtractValue { aggregate, indices } => {
                format!("extractvalue {}{}", self.operand(aggregate), path(indices))
            }
            Operation::InsertValue {
                aggregate,
                element,
                indices,
            } => format!(
                "insertvalue {}, {}{}",
                self.operand(aggregate),
                self.operand(element),
                path(indices)
            ),
            Operation::ExtractElement { vector, index } => format!(
                "extractelement {}, {}",
                self.operand(vector),
                self.operand(index)
            ),
            Operation::InsertElement {
                vector,
                element,
                index,
            } => format!(
                "insertelement {}, {}, {}",
                self.operand(vector),
                self.operand(element),
                self.operand(index)
            ),
            Operation::ShuffleVector { left, right, mask } => format!(
                "shufflevector {}, {}, {}",
                self.operand(left),
                self.operand(right),
                self.operand(mask)
            ),
            Operation::Call(call) => self.call(call),
            // Written by the caller, since they make typed pointers.
            Operation::Allocate { .. } | Operation::ElementPointer { .. } => String::new(),
        }
    }

    fn call(&mut self, call: &Call) -> String {
        let callee = match &call.callee {
            Callee::Symbol(symbol) => format!("@{}", quoted(symbol)),
            Callee::Pointer(pointer) => {
                let pointee = self.printer.function_type(&call.ty);
                let operand = Operand::new(Type::GENERIC_POINTER, pointer.clone());
                let typed = self.pointer_to(&pointee, &operand);
                let ty = self.printer.dialect.pointer_to(&pointee, 0);
                typed[ty.len() + 1..].to_owned()
            }
            Callee::Assembly(assembly) => format!(
                "asm {}\"{}\", \"{}\"",
                if assembly.side_effect {
                    "sideeffect "
                } else {
                    ""
                },
                escaped(&assembly.text),
                escaped(assembly.constraints.as_bytes())
            ),
        };
        let arguments: Vec<String> = call
            .arguments
            .iter()
            .zip(&call.ty.parameters)
            .enumerate()
            .map(|(position, (value, ty))| {
                let attributes = call.argument_attributes.get(position);
                format!(
                    "{}{} {}",
                    self.ty(ty),
                    self.printer
                        .parameter_attributes(attributes.map_or(&[], Vec::as_slice), ty),
                    self.value(ty, value)
                )
            })
            .collect();
        format!(
            "call {}{} {callee}({}){}",
            words(&call.flags),
            self.ty(&call.ty.result),
            arguments.join(", "),
            self.printer.function_attributes(&call.attributes)
        )
    }
}

fn words(words: &[String]) -> String {
    words.iter().map(|word| format!("{word} ")).collect()
}

fn alignment(align: Option<u64>) -> String {
    align.map_or_else(String::new, |align| format!(", align {align}"))
}

fn volatile_word(volatile: bool) -> &'static str {
    if volatile { "volatile " } else { "" }
}

fn path(indices: &[u64]) -> String {
    indices.iter().map(|index| format!(", {index}")).collect()
}
