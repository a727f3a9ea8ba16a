//! Line tables: the nodes that the parser has read, and a unit around them.
//!
//! libNVVM requires all functions of a program to be in one unit, and a version of debug
//! information in two places.

use super::names::escaped;
use super::numbers::UnitNumbers;
use super::printer::Printer;
use crate::Dialect;
use crate::ir::{Scope, SourceFunction};

impl Printer<'_> {
    /// `, !dbg !7`
    pub(super) fn source(&self, location: Option<u32>) -> String {
        location.map_or_else(String::new, |number| {
            format!(", !dbg !{}", self.metadata.get(number))
        })
    }

    /// A node of the line tables; `None` if the number is none's.
    pub(super) fn line_node(&self, number: u32) -> Option<String> {
        let lines = &self.module.lines;
        let new = |number: u32| self.metadata.get(number);
        if let Some(location) = lines.locations.get(&number) {
            let call = location
                .inlined_at
                .map_or_else(String::new, |call| format!(", inlinedAt: !{}", new(call)));
            let distinct = if location.distinct { "distinct " } else { "" };
            return Some(format!(
                "{distinct}!DILocation(line: {}, column: {}, scope: !{}{call})",
                location.line,
                location.column,
                new(location.scope)
            ));
        }
        if let Some(file) = lines.files.get(&number) {
            return Some(format!(
                "!DIFile(filename: \"{}\", directory: \"{}\")",
                escaped(file.name.as_bytes()),
                escaped(file.folder.as_bytes())
            ));
        }
        Some(match lines.scopes.get(&number)? {
            Scope::Function(function) => self.source_function(function),
            Scope::Block {
                parent,
                file,
                line,
                column,
            } => format!(
                "distinct !DILexicalBlock(scope: !{}, file: !{}, line: {line}, column: {column})",
                new(*parent),
                new(*file)
            ),
            Scope::OtherFile { parent, file } => format!(
                "!DILexicalBlockFile(scope: !{}, file: !{}, discriminator: 0)",
                new(*parent),
                new(*file)
            ),
        })
    }

    fn source_function(&self, function: &SourceFunction) -> String {
        let Some(unit) = self.metadata.unit else {
            return "!{}".to_owned();
        };
        let file = self.metadata.get(function.file);
        let symbol = function.symbol.as_ref().map_or_else(String::new, |symbol| {
            format!("linkageName: \"{}\", ", escaped(symbol.as_bytes()))
        });
        let (before, after) = match self.dialect {
            Dialect::TypedPointers => {
                ("isLocal: true, isDefinition: true, ", "isOptimized: true, ")
            }
            Dialect::OpaquePointers => (
                "",
                "spFlags: DISPFlagLocalToUnit | DISPFlagDefinition | DISPFlagOptimized, ",
            ),
        };
        format!(
            "distinct !DISubprogram(name: \"{}\", {symbol}scope: !{file}, file: !{file}, line: {}, type: !{}, \
             {before}scopeLine: {}, {after}unit: !{})",
            escaped(function.name.as_bytes()),
            function.line,
            unit.function_type,
            function.body_line,
            unit.unit
        )
    }

    /// The lists by name that debug information needs, if there is any.
    pub(super) fn unit_lists(&self) -> String {
        self.metadata.unit.map_or_else(String::new, |unit| {
            format!(
                "!llvm.dbg.cu = !{{!{}}}\n!llvm.module.flags = !{{!{}}}\n",
                unit.unit, unit.version
            )
        })
    }

    /// The nodes that do not come from any module.
    ///
    /// `DebugDirectivesOnly` requests `.loc` and `.file`; with `LineTablesOnly` libNVVM writes
    /// `.target sm_75, debug`, which makes ptxas stop optimising, and omits the calls that were
    /// inlined.
    pub(super) fn unit_nodes(&self) -> String {
        let Some(unit) = self.metadata.unit else {
            return String::new();
        };
        let UnitNumbers {
            file,
            unit,
            function_type,
            no_types,
            version,
        } = unit;
        format!(
            "!{unit} = distinct !DICompileUnit(language: DW_LANG_Rust, file: !{}, producer: \"rustc\", isOptimized: true, \
             runtimeVersion: 0, emissionKind: DebugDirectivesOnly, enums: !{no_types})\n\
             !{function_type} = !DISubroutineType(types: !{no_types})\n\
             !{no_types} = !{{}}\n\
             !{version} = !{{i32 2, !\"Debug Info Version\", i32 3}}\n",
            self.metadata.get(file)
        )
    }

    /// `i32 2, i32 0`: the version of NVVM IR, and that of its debug information if there is any.
    pub(super) fn version(&self) -> &'static str {
        match (self.metadata.unit, self.dialect) {
            (None, _) => "i32 2, i32 0",
            (Some(_), Dialect::TypedPointers) => "i32 2, i32 0, i32 3, i32 1",
            (Some(_), Dialect::OpaquePointers) => "i32 2, i32 0, i32 3, i32 2",
        }
    }
}
