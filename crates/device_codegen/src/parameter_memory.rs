//! Reads of parameters by value are not volatile.
//!
//! libNVVM 12.9 gives a volatile load of such a parameter an address in parameter memory, but
//! makes it a load at a generic address, which fails. Nothing writes that memory while the kernel
//! runs, so a volatile load and a plain one read the same.

use std::collections::HashSet;

use crate::ir::{CastOperation, Function, LocalId, Module, Operand, Operation, Value};

/// Makes loads through pointers into parameters by value plain ones.
pub(crate) fn make_loads_plain(module: &mut Module) {
    module.functions.values_mut().for_each(in_function);
}

fn in_function(function: &mut Function) {
    let Some(kernel) = &function.kernel else {
        return;
    };
    let parameters = kernel.by_value.keys();
    let parameters = parameters.filter_map(|position| function.parameters.get(*position));
    let mut inside: HashSet<LocalId> = parameters.copied().collect();
    if inside.is_empty() {
        return;
    }
    // Blocks may stand before those that they depend on.
    let mut known = 0;
    while known < inside.len() {
        known = inside.len();
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            if let Some(base) = base(&instruction.operation)
                && leads_into(base, &inside)
            {
                inside.extend(instruction.result);
            }
        }
    }
    let blocks = function.blocks.iter_mut();
    for instruction in blocks.flat_map(|block| &mut block.instructions) {
        if let Operation::Load {
            pointer, volatile, ..
        } = &mut instruction.operation
            && leads_into(pointer, &inside)
        {
            *volatile = false;
        }
    }
}

/// The pointer that an operation moves within the same memory.
fn base(operation: &Operation) -> Option<&Operand> {
    match operation {
        Operation::ElementPointer { base, .. } => Some(base),
        Operation::Freeze(pointer) => Some(pointer),
        Operation::Cast {
            operation: CastOperation::Bitcast,
            from,
            ..
        } => Some(from),
        _ => None,
    }
}

fn leads_into(pointer: &Operand, inside: &HashSet<LocalId>) -> bool {
    matches!(pointer.value, Value::Local(id) if inside.contains(&id))
}
