//! The typed IR between parser and printer: a module of globals and functions with opaque
//! pointers.
//!
//! It holds what LLVM 22 can say and rustc does say. Values are numbered per function
//! ([`LocalId`]), blocks too ([`BlockId`]); their names only serve the reader of the output.

mod attribute;
mod cast;
mod constant;
mod editor;
mod identifiers;
mod instruction;
mod lines;
mod types;
mod visit;

pub(crate) use attribute::{Attribute, AttributeArgument, AttributesExt};
pub(crate) use cast::CastOperation;
pub(crate) use constant::{Aggregate, Constant, TypedConstant};
pub(crate) use editor::{Editor, float_constant};
pub(crate) use identifiers::{Attachments, BlockId, LocalId, Symbol};
pub(crate) use instruction::{
    Call, Callee, InlineAssembly, Instruction, MemoryOrder, Operand, Operation, Terminator,
    TerminatorKind, Value,
};
pub(crate) use lines::{LineTables, Scope, SourceFile, SourceFunction, SourceLocation};
pub(crate) use types::{FunctionType, Type};
pub(crate) use visit::element_type;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Location;

/// Who else may define or see a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    /// Seen by its own module only.
    Local,
    /// Seen by all modules, defined once.
    Strong,
    /// Seen by all modules; any of several equal definitions will do.
    Weak,
    /// Seen by the host, too.
    Exported,
}

/// One compilation unit, or several after linking.
#[derive(Clone, Debug, Default)]
pub(crate) struct Module {
    pub(crate) globals: BTreeMap<Symbol, Global>,
    pub(crate) functions: BTreeMap<Symbol, Function>,
    pub(crate) metadata: BTreeMap<u32, MetadataNode>,
    pub(crate) lines: LineTables,
}

/// A static, a string, a table, or the declaration of one.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    pub(crate) location: Location,
    pub(crate) linkage: Linkage,
    pub(crate) is_constant: bool,
    pub(crate) ty: Type,
    /// `None`: declared, defined elsewhere.
    pub(crate) initializer: Option<Constant>,
    pub(crate) section: Option<String>,
    pub(crate) align: Option<u64>,
    pub(crate) address_space: u32,
}

/// A function or the declaration of one (no blocks).
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) location: Location,
    pub(crate) linkage: Linkage,
    pub(crate) ty: FunctionType,
    pub(crate) parameter_attributes: Vec<Vec<Attribute>>,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) section: Option<String>,
    /// One value a parameter, in order; empty in a declaration.
    pub(crate) parameters: Vec<LocalId>,
    pub(crate) locals: Vec<Local>,
    /// The first is the entry.
    pub(crate) blocks: Vec<Block>,
    pub(crate) kernel: Option<Kernel>,
    /// Whether other PTX may call it, so that it stays under its own name.
    pub(crate) is_visible: bool,
    /// The function's own scope in the line tables.
    pub(crate) scope: Option<u32>,
}

/// What makes a function a kernel, beside its section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) max_threads: Option<u32>,
    pub(crate) min_blocks: Option<u32>,
    pub(crate) max_registers: Option<u32>,
    /// Blocks of a cluster along x, y and z.
    pub(crate) cluster_dim: Option<[u32; 3]>,
    /// The parameters that are pointers here and values to the launch, by position.
    pub(crate) by_value: BTreeMap<usize, ByValue>,
}

/// A parameter that the launch passes by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByValue {
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    /// Whether all threads use the launch's own copy, which has an address; no thread writes it.
    pub(crate) is_grid_constant: bool,
}

/// A value's name, as in the source, and its type.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    /// `None` for a value that a pass made.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) ty: Type,
}

/// A straight run of instructions and how it ends.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) name: Arc<str>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) terminator: Terminator,
}

/// `!7 = distinct !{!7, !8}`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetadataNode {
    pub(crate) distinct: bool,
    pub(crate) items: Vec<MetadataItem>,
}

/// An element of a metadata tuple.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MetadataItem {
    Null,
    Node(u32),
    /// Its text between the quotes, escapes included.
    String(Arc<str>),
    Constant(TypedConstant),
}

impl Function {
    /// A function that another module defines.
    pub(crate) fn declaration(location: Location, parameters: Vec<Type>, result: Type) -> Self {
        Self {
            location,
            linkage: Linkage::Strong,
            parameter_attributes: vec![Vec::new(); parameters.len()],
            ty: FunctionType { result, parameters },
            attributes: Vec::new(),
            section: None,
            parameters: Vec::new(),
            locals: Vec::new(),
            blocks: Vec::new(),
            kernel: None,
            is_visible: false,
            scope: None,
        }
    }

    pub(crate) fn is_declaration(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The place of `line` inside this function.
    pub(crate) fn location_of(&self, line: u32) -> Location {
        Location {
            line,
            ..self.location.clone()
        }
    }

    pub(crate) fn local_type(&self, id: LocalId) -> &Type {
        &self.locals[id.0 as usize].ty
    }

    /// Drops all that names line tables.
    pub(crate) fn forget_lines(&mut self) {
        self.scope = None;
        for (_, source) in self.attachments_mut() {
            *source = None;
        }
    }

    /// A new unnamed value of type `ty`; the caller gives it its definition.
    pub(crate) fn fresh(&mut self, ty: Type) -> LocalId {
        // The parser refuses functions of more than `u32::MAX` values, and a pass adds a few to
        // each.
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(Local { name: None, ty });
        id
    }
}

impl Module {
    /// Drops the line tables and all that names them.
    pub(crate) fn forget_lines(&mut self) {
        self.lines = LineTables::default();
        self.functions.values_mut().for_each(Function::forget_lines);
    }

    /// A metadata number that no node has.
    pub(crate) fn next_metadata(&self) -> u32 {
        let last = self.metadata.last_key_value().map(|(last, _)| *last);
        last.max(self.lines.last_number())
            .map_or(0, |last| last.saturating_add(1))
    }
}
