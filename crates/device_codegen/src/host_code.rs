//! Code for the host's processor: `asm!` and intrinsics of x86, which a dependency may contain
//! because it is compiled for the host's triple.
//!
//! PTX is distinguished from x86 by its syntax: each statement ends in a semicolon, and its
//! opcode has a dot and a type, but for a few (`ret;`). No instruction of x86 has a dot.

use crate::error::{Error, Result};
use crate::ir::{Call, Callee, Function, Module};
use crate::source_place::function_of;

/// Instructions of PTX that need no type.
const WITHOUT_TYPE: [&str; 7] = ["bra", "brkpt", "call", "exit", "pmevent", "ret", "trap"];

/// Directives that a body may have.
const DIRECTIVES: &str = "\
    .branchtargets .callprototype .calltargets .const .global .local .param .pragma .reg .shared";

/// Intrinsics of processors.
const PROCESSORS: [&str; 3] = ["llvm.x86.", "llvm.aarch64.", "llvm.arm."];

/// Those that a GPU has too: of `core::hint::spin_loop()`, and of conversions to f16.
const TRANSLATED: [&str; 2] = ["llvm.x86.sse2.pause", "llvm.x86.vcvtps2ph."];

/// Rejects code for the host, and names the function of the source that contains it if there are
/// line tables.
pub(crate) fn check(module: &Module) -> Result<()> {
    for function in module.functions.values() {
        for instruction in function.instructions() {
            if let Some(call) = instruction.operation.call()
                && let Some(what) = host_code(call)
            {
                return Err(refused(
                    module,
                    function,
                    instruction.line,
                    instruction.source,
                    &what,
                ));
            }
        }
    }
    Ok(())
}

fn refused(
    module: &Module,
    function: &Function,
    line: u32,
    source: Option<u32>,
    what: &str,
) -> Error {
    let origin = source.and_then(|source| function_of(&module.lines, source));
    let origin = origin.map_or_else(String::new, |origin| format!(" of `{origin}`"));
    Error::new(
        &function.location_of(line),
        format!(
            "{what}{origin} is for x86 or another host, not for a GPU. Where its crate has portable code too, choose that (for `libm`: \
             `default-features = false`; for `aes`: `CudaBuilder::cfg(\"aes_force_soft\")`); else call something else under `cfg(cuda_device)`"
        ),
    )
}

/// What a call does that only the host can do; `None` if there is nothing.
fn host_code(call: &Call) -> Option<String> {
    match &call.callee {
        Callee::Symbol(symbol) => {
            let is_one =
                |prefixes: &[&str]| prefixes.iter().any(|prefix| symbol.starts_with(prefix));
            let is_of_host = is_one(&PROCESSORS) && !is_one(&TRANSLATED);
            is_of_host.then(|| format!("the intrinsic `{symbol}`"))
        }
        Callee::Assembly(assembly) => {
            let text = String::from_utf8_lossy(&assembly.text);
            // `in("eax")`; PTX's registers have no names outside of the text.
            let named = assembly
                .constraints
                .split(',')
                .find(|constraint| constraint.trim_start_matches(['=', '&']).starts_with('{'));
            let is_of_host = named.is_some() || !is_ptx(&text);
            let shown = text.trim().replace('\n', "; ");
            is_of_host.then(|| format!("the assembly `{shown}`"))
        }
        Callee::Pointer(_) => None,
    }
}

/// Whether a text looks like statements of PTX.
fn is_ptx(text: &str) -> bool {
    let text = without_lists(&without_operands(&without_comments(text)));
    let mut statements: Vec<&str> = text.split([';', '{', '}']).collect();
    // Nothing follows the last semicolon.
    let rest = statements.pop().unwrap_or_default();
    statements.into_iter().all(is_statement) && (rest.trim().is_empty() || is_label(rest.trim()))
}

fn is_statement(text: &str) -> bool {
    let mut text = text.trim();
    while let Some((label, rest)) = text.split_once(':')
        && is_label_name(label.trim())
    {
        text = rest.trim_start();
    }
    if let Some(guarded) = text.strip_prefix('@') {
        text = guarded
            .split_once(char::is_whitespace)
            .map_or("", |(_, rest)| rest.trim_start());
    }
    if text.is_empty() {
        return true;
    }
    let word = text.split_whitespace().next().unwrap_or_default();
    match word.starts_with('.') {
        true => DIRECTIVES
            .split(' ')
            .any(|directive| word.starts_with(directive)),
        false => word.contains('.') || WITHOUT_TYPE.contains(&word),
    }
}

fn is_label(text: &str) -> bool {
    text.strip_suffix(':').is_some_and(is_label_name)
}

fn is_label_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_$%{}:".contains(c))
}

/// A list in braces, such as `{t0, $1}`, becomes `%`. Braces around statements stay.
fn without_lists(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once('{') {
        out.push_str(before);
        match inside.find(['{', '}', ';']) {
            Some(end) if inside[end..].starts_with('}') => {
                out.push('%');
                rest = &inside[end + 1..];
            }
            _ => {
                out.push('{');
                rest = inside;
            }
        }
    }
    out + rest
}

/// `${0:e}` becomes `$`.
fn without_operands(text: &str) -> String {
    let mut parts = text.split("${");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push('$');
        out.push_str(part.split_once('}').map_or("", |(_, rest)| rest));
    }
    out
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inner)) = rest.split_once("/*") {
        out.push_str(before);
        rest = inner.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    let lines = out
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}
