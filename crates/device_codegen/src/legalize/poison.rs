//! LLVM 7 has neither `poison` nor `freeze`: a value that is no value is `undef` there, and stays
//! so.

use super::editor::Outcome;
use crate::ir::{Constant, Module, Operand, Value, visit_constants_mut};

/// `poison` becomes `undef`, which promises the optimiser less.
pub(super) fn remove_from_constants(module: &mut Module) {
    let mut rewrite = |constant: &mut Constant| {
        constant.walk_mut(&mut |constant| {
            if *constant == Constant::Poison {
                *constant = Constant::Undef;
            }
        });
    };
    for global in module.globals.values_mut() {
        if let Some(initializer) = &mut global.initializer {
            rewrite(initializer);
        }
    }
    for function in module.functions.values_mut() {
        visit_constants_mut(function, &mut rewrite);
    }
}

/// `freeze x` becomes `x`; `freeze undef`, which must be the same at each use, becomes zero.
pub(super) fn thaw(operand: &Operand) -> Outcome {
    Outcome::Replace(Some(match &operand.value {
        Value::Constant(Constant::Undef | Constant::Poison) => Value::Constant(Constant::Zero),
        other => other.clone(),
    }))
}
