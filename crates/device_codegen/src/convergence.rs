//! Checks that operations which the threads of a warp or a block execute together occur once:
//! barriers, shuffles, votes and `asm!`.
//!
//! An optimiser that copies a block into two branches breaks a barrier in it: threads that take
//! different branches then wait for each other in two places. Two calls that come from one place
//! in the source, according to their line tables, are such copies if no thread can execute one
//! after the other. If a thread can, a loop was unrolled, peeled or rotated: each thread passes
//! the same copies in the same order.
//!
//! ```text
//!      before                   copied                  unrolled
//!
//!     +-------+              +-------+                  +-----+
//!     |       |              |       |                  | bar |
//!    f=1     f=0            bar     bar                 +-----+
//!     |       |              |       |                     |
//!     +- bar -+              A       B                  +-----+
//!        |                                              | bar |
//!     if f A else B        an error                     +-----+    fine
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result, demangle};
use crate::intrinsics;
use crate::ir::{Call, Callee, Function, LineTables, Module, Scope, Symbol};
use crate::loops::Ways;

/// A place in the source and the calls that lead there, innermost first: line, column, scope.
type Chain = Vec<(u32, u32, u32)>;

/// A call that the threads of a warp or a block must reach together.
struct Site {
    block: usize,
    /// The line of the IR.
    line: u32,
    source: u32,
}

/// Checks all functions of a module whose calls are still as rustc wrote them. A call without a
/// place in the source is not checked.
pub(crate) fn check(module: &Module) -> Result<()> {
    let convergent = convergent_functions(module);
    for function in module.functions.values() {
        let mut groups: BTreeMap<(String, Chain), Vec<Site>> = BTreeMap::new();
        for (block, instructions) in function.blocks.iter().enumerate() {
            for instruction in &instructions.instructions {
                if let Some(call) = instruction.operation.call()
                    && let Some(name) = convergent_name(call, &convergent)
                    && let Some(source) = instruction.source
                    && let Some(chain) = chain(&module.lines, source)
                {
                    groups.entry((name, chain)).or_default().push(Site {
                        block,
                        line: instruction.line,
                        source,
                    });
                }
            }
        }
        groups.retain(|_, sites| sites.len() > 1);
        if groups.is_empty() {
            continue;
        }
        let ways = Ways::of(function);
        for ((name, _), mut sites) in groups {
            ways.sort_by_order(&mut sites, |site| site.block);
            // If one path has all blocks, in this order, it leads from each to the next.
            for pair in sites.windows(2) {
                if let [first, second] = pair
                    && !ways.lead(first.block, second.block)
                    && !ways.lead(second.block, first.block)
                {
                    return Err(copied(module, function, &name, (first, second)));
                }
            }
        }
    }
    Ok(())
}

fn copied(
    module: &Module,
    function: &Function,
    name: &str,
    (first, second): (&Site, &Site),
) -> Error {
    let place = copied_place(&module.lines, first.source, second.source);
    Error::new(
        &function.location_of(second.line),
        format!(
            "{name}, which threads must reach together, has been copied into two branches, so that threads would wait for each other \
             in two places. Write `unsafe {{ core::arch::asm!(\"\", options(nomem, nostack, preserves_flags)) }}` behind the \
             call in {place}, which keeps rustc from it. If that is in a macro that is used in two branches, put the macro into a function"
        ),
    )
}

/// The operation that the call executes together with other threads, for a message; `None` if
/// there is none.
fn convergent_name(call: &Call, convergent: &BTreeSet<Symbol>) -> Option<String> {
    match &call.callee {
        Callee::Assembly(assembly) if assembly.side_effect && !assembly.text.is_empty() => {
            Some(format!("`{}`", String::from_utf8_lossy(&assembly.text)))
        }
        Callee::Symbol(symbol) if intrinsics::is_convergent(symbol) => Some(format!("`{symbol}`")),
        Callee::Symbol(symbol) if convergent.contains(symbol) => {
            Some(format!("the call of `{}`", demangle(symbol)))
        }
        _ => None,
    }
}

/// The functions that contain a convergent call, or a call of one that does.
fn convergent_functions(module: &Module) -> BTreeSet<Symbol> {
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for (symbol, function) in &module.functions {
            let mut calls = function.instructions().filter_map(|it| it.operation.call());
            if calls.any(|call| convergent_name(call, &found).is_some()) {
                found.insert(symbol.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// `None` if a place on the way is no particular one: the optimiser has merged two calls.
fn chain(lines: &LineTables, source: u32) -> Option<Chain> {
    let mut chain = Vec::new();
    let mut next = Some(source);
    while let Some(number) = next {
        let location = lines.locations.get(&number)?;
        if location.line == 0 {
            return None;
        }
        chain.push((location.line, location.column, location.scope));
        next = location.inlined_at;
    }
    Some(chain)
}

/// `src/tiled.rs:12:9`: among the calls that lead to two copies, the outermost one that was
/// copied.
fn copied_place(lines: &LineTables, mut first: u32, mut second: u32) -> String {
    let mut copied = first;
    // A call that is inlined twice has a node for each copy, and the calls around it have one
    // node.
    while let (Some(left), Some(right)) =
        (lines.locations.get(&first), lines.locations.get(&second))
        && let (Some(outer), Some(other)) = (left.inlined_at, right.inlined_at)
    {
        (first, second) = (outer, other);
        if first != second {
            copied = first;
        }
    }
    let Some(location) = lines.locations.get(&copied) else {
        return String::new();
    };
    let file = lines.scopes.get(&location.scope).map(Scope::file);
    let file = file.and_then(|file| lines.files.get(&file));
    let name = file.map_or("", |file| &*file.name);
    format!("{name}:{}:{}", location.line, location.column)
}
