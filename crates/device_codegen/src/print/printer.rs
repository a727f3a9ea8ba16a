//! The printer of a module, with what its parts have in common.

use super::numbers::MetadataNumbers;
use crate::Dialect;
use crate::ir::{FunctionType, Module, Type};

/// What all parts of a module need in order to be written.
pub(super) struct Printer<'m> {
    pub(super) module: &'m Module,
    pub(super) dialect: Dialect,
    pub(super) metadata: MetadataNumbers,
}

impl Printer<'_> {
    pub(super) fn ty(&self, ty: &Type) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = ty.write(&mut text, &|space| self.dialect.any_pointer(space));
        text
    }

    /// `void (i8*, i64)`
    pub(super) fn function_type(&self, ty: &FunctionType) -> String {
        let parameters: Vec<String> = ty.parameters.iter().map(|ty| self.ty(ty)).collect();
        format!("{} ({})", self.ty(&ty.result), parameters.join(", "))
    }
}
