//! Panics become traps, which say before what happened and where if the host listens.
//!
//! `core::panicking::panic_bounds_check(index, len, &LOCATION)` has no body here and nowhere to
//! print. A call of it becomes a trap; its arguments are removed, and with them the messages,
//! file names and formatters that only it needs.
//!
//! With messages, each call becomes a jump to the one block of the function that calls
//! `__nvvm_panic` (see `record.ll`), with the number of the call and its integers. Texts stay on
//! the host: [`NvvmModule::panics`](crate::NvvmModule) lists them by number.
//!
//! ```text
//!     if index < len { .. } else { number = 3, first = index, second = len } ---+
//!     if divisor != 0 { .. } else { number = 4, first = 0, second = 0 } --------+
//!                                                                               |
//!                                 call __nvvm_panic(number, first, second, ..) <+
//! ```

mod message;

use crate::error::{Result, demangle};
use crate::ir::{
    Attribute, AttributesExt, Block, BlockId, Call, Callee, CastOperation, Editor, Function,
    FunctionType, Instruction, Linkage, Module, Operation, Symbol, Terminator, TerminatorKind,
    Type, Value,
};
use crate::parser;
use crate::source_place;

/// LLVM's intrinsic that stops the grid with an error.
pub(crate) const TRAP: &str = "llvm.trap";

/// The function that [`RECORD`] defines, and the variable in which the host puts an address.
pub(crate) const PANIC: &str = "__nvvm_panic";
const ADDRESS: &str = "__nvvm_panic_record";
const RECORD: &str = include_str!("record.ll");

/// How many numbers a panic can show.
const NUMBERS: usize = 3;

/// Replaces calls of panicking functions by traps and gives a body to those whose address is
/// taken. With messages, it returns what each panic says, by its number.
pub(crate) fn lower(module: &mut Module, messages: bool) -> Result<Vec<String>> {
    let panics: Vec<Symbol> = module
        .functions
        .iter()
        .filter(|(symbol, function)| is_panic(symbol, function))
        .map(|(symbol, _)| symbol.clone())
        .collect();
    let said = match messages {
        true => report(module, &panics)?,
        false => Vec::new(),
    };
    trap_calls(module, &panics);
    for symbol in panics {
        if let Some(function) = module.functions.get_mut(&symbol) {
            make_body(function);
        }
    }
    Ok(said)
}

fn is_panicking(instruction: &Instruction, panics: &[Symbol]) -> bool {
    let symbol = instruction.operation.call().and_then(Call::symbol);
    instruction.result.is_none() && symbol.is_some_and(|it| panics.binary_search(it).is_ok())
}

/// Makes traps of all calls that are left.
fn trap_calls(module: &mut Module, panics: &[Symbol]) {
    for instruction in module
        .functions
        .values_mut()
        .flat_map(Function::instructions_mut)
    {
        if is_panicking(instruction, panics) {
            instruction.operation = trap();
        }
    }
}

/// Makes calls of [`PANIC`] of the calls that end their block.
fn report(module: &mut Module, panics: &[Symbol]) -> Result<Vec<String>> {
    let mut said = Vec::new();
    for (symbol, function) in &mut module.functions {
        // Those are what is replaced.
        if panics.binary_search(symbol).is_ok() {
            continue;
        }
        let mut jumps = Vec::new();
        for block in 0..function.blocks.len() {
            let Block {
                instructions,
                terminator,
                ..
            } = &function.blocks[block];
            let found = instructions
                .iter()
                .position(|instruction| is_panicking(instruction, panics));
            if let Some(at) = found
                && matches!(terminator.kind, TerminatorKind::Unreachable)
                && let Operation::Call(call) = &instructions[at].operation
                && let Some(symbol) = call.symbol()
            {
                let place = message::location(&module.globals, call).or_else(|| {
                    let places = source_place::places(&module.lines, instructions[at].source?);
                    Some(places.first()?.to_string())
                });
                let message = message::message(&module.globals, symbol, call);
                let numbers = message::numbers(&message, call);
                let number = said.len() as i128;
                said.push(format!("{}: {message}", place.unwrap_or_default()));
                let values = jump(function, block, at, numbers);
                jumps.push((BlockId(block as u32), Value::integer(number), values));
            }
        }
        if !jumps.is_empty() {
            append_block(function, jumps);
        }
    }
    if !said.is_empty() {
        define(module)?;
    }
    Ok(said)
}

