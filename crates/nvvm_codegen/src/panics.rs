//! Panics become traps.
//!
//! `core::panicking::panic_bounds_check(index, len, &LOCATION)` has no body here and nowhere to
//! print. A call of it becomes a trap; its arguments are removed, and with them the messages,
//! file names and formatters that only it needs.

use crate::error::demangle;
use crate::ir::{
    AttributesExt, Block, Call, Callee, Function, FunctionType, Instruction, Module, Operation,
    Symbol, Terminator, TerminatorKind, Type,
};

/// LLVM's intrinsic that stops the grid with an error.
pub(crate) const TRAP: &str = "llvm.trap";

/// Replaces calls of panicking functions by traps and gives a body to those whose address is
/// taken.
pub(crate) fn trap_panics(module: &mut Module) {
    let panics: Vec<Symbol> = module
        .functions
        .iter()
        .filter(|(symbol, function)| is_panic(symbol, function))
        .map(|(symbol, _)| symbol.clone())
        .collect();
    for function in module.functions.values_mut() {
        for block in &mut function.blocks {
            for instruction in &mut block.instructions {
                if let Operation::Call(call) = &mut instruction.operation
                    && call
                        .symbol()
                        .is_some_and(|symbol| panics.binary_search(symbol).is_ok())
                    && instruction.result.is_none()
                {
                    **call = trap();
                }
            }
        }
    }
    for symbol in panics {
        if let Some(function) = module.functions.get_mut(&symbol) {
            make_body(function);
        }
    }
}

/// A function of `core` or `alloc` that is not available and never returns, or one of core's
/// generic panics.
fn is_panic(symbol: &Symbol, function: &Function) -> bool {
    if !function.attributes.has("noreturn") {
        return false;
    }
    let path = demangle(symbol);
    path.starts_with("core::panicking::")
        || function.is_declaration() && (path.starts_with("core::") || path.starts_with("alloc::"))
}

fn trap() -> Call {
    let ty = FunctionType {
        result: Type::Void,
        parameters: Vec::new(),
    };
    Call::plain(Callee::Symbol(TRAP.into()), ty, Vec::new())
}

/// The body for calls through a pointer.
fn make_body(function: &mut Function) {
    let line = function.location.line;
    function.linkage = crate::ir::Linkage::Local;
    function.scope = None;
    function.locals.clear();
    function.parameters.clear();
    for ty in function.ty.parameters.clone() {
        let parameter = function.fresh(ty);
        function.parameters.push(parameter);
    }
    function.blocks = vec![Block {
        name: "start".into(),
        instructions: vec![Instruction {
            result: None,
            operation: Operation::Call(Box::new(trap())),
            metadata: Vec::new(),
            source: None,
            line,
        }],
        terminator: Terminator {
            kind: TerminatorKind::Unreachable,
            metadata: Vec::new(),
            source: None,
            line,
        },
    }];
}
