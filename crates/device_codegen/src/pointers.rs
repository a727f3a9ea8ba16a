//! Which pointers lead into the same memory as others.

use std::collections::HashSet;

use crate::ir::{CastOperation, Function, LocalId, Operation, Value};

/// These pointers, and those that are computed from them alone.
pub(crate) fn computed_from(function: &Function, roots: HashSet<LocalId>) -> HashSet<LocalId> {
    if roots.is_empty() {
        return roots;
    }
    // A phi may depend on itself, so assume all and take away those with another origin.
    let mut pointers = roots;
    pointers.extend(
        function
            .instructions()
            .filter(|instruction| !origins(&instruction.operation).is_empty())
            .filter_map(|instruction| instruction.result),
    );
    loop {
        let is_known = |value: &&Value| matches!(value, Value::Local(id) if pointers.contains(id));
        let others: Vec<LocalId> = function
            .instructions()
            .filter(|instruction| !origins(&instruction.operation).iter().all(is_known))
            .filter_map(|instruction| instruction.result)
            .filter(|id| pointers.contains(id))
            .collect();
        if others.is_empty() {
            return pointers;
        }
        for other in others {
            pointers.remove(&other);
        }
    }
}

/// The pointers of which an operation makes a pointer into the same memory.
fn origins(operation: &Operation) -> Vec<&Value> {
    match operation {
        Operation::ElementPointer { base, .. } => vec![&base.value],
        Operation::Freeze(pointer) => vec![&pointer.value],
        Operation::Cast {
            operation: CastOperation::Bitcast,
            from,
            ..
        } => vec![&from.value],
        Operation::Select {
            then, otherwise, ..
        } => vec![then, otherwise],
        Operation::Phi { incoming, .. } => incoming.iter().map(|(value, _)| value).collect(),
        _ => Vec::new(),
    }
}
