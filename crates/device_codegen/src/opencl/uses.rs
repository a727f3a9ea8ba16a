//! How often and where each value is used, which decides whether it gets a variable.

use super::shuffle::own_value;
use crate::ir::{Function, Operation, Value};

/// Where a value is used.
#[derive(Clone, Copy, Default)]
pub(super) struct Uses {
    pub(super) count: u32,
    /// Whether all are in the block that defines it.
    pub(super) is_local: bool,
    /// Whether one is in a sum of floats.
    pub(super) in_sum: bool,
}

/// How often each value is used. The use in a phi is where the jump is.
pub(super) fn uses(function: &Function) -> Vec<Uses> {
    let mut blocks = vec![None; function.locals.len()];
    for (index, block) in function.blocks.iter().enumerate() {
        for instruction in &block.instructions {
            // A phi changes on each way into its block: it is always a variable.
            if let (Some(id), false) = (
                instruction.result,
                matches!(instruction.operation, Operation::Phi { .. }),
            ) {
                blocks[id.0 as usize] = Some(index);
            }
        }
    }
    let mut uses = vec![
        Uses {
            count: 0,
            is_local: true,
            in_sum: false,
        };
        function.locals.len()
    ];
    let mut note = |value: &Value, block: usize, in_sum: bool| {
        if let Value::Local(id) = value {
            let index = id.0 as usize;
            uses[index].count += 1;
            uses[index].is_local &= blocks[index] == Some(block);
            uses[index].in_sum |= in_sum;
        }
    };
    for (index, block) in function.blocks.iter().enumerate() {
        for instruction in &block.instructions {
            let in_sum = matches!(
                &instruction.operation,
                Operation::Binary { operation, .. } if matches!(&**operation, "fadd" | "fsub")
            );
            match &instruction.operation {
                Operation::Phi { incoming, .. } => {
                    for (value, from) in incoming {
                        note(value, from.0 as usize, false);
                    }
                }
                Operation::Call(call) if own_value(function, call).is_some() => {
                    own_value(function, call)
                        .into_iter()
                        .for_each(|value| note(value, index, false))
                }
                operation => operation
                    .values()
                    .into_iter()
                    .for_each(|value| note(value, index, in_sum)),
            }
        }
        let values = block.terminator.kind.values();
        values
            .into_iter()
            .for_each(|value| note(value, index, false));
    }
    uses
}
