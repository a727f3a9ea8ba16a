//! Line tables: which line of which source file an instruction comes from, and through which
//! calls it was inlined.
//!
//! This is the part of LLVM's debug information that has a meaning without variables and types.
//! Nodes are identified by their metadata numbers, like everything else that is attached to
//! instructions.

use std::collections::BTreeMap;
use std::sync::Arc;

/// All nodes of a module, each under its metadata number.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineTables {
    pub(crate) files: BTreeMap<u32, SourceFile>,
    pub(crate) scopes: BTreeMap<u32, Scope>,
    pub(crate) locations: BTreeMap<u32, SourceLocation>,
}

/// `!DIFile`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    /// The name, relative to the folder if it is a relative one. Escapes are resolved, here and
    /// in all texts below.
    pub(crate) name: Arc<str>,
    pub(crate) folder: Arc<str>,
}

/// The scope of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// `!DISubprogram`: a function, which is the end of every chain of scopes.
    Function(SourceFunction),
    /// `!DILexicalBlock`: from a `let` to the end of its block, for instance.
    Block {
        parent: u32,
        file: u32,
        line: u32,
        column: u32,
    },
    /// `!DILexicalBlockFile`: the text of a macro, from another file than the code around it.
    OtherFile { parent: u32, file: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFunction {
    /// With generic arguments and without path: `multiply<2>`.
    pub(crate) name: Arc<str>,
    /// The symbol, where it is not the name.
    pub(crate) symbol: Option<Arc<str>>,
    pub(crate) file: u32,
    pub(crate) line: u32,
    /// Where the body starts.
    pub(crate) body_line: u32,
}

/// `!DILocation`; line and column count from 1, and 0 is no line in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    /// Two calls of a function in one place, both inlined, are two locations.
    pub(crate) distinct: bool,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) scope: u32,
    /// The call that was replaced by the body of the scope's function.
    pub(crate) inlined_at: Option<u32>,
}

impl Scope {
    pub(crate) fn file(&self) -> u32 {
        match self {
            Scope::Function(function) => function.file,
            Scope::Block { file, .. } | Scope::OtherFile { file, .. } => *file,
        }
    }

    pub(crate) fn parent(&self) -> Option<u32> {
        match self {
            Scope::Function(_) => None,
            Scope::Block { parent, .. } | Scope::OtherFile { parent, .. } => Some(*parent),
        }
    }
}

impl LineTables {
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.files.contains_key(&number)
            || self.scopes.contains_key(&number)
            || self.locations.contains_key(&number)
    }

    /// The greatest number that a node has.
    pub(crate) fn last_number(&self) -> Option<u32> {
        let last = [
            self.files.last_key_value().map(|(number, _)| *number),
            self.scopes.last_key_value().map(|(number, _)| *number),
            self.locations.last_key_value().map(|(number, _)| *number),
        ];
        last.into_iter().flatten().max()
    }

    /// Moves all numbers up by `offset`.
    pub(crate) fn shift(&mut self, offset: u32) {
        let shift = |number: &mut u32| *number = number.saturating_add(offset);
        for scope in self.scopes.values_mut() {
            match scope {
                Scope::Function(function) => shift(&mut function.file),
                Scope::Block { parent, file, .. } | Scope::OtherFile { parent, file } => {
                    shift(parent);
                    shift(file);
                }
            }
        }
        for location in self.locations.values_mut() {
            shift(&mut location.scope);
            location.inlined_at.iter_mut().for_each(shift);
        }
        self.files = shifted(&mut self.files, offset);
        self.scopes = shifted(&mut self.scopes, offset);
        self.locations = shifted(&mut self.locations, offset);
    }

    /// Takes over another module's nodes, whose numbers are others.
    pub(crate) fn append(&mut self, other: &mut LineTables) {
        self.files.append(&mut other.files);
        self.scopes.append(&mut other.scopes);
        self.locations.append(&mut other.locations);
    }
}

fn shifted<T>(nodes: &mut BTreeMap<u32, T>, offset: u32) -> BTreeMap<u32, T> {
    std::mem::take(nodes)
        .into_iter()
        .map(|(number, node)| (number.saturating_add(offset), node))
        .collect()
}
