//! Atomic accesses and fences, which libNVVM supports only in part.
//!
//! It accepts `atomicrmw` and `cmpxchg` of 32 and 64-bit integers, and ignores their ordering; it
//! accepts no atomic load, no atomic store and no `fence`. So every ordering becomes memory
//! barriers around a relaxed access: one before for release, one after for acquire. A relaxed
//! load or store is a volatile one, as PTX defines `ld.volatile`. Pointers are exchanged as the
//! integers that they are; what no GPU has becomes a loop (see `atomic_loops.rs`).

use super::Outcome;
use super::atomic_loops;
use crate::error::Result;
use crate::ir::{
    Call, Callee, CastOperation, Editor, FunctionType, InlineAssembly, Instruction, MemoryOrder,
    Operand, Operation, Type, Value,
};

/// Orders the accesses of a thread as all threads of the system see them.
const SYSTEM_FENCE: &str = "llvm.nvvm.membar.sys";

const ADDRESS: Type = Type::Integer(64);

/// Rewrites a load, a store, an atomic operation or a fence.
pub(super) fn rewrite(editor: &mut Editor<'_>, instruction: &mut Instruction) -> Result<Outcome> {
    if let Operation::Fence { single_thread } = instruction.operation {
        match single_thread {
            true => editor.effect(compiler_fence()),
            false => editor.intrinsic_effect(SYSTEM_FENCE, &[]),
        }
        return Ok(Outcome::Replace(None));
    }
    let (before, after) = relax(editor, &mut instruction.operation)?;
    if before {
        editor.intrinsic_effect(SYSTEM_FENCE, &[]);
    }
    let value = match atomic_loops::call(editor, &instruction.operation) {
        None => exchange_addresses(editor, &mut instruction.operation),
        value => value,
    };
    if value.is_none() {
        if !after {
            return Ok(Outcome::Keep);
        }
        editor.push(Instruction {
            operation: instruction.operation.clone(),
            metadata: std::mem::take(&mut instruction.metadata),
            ..*instruction
        });
    }
    if after {
        editor.intrinsic_effect(SYSTEM_FENCE, &[]);
    }
    Ok(Outcome::Replace(value))
}

/// Removes the ordering from an access and returns whether it needs a fence before and after it
/// instead.
fn relax(editor: &Editor<'_>, operation: &mut Operation) -> Result<(bool, bool)> {
    match operation {
        Operation::Load {
            ty,
            volatile,
            order,
            ..
        } => {
            let Some(order) = order.take() else {
                return Ok((false, false));
            };
            check_width(editor, ty)?;
            *volatile = true;
            let is_total = order == MemoryOrder::SequentiallyConsistent;
            Ok((is_total, order.acquires()))
        }
        Operation::Store {
            value,
            volatile,
            order,
            ..
        } => {
            let Some(order) = order.take() else {
                return Ok((false, false));
            };
            check_width(editor, &value.ty)?;
            *volatile = true;
            let is_total = order == MemoryOrder::SequentiallyConsistent;
            Ok((order.releases(), is_total))
        }
        Operation::AtomicUpdate {
            operation,
            operand,
            order,
            ..
        } => {
            check_width(editor, &operand.ty)?;
            if let Some(width) = operand.ty.integer_width()
                && atomic_loops::is_needed(operation, width)
                && !atomic_loops::is_known(operation)
            {
                return Err(editor.error(format!(
                    "a GPU has no atomic `{operation}`; write it as a loop around `compare_exchange`"
                )));
            }
            let order = std::mem::replace(order, MemoryOrder::Monotonic);
            Ok((order.releases(), order.acquires()))
        }
        Operation::CompareExchange {
            replacement,
            success,
            failure,
            ..
        } => {
            check_width(editor, &replacement.ty)?;
            let success = std::mem::replace(success, MemoryOrder::Monotonic);
            let failure = std::mem::replace(failure, MemoryOrder::Monotonic);
            Ok((success.releases(), success.acquires() || failure.acquires()))
        }
        _ => Ok((false, false)),
    }
}

fn check_width(editor: &Editor<'_>, ty: &Type) -> Result<()> {
    let fits = matches!(ty, Type::Pointer(_) | Type::Integer(8 | 16 | 32 | 64));
    match fits {
        true => Ok(()),
        false => Err(editor.error(format!(
            "a GPU has no atomic access of type `{ty}`; use an integer of up to 64 bits"
        ))),
    }
}

/// Does an atomic exchange of pointers on their addresses. `None` if it is not one.
fn exchange_addresses(editor: &mut Editor<'_>, operation: &mut Operation) -> Option<Value> {
    match operation {
        Operation::AtomicUpdate { operand, .. } => {
            let pointer = to_address(editor, operand)?;
            let old = editor.value(ADDRESS, operation.clone());
            Some(editor.cast(CastOperation::IntegerToPointer, &ADDRESS, &old, &pointer))
        }
        Operation::CompareExchange {
            expected,
            replacement,
            ..
        } => {
            let pointer = to_address(editor, expected)?;
            to_address(editor, replacement)?;
            let pair = Type::tuple([ADDRESS, Type::BOOL]);
            let old = editor.value(pair.clone(), operation.clone());
            let mut part = |index, ty| {
                let operation = Operation::ExtractValue {
                    aggregate: Operand::new(pair.clone(), old.clone()),
                    indices: vec![index],
                };
                editor.value(ty, operation)
            };
            let (address, success) = (part(0, ADDRESS), part(1, Type::BOOL));
            let old = editor.cast(
                CastOperation::IntegerToPointer,
                &ADDRESS,
                &address,
                &pointer,
            );
            Some(editor.pair((&pointer, old), (&Type::BOOL, success)))
        }
        _ => None,
    }
}

/// Replaces a pointer by its address and returns its type; `None` if it is no pointer.
fn to_address(editor: &mut Editor<'_>, operand: &mut Operand) -> Option<Type> {
    if !matches!(operand.ty, Type::Pointer(_)) {
        return None;
    }
    operand.value = editor.cast(
        CastOperation::PointerToInteger,
        &operand.ty,
        &operand.value,
        &ADDRESS,
    );
    Some(std::mem::replace(&mut operand.ty, ADDRESS))
}

/// Prevents only the compiler from moving accesses across.
fn compiler_fence() -> Operation {
    let assembly = InlineAssembly {
        side_effect: true,
        text: Vec::new(),
        constraints: "~{memory}".to_owned(),
    };
    let ty = FunctionType {
        result: Type::Void,
        parameters: Vec::new(),
    };
    Operation::Call(Box::new(Call::plain(
        Callee::Assembly(assembly),
        ty,
        Vec::new(),
    )))
}
