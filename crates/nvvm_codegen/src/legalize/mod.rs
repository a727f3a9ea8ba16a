//! Rewrites LLVM 22's dialect, which rustc emits, in the target dialect.
//!
//! Each rewrite is a function from an instruction to its replacement, and uses only what every
//! dialect has.

mod atomics;
mod calls;
mod editor;
mod floats;
mod hints;
mod integers;
mod overflow;
mod poison;

use crate::Dialect;
use crate::error::Result;
use crate::ir::{Function, Module, Operation, Symbol, Value, visit_symbols};
use editor::Editor;

/// What a rewrite made of an instruction.
enum Outcome {
    /// It is as it was, or was changed in place.
    Keep,
    /// It is removed, and its value, if it has one, is replaced by this.
    Replace(Option<Value>),
}

/// Rewrites all instructions and constants.
pub(crate) fn legalize(module: &mut Module, dialect: Dialect) -> Result<()> {
    if dialect == Dialect::TypedPointers {
        poison::remove_from_constants(module);
    }
    for function in module.functions.values_mut() {
        calls::mark_convergent(&mut function.attributes);
        let mut substitutes = Vec::new();
        for index in 0..function.blocks.len() {
            let instructions = std::mem::take(&mut function.blocks[index].instructions);
            let mut editor = Editor::new(function);
            for mut instruction in instructions {
                editor.line = instruction.line;
                editor.source = instruction.source;
                if dialect == Dialect::TypedPointers {
                    hints::remove(&mut instruction.operation);
                }
                let outcome = match &mut instruction.operation {
                    Operation::Freeze(operand) if dialect == Dialect::TypedPointers => {
                        poison::thaw(operand)
                    }
                    Operation::FloatNegate { operand, .. } if dialect == Dialect::TypedPointers => {
                        floats::negate(&mut editor, operand)
                    }
                    Operation::Binary {
                        operation,
                        ty,
                        left,
                        right,
                        ..
                    } if operation == "frem" => floats::remainder(&mut editor, ty, left, right)?,
                    Operation::Load { .. }
                    | Operation::Store { .. }
                    | Operation::AtomicUpdate { .. }
                    | Operation::CompareExchange { .. }
                    | Operation::Fence { .. } => atomics::rewrite(&mut editor, &mut instruction)?,
                    Operation::Call(call) => calls::rewrite(&mut editor, call, dialect)?,
                    _ => Outcome::Keep,
                };
                match outcome {
                    Outcome::Keep => editor.push(instruction),
                    Outcome::Replace(value) => {
                        if let Some((result, value)) = instruction.result.zip(value) {
                            editor.take_name(result, &value);
                            substitutes.push((result, value));
                        }
                    }
                }
            }
            function.blocks[index].instructions = editor.finish();
        }
        function.substitute(&substitutes);
    }
    declare_remainders(module);
    Ok(())
}

/// Declares what `frem` has become, where it is called and the kernels have not declared it.
fn declare_remainders(module: &mut Module) {
    for (name, ty) in floats::REMAINDERS {
        let mut caller = None;
        for function in module.functions.values() {
            visit_symbols(function, &mut |symbol, _| {
                if **symbol == *name {
                    caller.get_or_insert(&function.location);
                }
            });
        }
        if let Some(location) = caller.cloned() {
            let declaration = Function::declaration(location, vec![ty.clone(), ty.clone()], ty);
            let symbol = Symbol::from(name);
            module.functions.entry(symbol).or_insert(declaration);
        }
    }
}
