//! Rewrites LLVM 22's dialect, which rustc emits, in the target dialect.
//!
//! Each rewrite is a function from an instruction to its replacement, and uses only what every
//! dialect has.

mod atomic_loops;
mod atomics;
mod calls;
mod copies;
mod division;
mod floats;
mod halves;
mod hints;
mod integers;
mod overflow;
mod poison;

use std::collections::{BTreeMap, HashSet};

use crate::Dialect;
use crate::error::Result;
use crate::intrinsics;
use crate::ir::{CastOperation, Editor, Function, FunctionType, Module, Operation, Symbol, Value};
use crate::parser;

/// What a rewrite made of an instruction.
pub(crate) enum Outcome {
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
        let ends_of_chains = match dialect {
            Dialect::TypedPointers => division::ends_of_chains(function),
            Dialect::OpaquePointers => HashSet::new(),
        };
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
                    Operation::Binary {
                        operation,
                        ty,
                        right,
                        ..
                    } if division::misleads(operation, dialect) => {
                        division::hide_divisor(&mut editor, ty, right)
                    }
                    Operation::Binary {
                        operation,
                        ty,
                        left,
                        right,
                        ..
                    } if instruction
                        .result
                        .is_some_and(|id| ends_of_chains.contains(&id)) =>
                    {
                        division::end_chain(&mut editor, operation, ty, left, right)
                    }
                    Operation::Cast {
                        operation:
                            operation @ (CastOperation::FloatExtend | CastOperation::FloatTruncate),
                        from,
                        to,
                        ..
                    } => halves::convert(&mut editor, *operation, from, to, dialect),
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
    define_helpers(module)?;
    declare_libdevice(module);
    Ok(())
}

/// Defines the functions of this module's parts that are called.
fn define_helpers(module: &mut Module) -> Result<()> {
    let calls = module.functions.values().flat_map(Function::calls);
    let called: BTreeMap<Symbol, String> = calls
        .filter_map(|(.., symbol)| {
            let text = atomic_loops::definition(symbol).or_else(|| copies::definition(symbol))?;
            Some((symbol.clone(), text))
        })
        .collect();
    for (symbol, text) in called {
        let mut defined = parser::parse(&symbol, &text)?;
        module.functions.append(&mut defined.functions);
    }
    Ok(())
}

/// Declares the functions of libdevice that are called and that the kernels have not declared.
fn declare_libdevice(module: &mut Module) {
    let mut missing = BTreeMap::new();
    for function in module.functions.values() {
        for (_, call, symbol) in function.calls() {
            if intrinsics::is_libdevice(symbol) && !module.functions.contains_key(symbol) {
                let FunctionType { result, parameters } = call.ty.clone();
                missing.entry(symbol.clone()).or_insert_with(|| {
                    Function::declaration(function.location.clone(), parameters, result)
                });
            }
        }
    }
    module.functions.append(&mut missing);
}
