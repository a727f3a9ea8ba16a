//! Reads of parameters by value are not volatile.
//!
//! libNVVM 12.9 gives a volatile load of such a parameter an address in parameter memory, but
//! makes it a load at a generic address, which fails. Nothing writes that memory while the kernel
//! runs, so a volatile load and a plain one read the same.

use crate::ir::{Function, Module, Operation, Value};
use crate::pointers;

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
    let inside = pointers::computed_from(function, parameters.copied().collect());
    for instruction in function.instructions_mut() {
        if let Operation::Load {
            pointer, volatile, ..
        } = &mut instruction.operation
            && matches!(pointer.value, Value::Local(id) if inside.contains(&id))
        {
            *volatile = false;
        }
    }
}
