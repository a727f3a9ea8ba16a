//! Shuffles of a warp. OpenCL C 1.2 has none, so that only the one that moves nothing is written:
//! kernels read a value from their own lane to keep it in a register.

use crate::ir::{Call, Function, Value};

/// What a shuffle gives in which each lane reads its own value. Nothing else of it is used.
pub(super) fn own_value<'c>(function: &Function, call: &'c Call) -> Option<&'c Value> {
    let symbol = call.symbol()?;
    let [_, value, Value::Local(lane), _] = call.arguments.as_slice() else {
        return None;
    };
    if **symbol != *"llvm.nvvm.shfl.sync.idx.i32" {
        return None;
    }
    let made = function.definition(*lane)?.operation.call()?;
    (**made.symbol()? == *"llvm.nvvm.read.ptx.sreg.laneid").then_some(value)
}
