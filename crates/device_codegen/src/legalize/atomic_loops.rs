//! Atomic operations that no GPU has, as functions that repeat a compare-and-swap until it
//! succeeds: those of 8 and 16 bits, and `nand`.
//!
//! A number of 8 or 16 bits is a part of the aligned 32-bit word around it, which is exchanged as
//! a whole. If another thread has changed any part of it in between, the loop repeats.
//!
//! ```text
//!     bits of the word    31 .. 24    23 .. 16    15 .. 8    7 .. 0
//!     address modulo 4    3           2           1          0           little-endian
//!     shift               24          16          8          0
//! ```
//!
//! The memory order is the caller's: see `atomics.rs`.

use crate::ir::{Call, Callee, Editor, FunctionType, Operand, Operation, Type, Value};

/// What the functions are called: `__nvvm_atomic_add_i8`.
const PREFIX: &str = "__nvvm_atomic_";

/// Whether an atomic operation of this width must be a loop.
pub(super) fn is_needed(operation: &str, width: u32) -> bool {
    width < 32 || operation == "nand"
}

/// Whether [`is_needed`] operations of this name can be a loop.
pub(super) fn is_known(operation: &str) -> bool {
    computation(operation, "").is_some()
}

/// Calls the function that replaces an atomic operation. `None` if a GPU has it.
pub(super) fn call(editor: &mut Editor<'_>, operation: &Operation) -> Option<Value> {
    let (name, pointer, operands, result) = match operation {
        Operation::AtomicUpdate {
            operation,
            pointer,
            operand,
            ..
        } => (
            operation.as_str(),
            pointer,
            vec![operand],
            operand.ty.clone(),
        ),
        Operation::CompareExchange {
            pointer,
            expected,
            replacement,
            ..
        } => (
            "cmpxchg",
            pointer,
            vec![expected, replacement],
            Type::tuple([expected.ty.clone(), Type::BOOL]),
        ),
        _ => return None,
    };
    let width = operands.first()?.ty.integer_width()?;
    if !is_needed(name, width) {
        return None;
    }
    let arguments: Vec<&Operand> = [pointer].into_iter().chain(operands).collect();
    let ty = FunctionType {
        result: result.clone(),
        parameters: arguments.iter().map(|operand| operand.ty.clone()).collect(),
    };
    let arguments = arguments.iter().map(|operand| operand.value.clone());
    let callee = Callee::Symbol(format!("{PREFIX}{name}_i{width}").into());
    let call = Call::plain(callee, ty, arguments.collect());
    Some(editor.value(result, Operation::Call(Box::new(call))))
}

/// The text of the function of this name; `None` if it is not one of these functions.
pub(super) fn definition(symbol: &str) -> Option<String> {
    let (operation, width) = symbol.strip_prefix(PREFIX)?.split_once("_i")?;
    let part = Part::of_width(width.parse().ok()?);
    let Part {
        ty,
        word,
        place,
        seen,
        next,
        locate,
        extract,
        insert,
    } = &part;
    let exchange = format!(
        "{insert}  \
           %pair = cmpxchg ptr {place}, {word} {seen}, {word} {next} monotonic monotonic\n  \
           %found = extractvalue {{ {word}, i1 }} %pair, 0\n  \
           %done = extractvalue {{ {word}, i1 }} %pair, 1\n"
    );
    if operation == "cmpxchg" {
        return Some(format!(
            "define internal {{ {ty}, i1 }} @{symbol}(ptr %pointer, {ty} %expected, {ty} %new) {{\n\
             start:\n{locate}  \
               %first = load volatile {word}, ptr {place}\n  \
               br label %test\n\
             test:\n  \
               {seen} = phi {word} [ %first, %start ], [ %found, %try ]\n{extract}  \
               %equal = icmp eq {ty} %old, %expected\n  \
               br i1 %equal, label %try, label %end\n\
             try:\n{exchange}  \
               br i1 %done, label %end, label %test\n\
             end:\n  \
               %exchanged = phi i1 [ false, %test ], [ true, %try ]\n  \
               %half = insertvalue {{ {ty}, i1 }} undef, {ty} %old, 0\n  \
               %both = insertvalue {{ {ty}, i1 }} %half, i1 %exchanged, 1\n  \
               ret {{ {ty}, i1 }} %both\n\
             }}\n"
        ));
    }
    let compute = computation(operation, ty)?;
    Some(format!(
        "define internal {ty} @{symbol}(ptr %pointer, {ty} %operand) {{\n\
         start:\n{locate}  \
           %first = load volatile {word}, ptr {place}\n  \
           br label %try\n\
         try:\n  \
           {seen} = phi {word} [ %first, %start ], [ %found, %try ]\n{extract}{compute}{exchange}  \
           br i1 %done, label %end, label %try\n\
         end:\n  \
           ret {ty} %old\n\
         }}\n"
    ))
}

/// How `%new` is computed of `%old` and `%operand`.
fn computation(operation: &str, ty: &str) -> Option<String> {
    let extremum = |predicate: &str| {
        format!(
            "  %first.wins = icmp {predicate} {ty} %old, %operand\n  \
               %new = select i1 %first.wins, {ty} %old, {ty} %operand\n"
        )
    };
    Some(match operation {
        "add" | "and" | "or" | "sub" | "xor" => {
            format!("  %new = {operation} {ty} %old, %operand\n")
        }
        "max" => extremum("sgt"),
        "min" => extremum("slt"),
        "nand" => {
            format!("  %both = and {ty} %old, %operand\n  %new = xor {ty} %both, -1\n")
        }
        "umax" => extremum("ugt"),
        "umin" => extremum("ult"),
        "xchg" => format!("  %new = or {ty} %operand, 0\n"),
        _ => return None,
    })
}

/// A number and the word around it: their types, the names of the word's address and of its
/// values, and how one is made of the other.
struct Part {
    ty: String,
    word: String,
    place: &'static str,
    seen: &'static str,
    next: &'static str,
    locate: String,
    extract: String,
    insert: String,
}

impl Part {
    fn of_width(width: u32) -> Self {
        let ty = format!("i{width}");
        if width >= 32 {
            return Self {
                word: ty.clone(),
                ty,
                place: "%pointer",
                seen: "%old",
                next: "%new",
                locate: String::new(),
                extract: String::new(),
                insert: String::new(),
            };
        }
        let ones = (1_u32 << width) - 1;
        Self {
            word: "i32".to_owned(),
            place: "%word",
            seen: "%seen",
            next: "%next",
            locate: format!(
                "  %address = ptrtoint ptr %pointer to i64\n  \
                   %offset = and i64 %address, 3\n  \
                   %back = sub i64 0, %offset\n  \
                   %word = getelementptr i8, ptr %pointer, i64 %back\n  \
                   %bytes = trunc i64 %offset to i32\n  \
                   %shift = shl i32 %bytes, 3\n  \
                   %mask = shl i32 {ones}, %shift\n  \
                   %others = xor i32 %mask, -1\n"
            ),
            extract: format!(
                "  %moved = lshr i32 %seen, %shift\n  \
                   %old = trunc i32 %moved to {ty}\n"
            ),
            insert: format!(
                "  %wide = zext {ty} %new to i32\n  \
                   %placed = shl i32 %wide, %shift\n  \
                   %kept = and i32 %seen, %others\n  \
                   %next = or i32 %kept, %placed\n"
            ),
            ty,
        }
    }
}