/// Ends a block before the call at this position, with a jump to the block that is appended next,
/// and returns the numbers as 64 bits.
fn jump(
    function: &mut Function,
    block: usize,
    at: usize,
    numbers: Vec<(Type, Value)>,
) -> Vec<Value> {
    let target = BlockId(function.blocks.len() as u32);
    let ended = &mut function.blocks[block];
    ended.terminator.kind = TerminatorKind::Branch(target);
    let line = ended.instructions[at].line;
    let mut instructions = std::mem::take(&mut ended.instructions);
    instructions.truncate(at);
    let mut editor = Editor::new(function);
    (editor.instructions, editor.line) = (instructions, line);
    let numbers = numbers.into_iter().map(|(ty, value)| match ty {
        Type::Integer(64) => value,
        _ => editor.cast(CastOperation::ZeroExtend, &ty, &value, &Type::Integer(64)),
    });
    let mut wide: Vec<Value> = numbers.collect();
    function.blocks[block].instructions = editor.finish();
    wide.resize(NUMBERS, Value::integer(0));
    wide
}

/// Appends the block that calls [`PANIC`], from the blocks that jump there with these values.
fn append_block(function: &mut Function, jumps: Vec<(BlockId, Value, Vec<Value>)>) {
    let line = function.location.line;
    let mut editor = Editor::new(function);
    editor.line = line;
    let mut arguments = Vec::new();
    let mut parameters = Vec::new();
    for position in 0..=NUMBERS {
        let ty = Type::Integer(if position == 0 { 32 } else { 64 });
        let incoming = jumps.iter().map(|(block, number, values)| {
            let value = match position.checked_sub(1) {
                None => number,
                Some(position) => &values[position],
            };
            (value.clone(), *block)
        });
        let operation = Operation::Phi {
            flags: Vec::new(),
            ty: ty.clone(),
            incoming: incoming.collect(),
        };
        arguments.push(editor.value(ty.clone(), operation));
        parameters.push(ty);
    }
    let ty = FunctionType {
        result: Type::Void,
        parameters,
    };
    let mut call = Call::plain(Callee::Symbol(PANIC.into()), ty, arguments);
    call.attributes = ["cold", "noreturn", "nounwind"]
        .map(Attribute::flag)
        .to_vec();
    editor.effect(Operation::Call(Box::new(call)));
    let instructions = editor.finish();
    function.blocks.push(Block {
        name: "panics".into(),
        instructions,
        terminator: Terminator::unreachable(line),
    });
}

/// Adds [`PANIC`] and what it needs.
fn define(module: &mut Module) -> Result<()> {
    let mut record = parser::parse("record.ll", RECORD)?;
    if let Some(address) = record.globals.get_mut(ADDRESS) {
        address.linkage = Linkage::Exported;
    }
    module.globals.append(&mut record.globals);
    for (symbol, function) in record.functions {
        module.functions.entry(symbol).or_insert(function);
    }
    Ok(())
}

/// A function of Rust's own libraries that is not available and never returns, or one of their
/// generic panics.
fn is_panic(symbol: &Symbol, function: &Function) -> bool {
    if !function.attributes.has("noreturn") {
        return false;
    }
    let path = demangle(symbol);
    let starts_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| path.starts_with(prefix));
    starts_with(&["core::panicking::", "std::panicking::"])
        || function.is_declaration() && starts_with(&["core::", "alloc::", "std::"])
}

fn trap() -> Operation {
    Operation::intrinsic(TRAP, &Type::Void, &[])
}

/// The body for calls through a pointer.
fn make_body(function: &mut Function) {
    let line = function.location.line;
    function.linkage = Linkage::Local;
    function.scope = None;
    function.locals.clear();
    function.parameters.clear();
    for ty in function.ty.parameters.clone() {
        let parameter = function.fresh(ty);
        function.parameters.push(parameter);
    }
    function.blocks = vec![Block {
        name: "start".into(),
        instructions: vec![Instruction::new(None, trap(), None, line)],
        terminator: Terminator::unreachable(line),
    }];
}
