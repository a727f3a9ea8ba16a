//! Functions of the C library that rustc's code calls by name (`==` on slices and `match` on a
//! `str` are calls of `memcmp`), and functions of `core` that no crate's IR has. `runtime.ll`
//! defines them.

use std::collections::BTreeMap;

use crate::error::{Result, demangle};
use crate::ir::{Module, Symbol};
use crate::parser;

const TEXT: &str = include_str!("runtime.ll");

/// What [`TEXT`] defines. Those with a path are functions of `core` that are neither generic nor
/// `#[inline]`, so that no crate's IR has them: `contains` of bytes, searches for a `char`, and
/// `sort` call them.
const FUNCTIONS: [&str; 13] = [
    "bcmp",
    "copysign",
    "copysignf",
    "core::slice::memchr::memchr_aligned",
    "core::slice::memchr::memrchr",
    "core::slice::sort::stable::drift::sqrt_approx",
    "lgamma_r",
    "lgammaf_r",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "strlen",
];

/// Appends the module that defines these functions if one of the modules declares one. A module's
/// own definition wins.
pub(crate) fn append(modules: &mut Vec<Module>) -> Result<()> {
    let mut declared = BTreeMap::new();
    for (symbol, function) in modules.iter().flat_map(|module| &module.functions) {
        let path = demangle(symbol);
        if function.is_declaration() && FUNCTIONS.contains(&path.as_str()) {
            declared.insert(Symbol::from(path), (symbol.clone(), function.ty.clone()));
        }
    }
    if declared.is_empty() {
        return Ok(());
    }
    let mut runtime = parser::parse("runtime.ll", TEXT)?;
    // Another version of `core` may declare its functions otherwise: then they stay undefined.
    declared.retain(|path, (symbol, ty)| path != symbol && runtime.functions[path].ty == *ty);
    let mangled = declared
        .into_iter()
        .map(|(path, (symbol, _))| (path, symbol));
    runtime.rename(&mangled.collect());
    modules.push(runtime);
    Ok(())
}
