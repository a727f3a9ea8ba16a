//! What a panic says, as far as that is known when the kernel is compiled: the text of its call's
//! constant arguments, and which of its numbers are known only at run time.

use std::collections::BTreeMap;

use crate::error::demangle;
use crate::ir::{Call, CastOperation, Constant, Global, Symbol, Type, Value};

type Globals = BTreeMap<Symbol, Global>;

/// The message of a call of a panicking function. `{0}`, `{1}` and `{2}` stand for the call's
/// integers; a brace is doubled.
pub(super) fn message(globals: &Globals, symbol: &str, call: &Call) -> String {
    let path = demangle(symbol);
    // `core::panicking::assert_failed::<u32, u32>`
    let function = path.split("::<").next().unwrap_or_default();
    let name = function.rsplit("::").next().unwrap_or_default();
    let known = match name {
        "panic_bounds_check" => {
            Some("index out of bounds: the len is {1} but the index is {0}".to_owned())
        }
        "slice_index_fail" => {
            Some("range {0}..{1} out of range for slice of length {2}".to_owned())
        }
        "len_mismatch_fail" => Some(
            "copy_from_slice: source slice length ({1}) does not match destination slice length ({0})"
                .to_owned(),
        ),
        "unwrap_failed" if function.contains("option") => {
            Some("called `Option::unwrap()` on a `None` value".to_owned())
        }
        "panic_already_borrowed" => Some("RefCell already borrowed".to_owned()),
        "panic_already_mutably_borrowed" => Some("RefCell already mutably borrowed".to_owned()),
        "assert_failed" => Some(failed_assertion(globals, call)),
        "panic_fmt" => formatted(globals, call, 0),
        "panic" | "expect_failed" | "unwrap_failed" | "begin_panic" => text(globals, call, 0),
        "slice_error_fail" => {
            Some("an index of a str is out of range or inside a character".to_owned())
        }
        _ => arithmetic(name),
    };
    known.unwrap_or_else(|| escaped(&format!("a panic in `{function}`")))
}

/// The integers that a message shows, with their types.
pub(super) fn numbers(message: &str, call: &Call) -> Vec<(Type, Value)> {
    if !message.contains("{0}") {
        return Vec::new();
    }
    let types = call.ty.parameters.iter();
    types
        .zip(&call.arguments)
        .filter(|(ty, _)| matches!(ty, Type::Integer(1..=64)))
        .map(|(ty, value)| (ty.clone(), value.clone()))
        .take(3)
        .collect()
}

/// `file:line:column` of the last argument: a `core::panic::Location`.
pub(super) fn location(globals: &Globals, call: &Call) -> Option<String> {
    let Constant::Aggregate(_, fields) = initializer(globals, call.arguments.last()?)? else {
        return None;
    };
    let [file, rest] = fields.as_slice() else {
        return None;
    };
    let (Constant::Symbol(file), Constant::Bytes(rest)) = (&file.value, &rest.value) else {
        return None;
    };
    let length = usize::try_from(u64::from_le_bytes(rest.get(..8)?.try_into().ok()?)).ok()?;
    let number = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    let file = std::str::from_utf8(bytes(globals, file)?.get(..length)?).ok()?;
    Some(format!("{file}:{}:{}", number(8)?, number(12)?))
}

/// The constant that a pointer points to the start of.
fn initializer<'g>(globals: &'g Globals, pointer: &Value) -> Option<&'g Constant> {
    match pointer {
        Value::Constant(Constant::Symbol(symbol)) => globals.get(symbol)?.initializer.as_ref(),
        _ => None,
    }
}

fn bytes<'g>(globals: &'g Globals, symbol: &Symbol) -> Option<&'g [u8]> {
    match globals.get(symbol)?.initializer.as_ref()? {
        Constant::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// The text of a `&str`: the arguments from `at` on are its address and its length.
fn text(globals: &Globals, call: &Call, at: usize) -> Option<String> {
    let length = usize::try_from(call.arguments.get(at + 1)?.as_integer()?).ok()?;
    let Constant::Bytes(bytes) = initializer(globals, call.arguments.get(at)?)? else {
        return None;
    };
    Some(escaped(std::str::from_utf8(bytes.get(..length)?).ok()?))
}

/// The text of a `core::fmt::Arguments`, of which the arguments from `at` on are the two words.
///
/// The second is the length of a plain text, doubled and odd, or else an address of values that
/// the first, a template, describes.
fn formatted(globals: &Globals, call: &Call, at: usize) -> Option<String> {
    let Constant::Bytes(bytes) = initializer(globals, call.arguments.get(at)?)? else {
        return None;
    };
    let Value::Constant(Constant::Cast(CastOperation::IntegerToPointer, word, _)) =
        call.arguments.get(at + 1)?
    else {
        return template(bytes);
    };
    let length = usize::try_from(word.value.as_integer()? >> 1).ok()?;
    Some(escaped(std::str::from_utf8(bytes.get(..length)?).ok()?))
}

/// A template, with `{}` for each value. A byte below 0x80 is the length of a piece of text, 0x80
/// precedes a length of two bytes, and bits of a byte from 0xC0 on say which fields of a value
/// follow. Zero ends it.
fn template(mut bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    loop {
        let (&code, rest) = bytes.split_first()?;
        let (length, rest) = match code {
            0 => return Some(text),
            1..0x80 => (usize::from(code), rest),
            0x80 => {
                let (length, rest) = rest.split_first_chunk::<2>()?;
                (u16::from_le_bytes(*length).into(), rest)
            }
            0xC0.. => {
                text.push_str("{{}}");
                // Flags, width, precision, position.
                let sizes = [4, 2, 2, 2].into_iter().enumerate();
                let skipped = sizes.filter(|(bit, _)| code >> bit & 1 == 1);
                bytes = rest.get(skipped.map(|(_, size)| size).sum()..)?;
                continue;
            }
            _ => return None,
        };
        text.push_str(&escaped(std::str::from_utf8(rest.get(..length)?).ok()?));
        bytes = rest.get(length..)?;
    }
}

/// `assert_eq!` and its like: the kind of comparison, the two sides, and the caller's message.
fn failed_assertion(globals: &Globals, call: &Call) -> String {
    let comparison = match call.arguments.first().and_then(Value::as_integer) {
        Some(0) => "left == right",
        Some(1) => "left != right",
        _ => "left matches right",
    };
    let message = formatted(globals, call, 3).map(|message| format!(": {message}"));
    format!(
        "assertion `{comparison}` failed{}",
        message.unwrap_or_default()
    )
}

/// `panic_const_add_overflow` and its like.
fn arithmetic(name: &str) -> Option<String> {
    let operation = name.strip_prefix("panic_const_")?;
    let verb = match operation.strip_suffix("_overflow") {
        None => {
            return match operation {
                "div_by_zero" => Some("attempt to divide by zero".to_owned()),
                "rem_by_zero" => {
                    Some("attempt to calculate the remainder with a divisor of zero".to_owned())
                }
                _ => None,
            };
        }
        Some("add") => "add",
        Some("sub") => "subtract",
        Some("mul") => "multiply",
        Some("div") => "divide",
        Some("rem") => "calculate the remainder",
        Some("neg") => "negate",
        Some("shl") => "shift left",
        Some("shr") => "shift right",
        Some(_) => return None,
    };
    Some(format!("attempt to {verb} with overflow"))
}

fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}
