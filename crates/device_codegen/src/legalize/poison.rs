//! LLVM 7 has neither `poison` nor `freeze`: a value that is no value is `undef` there, and stays
//! so.

use super::Outcome;
use crate::ir::{Constant, Module, Operand, Value};

/// `poison` becomes `undef`, which promises the optimiser less.
pub(super) fn remove_from_constants(module: &mut Module) {
    module.visit_constants_mut(&mut |constant| {
        if *constant == Constant::Poison {
            *constant = Constant::Undef;
        }
    });
}

/// `freeze x` becomes `x`; `freeze undef`, which must be the same at each use, becomes zero.
pub(super) fn thaw(operand: &Operand) -> Outcome {
    Outcome::Replace(Some(match &operand.value {
        Value::Constant(Constant::Undef | Constant::Poison) => Value::Constant(Constant::Zero),
        other => other.clone(),
    }))
}
