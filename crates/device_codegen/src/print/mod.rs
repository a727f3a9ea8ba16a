//! Writes a module as the text that libNVVM reads.
//!
//! The two dialects differ in how they write pointers, see `pointers.rs`, and in a
//! few words of the line tables.

mod attributes;
mod constant;
mod function;
mod instruction;
mod lines;
mod metadata;
mod names;
mod numbers;
mod pointers;
mod printer;

use std::collections::BTreeMap;

use crate::Dialect;
use crate::ir::{AttributesExt, Function, FunctionType, Global, Linkage, Module, Symbol};
use names::quoted;
use numbers::MetadataNumbers;
use printer::Printer;

const HEADER: &str = "\
target datalayout = \"e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-\
v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64\"
target triple = \"nvptx64-nvidia-cuda\"
";

/// The text of a module.
pub(crate) fn print(module: &Module, dialect: Dialect) -> String {
    let mut printer = Printer {
        module,
        dialect,
        metadata: MetadataNumbers::of(module),
    };
    let mut sections = vec![HEADER.to_owned()];
    let globals: String = module
        .globals
        .iter()
        .map(|(symbol, global)| printer.global(symbol, global))
        .collect();
    sections.push(globals);
    sections.push(printer.declarations());
    // This compiler's own functions come last: libNVVM numbers labels by function, and those of the
    // kernels stay the same.
    let is_own = |symbol: &Symbol| symbol.starts_with("__nvvm_");
    for own in [false, true] {
        for (symbol, function) in &module.functions {
            if !function.is_declaration() && is_own(symbol) == own {
                sections.push(printer.function(symbol, function));
            }
        }
    }
    sections.push(printer.metadata_section());
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

/// A function that is declared for what its calls say of it.
struct Declaration<'m> {
    ty: &'m FunctionType,
    convergent: bool,
}

impl Printer<'_> {
    fn global(&self, symbol: &Symbol, global: &Global) -> String {
        let linkage = match global.initializer {
            Some(_) if global.linkage == Linkage::Exported => "",
            Some(_) => "internal ",
            None => "external ",
        };
        let space = match global.address_space {
            0 => String::new(),
            space => format!("addrspace({space}) "),
        };
        let kind = if global.is_constant {
            "constant"
        } else {
            "global"
        };
        let mut line = format!(
            "@{} = {linkage}{space}{kind} {}",
            quoted(symbol),
            self.ty(&global.ty)
        );
        if let Some(initializer) = &global.initializer {
            line.push(' ');
            line.push_str(&self.constant(&global.ty, initializer));
        }
        if let Some(align) = global.align {
            line.push_str(&format!(", align {align}"));
        }
        line.push('\n');
        line
    }

    /// Declares what is called and not defined here: intrinsics, libdevice, `vprintf`.
    fn declarations(&self) -> String {
        let mut declared: BTreeMap<&Symbol, Declaration<'_>> = BTreeMap::new();
        let functions = &self.module.functions;
        for (_, call, symbol) in functions.values().flat_map(Function::calls) {
            if functions.get(symbol).is_none_or(Function::is_declaration) {
                let declaration = Declaration {
                    ty: &call.ty,
                    convergent: call.attributes.has("convergent"),
                };
                declared.insert(symbol, declaration);
            }
        }
        // Functions whose address is taken and that are never called.
        for (symbol, function) in &self.module.functions {
            if function.is_declaration() {
                declared.entry(symbol).or_insert(Declaration {
                    ty: &function.ty,
                    convergent: false,
                });
            }
        }
        declared
            .into_iter()
            .map(|(symbol, declaration)| {
                let parameters: Vec<String> = declaration
                    .ty
                    .parameters
                    .iter()
                    .map(|ty| self.ty(ty))
                    .collect();
                let convergent = if declaration.convergent {
                    " convergent"
                } else {
                    ""
                };
                format!(
                    "declare {} @{}({}){convergent} nounwind\n",
                    self.ty(&declaration.ty.result),
                    quoted(symbol),
                    parameters.join(", ")
                )
            })
            .collect()
    }
}
