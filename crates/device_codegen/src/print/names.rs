//! Names of values and blocks: as rustc gave them, made unique, and never bare numbers, whose
//! order LLVM would check.

use std::collections::HashSet;

use crate::ir::{BlockId, Function, LocalId};
use crate::lexer::is_name_byte;

/// The names in one function. Values and blocks share them.
pub(super) struct Names {
    used: HashSet<String>,
    locals: Vec<String>,
    blocks: Vec<String>,
    next: u32,
}

impl Names {
    pub(super) fn of(function: &Function) -> Self {
        let mut names = Self {
            used: HashSet::new(),
            locals: Vec::new(),
            blocks: Vec::new(),
            next: 0,
        };
        // Given names are reserved first, so that generated names do not clash with them.
        for name in function
            .locals
            .iter()
            .filter_map(|local| local.name.as_deref())
        {
            if !is_number(name) {
                names.used.insert(name.to_owned());
            }
        }
        for block in &function.blocks {
            let name = match is_number(&block.name) {
                true => names.unique(&format!("bb{}", block.name)),
                false => names.unique(&block.name),
            };
            names.blocks.push(name);
        }
        for local in &function.locals {
            let name = match local.name.as_deref() {
                Some(name) if is_number(name) => names.unique(&format!("v{name}")),
                Some(name) => name.to_owned(),
                None => names.temporary(),
            };
            names.locals.push(name);
        }
        names
    }

    /// A name that nothing has yet.
    pub(super) fn temporary(&mut self) -> String {
        self.next += 1;
        self.unique(&format!("t{}", self.next))
    }

    fn unique(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        let mut suffix = 1_u32;
        while !self.used.insert(name.clone()) {
            suffix += 1;
            name = format!("{wish}.{suffix}");
        }
        name
    }

    /// `%name`
    pub(super) fn local(&self, id: LocalId) -> String {
        format!("%{}", quoted(&self.locals[id.0 as usize]))
    }

    /// The label of a block.
    pub(super) fn block(&self, id: BlockId) -> String {
        quoted(&self.blocks[id.0 as usize])
    }
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

/// A name as it is written after its sigil.
pub(super) fn quoted(name: &str) -> String {
    let starts_plain = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    if starts_plain && name.bytes().all(is_name_byte) {
        return name.to_owned();
    }
    format!("\"{}\"", escaped(name.as_bytes()))
}

/// Bytes between quotes: whatever is not plain ASCII in hexadecimal.
pub(super) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.push_str(&format!("\\{byte:02X}")),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\{byte:02X}")),
        }
    }
    text
}
