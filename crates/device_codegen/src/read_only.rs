//! Read-only memory: what `__nvvm_read_only(pointer)` returns leads to memory that nothing writes
//! while the kernel runs.
//!
//! ```text
//!     %a = call ptr @__nvvm_read_only(ptr %p)
//!     %at = getelementptr float, ptr %a, i64 %i
//!     %x = load float, ptr %at, align 4              ; becomes !invariant.load
//! ```
//!
//! libNVVM selects `ld.global.nc` for such a load, as it does by itself where a parameter of the
//! kernel is a shared reference; a reference inside a parameter by value has no such property in
//! LLVM.

use std::collections::HashSet;

use crate::intrinsics::READ_ONLY;
use crate::ir::{
    Attachments, Function, Instruction, LocalId, MetadataNode, Module, Operation, Value,
};
use crate::pointers;

/// The kind of metadata of a load whose memory nothing writes.
const INVARIANT: &str = "invariant.load";

/// Marks the loads of all functions.
pub(crate) fn mark_loads(module: &mut Module) {
    let node = module.next_metadata();
    let mut is_used = false;
    for function in module.functions.values_mut() {
        let pointers = read_only_pointers(function);
        for instruction in function.instructions_mut() {
            is_used |= mark(instruction, &pointers, node);
        }
    }
    if is_used {
        let empty = MetadataNode {
            distinct: false,
            items: Vec::new(),
        };
        module.metadata.insert(node, empty);
    }
}

fn mark(instruction: &mut Instruction, pointers: &HashSet<LocalId>, node: u32) -> bool {
    let Operation::Load {
        pointer,
        volatile: false,
        order: None,
        ..
    } = &instruction.operation
    else {
        return false;
    };
    let is_read_only = matches!(pointer.value, Value::Local(id) if pointers.contains(&id));
    let is_marked = |metadata: &Attachments| metadata.iter().any(|(kind, _)| kind == INVARIANT);
    if !is_read_only || is_marked(&instruction.metadata) {
        return false;
    }
    instruction.metadata.push((INVARIANT.to_owned(), node));
    true
}

/// The pointers into read-only memory: results of the calls, and what is computed from them alone.
fn read_only_pointers(function: &Function) -> HashSet<LocalId> {
    let calls = function
        .calls()
        .filter(|(.., symbol)| ***symbol == *READ_ONLY);
    let results = calls.filter_map(|(instruction, ..)| instruction.result);
    pointers::computed_from(function, results.collect())
}

/// Whether all that is done with a pointer is to read memory that nothing writes.
pub(crate) fn is_read_only(function: &Function, pointer: LocalId) -> bool {
    let pointers = pointers::computed_from(function, HashSet::from([pointer]));
    let is_one = |value: &Value| matches!(value, Value::Local(id) if pointers.contains(id));
    function
        .instructions()
        .all(|instruction| match &instruction.operation {
            Operation::Load { pointer, .. } if is_one(&pointer.value) => {
                let mut kinds = instruction.metadata.iter().map(|(kind, _)| kind);
                kinds.any(|kind| kind == INVARIANT)
            }
            Operation::Store { pointer, value, .. } => {
                !is_one(&pointer.value) && !is_one(&value.value)
            }
            Operation::Call(call) => !call.arguments.iter().any(is_one),
            Operation::AtomicUpdate { pointer, .. }
            | Operation::CompareExchange { pointer, .. } => !is_one(&pointer.value),
            _ => true,
        })
}
