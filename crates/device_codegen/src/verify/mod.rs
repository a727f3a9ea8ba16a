//! Checks what every module must satisfy before it is printed.
//!
//! 1. The entry block has no predecessors.
//! 2. A local value is defined once, and its definition dominates each use.
//! 3. A phi precedes all other instructions of its block and has one value for each predecessor,
//!    and no other.
//! 4. A function returns what its type says.
//! 5. A call of a function of the module has that function's type.
//! 6. A symbol that is mentioned exists, or the device offers it.
//! 7. Metadata that is attached or mentioned exists.
//! 8. The scope of a function in the line tables is a function's, and no other function has it.
//! 9. The scopes of a location exist, and so do those of the calls that it was inlined through;
//!    none contains itself.
//! 10. The outermost of them is the scope of the function that holds the instruction.
//! 11. A call of a function with a scope, in a function with a scope, has a location.
//!
//! The parser has checked already that a value has the same type at its definition and at each
//! use.

mod lines;

use std::collections::BTreeSet;

use crate::error::{Error, Result, demangle};
use crate::intrinsics;
use crate::ir::{
    Function, LocalId, MetadataItem, Module, Operation, Symbol, TerminatorKind, Type, Value,
};
use crate::loops::{Dominators, predecessors};

/// Checks all functions of a module.
pub(crate) fn verify(module: &Module) -> Result<()> {
    lines::verify_scopes(module)?;
    for function in module.functions.values() {
        if function.is_declaration() {
            continue;
        }
        verify_body(function)?;
        verify_calls(module, function)?;
        verify_metadata(module, function)?;
        lines::verify_locations(module, function)?;
    }
    Ok(())
}

/// Where a value is defined: block and position. Parameters come before everything.
#[derive(Clone, Copy)]
enum Definition {
    Parameter,
    At(usize, usize),
}

fn verify_body(function: &Function) -> Result<()> {
    let predecessors = predecessors(function);
    let fail = |line: u32, problem: String| Err(Error::new(&function.location_of(line), problem));
    if predecessors.first().is_some_and(|list| !list.is_empty()) {
        return fail(
            function.location.line,
            "the entry block is jumped to".to_owned(),
        );
    }
    let definitions = definitions(function)?;
    let dominators = Dominators::of(function, &predecessors);
    let check_use = |value: &Value, block: usize, position: usize, line: u32| {
        let Value::Local(id) = value else {
            return Ok(());
        };
        let dominated = match definitions.get(id.0 as usize).copied().flatten() {
            Some(Definition::Parameter) => true,
            Some(Definition::At(home, at)) if home == block => at < position,
            Some(Definition::At(home, _)) => dominators.dominates(home, block),
            None => false,
        };
        match dominated || !dominators.is_reached(block) {
            true => Ok(()),
            false => fail(
                line,
                format!(
                    "{} is used where it is not defined",
                    local_name(function, *id)
                ),
            ),
        }
    };
    for (index, block) in function.blocks.iter().enumerate() {
        let mut phis_ended = false;
        for (position, instruction) in block.instructions.iter().enumerate() {
            let line = instruction.line;
            let Operation::Phi { incoming, .. } = &instruction.operation else {
                phis_ended = true;
                for value in instruction.operation.values() {
                    check_use(value, index, position, line)?;
                }
                continue;
            };
            if phis_ended {
                return fail(line, "a phi stands after another instruction".to_owned());
            }
            let from: BTreeSet<usize> =
                incoming.iter().map(|(_, block)| block.0 as usize).collect();
            let expected: BTreeSet<usize> = predecessors[index].iter().copied().collect();
            if from != expected || incoming.len() != predecessors[index].len() {
                return fail(
                    line,
                    "a phi does not have one value for each predecessor".to_owned(),
                );
            }
            for (value, from) in incoming {
                check_use(value, from.0 as usize, usize::MAX, line)?;
            }
        }
        let line = block.terminator.line;
        for value in block.terminator.kind.values() {
            check_use(value, index, usize::MAX, line)?;
        }
        if let TerminatorKind::Return(operand) = &block.terminator.kind {
            let returned = operand.as_ref().map_or(&Type::Void, |operand| &operand.ty);
            if *returned != function.ty.result {
                return fail(
                    line,
                    format!(
                        "it returns a `{returned}`, but its type says `{}`",
                        function.ty.result
                    ),
                );
            }
        }
    }
    Ok(())
}

fn definitions(function: &Function) -> Result<Vec<Option<Definition>>> {
    let mut definitions = vec![None; function.locals.len()];
    for parameter in &function.parameters {
        definitions[parameter.0 as usize] = Some(Definition::Parameter);
    }
    for (block_index, block) in function.blocks.iter().enumerate() {
        for (position, instruction) in block.instructions.iter().enumerate() {
            let Some(id) = instruction.result else {
                continue;
            };
            let slot = &mut definitions[id.0 as usize];
            if slot.is_some() {
                return Err(Error::new(
                    &function.location_of(instruction.line),
                    format!("{} is defined twice", local_name(function, id)),
                ));
            }
            *slot = Some(Definition::At(block_index, position));
        }
    }
    Ok(definitions)
}

fn local_name(function: &Function, id: LocalId) -> String {
    match &function.locals[id.0 as usize].name {
        Some(name) => format!("`%{name}`"),
        None => "a value of the compiler".to_owned(),
    }
}

fn verify_calls(module: &Module, function: &Function) -> Result<()> {
    for (instruction, call, symbol) in function.calls() {
        if let Some(callee) = module.functions.get(symbol)
            && call.ty != callee.ty
        {
            return Err(Error::new(
                &function.location_of(instruction.line),
                format!(
                    "`{}` is called with other parameters or another result than it is declared with",
                    demangle(symbol)
                ),
            ));
        }
    }
    let exists = |symbol: &Symbol| {
        module.functions.contains_key(symbol)
            || module.globals.contains_key(symbol)
            || intrinsics::is_offered(symbol)
    };
    let mut symbols = function.symbols().into_iter();
    match symbols.find(|(symbol, _)| !exists(symbol)) {
        Some((symbol, line)) => Err(Error::new(
            &function.location_of(line),
            format!("`{}` does not exist", demangle(symbol)),
        )),
        None => Ok(()),
    }
}

fn verify_metadata(module: &Module, function: &Function) -> Result<()> {
    let fail = |line: u32, number: u32| {
        Err(Error::new(
            &function.location_of(line),
            format!("the metadata `!{number}` is not defined"),
        ))
    };
    let mut seen = BTreeSet::new();
    let mut waiting = Vec::new();
    for (metadata, _, line) in function.attachments() {
        waiting.extend(metadata.iter().map(|(_, number)| (*number, line)));
    }
    while let Some((number, line)) = waiting.pop() {
        if !seen.insert(number) {
            continue;
        }
        let Some(node) = module.metadata.get(&number) else {
            return fail(line, number);
        };
        for item in &node.items {
            if let MetadataItem::Node(number) = item {
                waiting.push((*number, line));
            }
        }
    }
    Ok(())
}
