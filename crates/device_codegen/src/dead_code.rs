//! Removes dead code: pure instructions without uses, and writes to stack slots that are never
//! read.
//!
//! The purpose is not speed, which libNVVM takes care of: once a panic has become a trap, the
//! stack slots that held its message still refer to formatters of `core` that no device has.

use std::collections::{HashMap, HashSet};

use crate::ir::{Function, LocalId, Module, Operation, Value};

/// Cleans every function of the module.
pub(crate) fn remove_dead_code(module: &mut Module) {
    for function in module.functions.values_mut() {
        loop {
            let writes = remove_unread_writes(function);
            let values = remove_unused_values(function);
            if !writes && !values {
                break;
            }
        }
    }
}

/// Removes side-effect-free instructions whose value is unused, from the last to the first, so
/// that a chain is removed in one pass.
fn remove_unused_values(function: &mut Function) -> bool {
    let mut uses = vec![0_u32; function.locals.len()];
    for value in function.values() {
        if let Value::Local(id) = value {
            uses[id.0 as usize] += 1;
        }
    }
    let mut removed = false;
    for block in function.blocks.iter_mut().rev() {
        let mut kept = Vec::with_capacity(block.instructions.len());
        for instruction in block.instructions.drain(..).rev() {
            let is_unused = instruction
                .result
                .is_some_and(|id| uses[id.0 as usize] == 0);
            if !is_unused || !is_pure(&instruction.operation) {
                kept.push(instruction);
                continue;
            }
            removed = true;
            for value in instruction.operation.values() {
                if let Value::Local(id) = value {
                    uses[id.0 as usize] -= 1;
                }
            }
        }
        kept.reverse();
        block.instructions = kept;
    }
    removed
}

/// Whether an operation only computes its value.
fn is_pure(operation: &Operation) -> bool {
    match operation {
        Operation::Store { .. }
        | Operation::Call(_)
        | Operation::AtomicUpdate { .. }
        | Operation::CompareExchange { .. }
        | Operation::Fence { .. } => false,
        Operation::Load {
            volatile, order, ..
        } => !volatile && order.is_none(),
        _ => true,
    }
}

/// Removes plain stores, fills and copies into stack slots whose contents are never read and
/// whose address does not escape.
fn remove_unread_writes(function: &mut Function) -> bool {
    let slots = unread_slots(function);
    if slots.is_empty() {
        return false;
    }
    let mut removed = false;
    for block in &mut function.blocks {
        block.instructions.retain(|instruction| {
            let is_dead = written_slot(&instruction.operation)
                .is_some_and(|pointer| slots.contains_key(&pointer));
            removed |= is_dead;
            !is_dead
        });
    }
    removed
}

/// The local pointer that an operation writes to, if it does nothing else.
fn written_slot(operation: &Operation) -> Option<LocalId> {
    let pointer = match operation {
        Operation::Store {
            pointer,
            volatile: false,
            order: None,
            ..
        } => &pointer.value,
        Operation::Call(call) => {
            let name = call.symbol()?;
            let is_write = ["llvm.memcpy.", "llvm.memmove.", "llvm.memset."]
                .iter()
                .any(|prefix| name.starts_with(prefix));
            if is_write && call.arguments.get(3).and_then(Value::as_integer) == Some(0) {
                call.arguments.first()?
            } else if name.starts_with("llvm.lifetime.") {
                call.arguments.last()?
            } else {
                return None;
            }
        }
        _ => return None,
    };
    match pointer {
        Value::Local(id) => Some(*id),
        _ => None,
    }
}

/// Stack slots that are only written to, and the pointers into them, each with its slot.
fn unread_slots(function: &Function) -> HashMap<LocalId, LocalId> {
    // Pointers into a slot, by definition; a pointer is defined before its uses in the order of
    // dominance, which need not be the order of the blocks, hence the loop.
    let mut slot_of: HashMap<LocalId, LocalId> = HashMap::new();
    loop {
        let before = slot_of.len();
        for instruction in function.instructions() {
            let Some(result) = instruction.result else {
                continue;
            };
            match &instruction.operation {
                Operation::Allocate { .. } => {
                    slot_of.insert(result, result);
                }
                Operation::ElementPointer { base, .. } => {
                    if let Value::Local(base) = &base.value
                        && let Some(slot) = slot_of.get(base).copied()
                    {
                        slot_of.insert(result, slot);
                    }
                }
                _ => {}
            }
        }
        if slot_of.len() == before {
            break;
        }
    }
    let mut read = HashSet::new();
    let mut read_value = |value: &Value| {
        if let Value::Local(id) = value
            && let Some(slot) = slot_of.get(id)
        {
            read.insert(*slot);
        }
    };
    for block in &function.blocks {
        for instruction in &block.instructions {
            let harmless = match &instruction.operation {
                Operation::ElementPointer { base, .. } => match &base.value {
                    Value::Local(base) => Some(*base),
                    _ => None,
                },
                operation => written_slot(operation),
            };
            // One use of the pointer is harmless; a store of a slot's address into the slot
            // itself is not.
            let mut spared = false;
            for value in instruction.operation.values() {
                if !spared
                    && harmless.is_some_and(|id| *value == Value::Local(id))
                    && !is_stored(&instruction.operation, value)
                {
                    spared = true;
                    continue;
                }
                read_value(value);
            }
        }
        block
            .terminator
            .kind
            .values()
            .into_iter()
            .for_each(&mut read_value);
    }
    slot_of.retain(|_, slot| !read.contains(slot));
    slot_of
}

/// Whether `value` is what a store writes, not where it writes.
fn is_stored(operation: &Operation, value: &Value) -> bool {
    match operation {
        Operation::Store { value: stored, .. } => std::ptr::eq(&stored.value, value),
        _ => false,
    }
}
