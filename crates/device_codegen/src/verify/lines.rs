//! The line tables' part of what every module must satisfy; invariants 8 to 11.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Result, demangle};
use crate::ir::{Function, LineTables, Module, Scope};

/// Checks that no two functions have the same scope in the source.
pub(super) fn verify_scopes(module: &Module) -> Result<()> {
    let mut taken = HashSet::new();
    for function in module.functions.values() {
        let Some(scope) = function.scope else {
            continue;
        };
        if !matches!(module.lines.scopes.get(&scope), Some(Scope::Function(_))) {
            return Err(Error::new(
                &function.location,
                format!("the metadata `!{scope}` of the function is no `!DISubprogram`"),
            ));
        }
        if !taken.insert(scope) {
            return Err(Error::new(
                &function.location,
                format!("the metadata `!{scope}` is that of another function"),
            ));
        }
    }
    Ok(())
}

/// Checks the locations of a function's instructions.
pub(super) fn verify_locations(module: &Module, function: &Function) -> Result<()> {
    let mut known: HashMap<u32, Option<u32>> = HashMap::new();
    let mut check = |source: Option<u32>, line: u32| {
        let Some(location) = source else {
            return Ok(());
        };
        let outermost = *known
            .entry(location)
            .or_insert_with(|| outermost_function(&module.lines, location));
        let problem = match outermost {
            Some(_) if outermost == function.scope => return Ok(()),
            Some(_) => "is a location in another function",
            None => "is no location, or one whose scope is missing or inside itself",
        };
        let problem = format!("the metadata `!{location}` {problem}");
        Err(Error::new(&function.location_of(line), problem))
    };
    for (_, source, line) in function.attachments() {
        check(source, line)?;
    }
    verify_located_calls(module, function)
}

/// Once libNVVM has inlined the callee, its lines are those of a function that was called from
/// somewhere.
fn verify_located_calls(module: &Module, function: &Function) -> Result<()> {
    if function.scope.is_none() {
        return Ok(());
    }
    for (instruction, _, symbol) in function.calls() {
        let callee = module.functions.get(symbol);
        if instruction.source.is_none() && callee.is_some_and(|callee| callee.scope.is_some()) {
            return Err(Error::new(
                &function.location_of(instruction.line),
                format!("the call of `{}` has no source line", demangle(symbol)),
            ));
        }
    }
    Ok(())
}

/// The scope of the function that has a location when all calls that led there are undone.
/// `None` if a node on the way is missing, or the way has no end.
fn outermost_function(lines: &LineTables, location: u32) -> Option<u32> {
    let mut location = lines.locations.get(&location)?;
    // A path with more edges than there are nodes goes in a circle.
    for _ in 0..=lines.locations.len() {
        let function = function_around(lines, location.scope)?;
        match location.inlined_at {
            Some(call) => location = lines.locations.get(&call)?,
            None => return Some(function),
        }
    }
    None
}

fn function_around(lines: &LineTables, mut number: u32) -> Option<u32> {
    for _ in 0..=lines.scopes.len() {
        let scope = lines.scopes.get(&number)?;
        lines.files.get(&scope.file())?;
        match scope.parent() {
            Some(parent) => number = parent,
            None => return Some(number),
        }
    }
    None
}
