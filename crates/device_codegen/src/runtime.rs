//! Functions of the C library that rustc's code calls by name: `==` on slices and `match` on a
//! `str` are calls of `memcmp`. `runtime.ll` defines them.

use crate::error::Result;
use crate::ir::Module;
use crate::parser;

const TEXT: &str = include_str!("runtime.ll");

/// What [`TEXT`] defines.
const FUNCTIONS: [&str; 10] = [
    "bcmp",
    "copysign",
    "copysignf",
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
    let is_missing = |module: &Module| {
        FUNCTIONS.iter().any(|name| {
            let function = module.functions.get(*name);
            function.is_some_and(|function| function.is_declaration())
        })
    };
    if modules.iter().any(is_missing) {
        modules.push(parser::parse("runtime.ll", TEXT)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_what_the_text_defines() {
        let module = parser::parse("runtime.ll", TEXT).unwrap();
        let functions = module.functions.iter();
        let defined = functions.filter(|(_, function)| !function.is_declaration());
        let names: Vec<&str> = defined.map(|(name, _)| &**name).collect();
        assert_eq!(names, FUNCTIONS);
    }
}
