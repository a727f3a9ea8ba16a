//! Constants and constant expressions.

use super::names::{escaped, quoted};
use super::printer::Printer;
use crate::ir::{Aggregate, Constant, Symbol, Type, TypedConstant};

impl Printer<'_> {
    /// `i32 7`
    pub(super) fn typed_constant(&self, constant: &TypedConstant) -> String {
        format!(
            "{} {}",
            self.ty(&constant.ty),
            self.constant(&constant.ty, &constant.value)
        )
    }

    /// A constant of type `ty`, without the type.
    pub(super) fn constant(&self, ty: &Type, constant: &Constant) -> String {
        match constant {
            Constant::Integer(value) if *ty == Type::BOOL => (value & 1 == 1).to_string(),
            Constant::Integer(value) => value.to_string(),
            Constant::WideInteger(text) | Constant::Float(text) => text.to_string(),
            Constant::Null => "null".to_owned(),
            Constant::Undef => "undef".to_owned(),
            Constant::Poison => "poison".to_owned(),
            Constant::Zero => "zeroinitializer".to_owned(),
            Constant::Bytes(bytes) => format!("c\"{}\"", escaped(bytes)),
            Constant::Aggregate(kind, elements) => {
                let (open, close) = match kind {
                    Aggregate::Array => ("[", "]"),
                    Aggregate::Vector => ("<", ">"),
                    Aggregate::Struct => ("{ ", " }"),
                    Aggregate::PackedStruct => ("<{ ", " }>"),
                };
                let elements: Vec<String> = elements
                    .iter()
                    .map(|element| self.typed_constant(element))
                    .collect();
                format!("{open}{}{close}", elements.join(", "))
            }
            Constant::Symbol(symbol) => self.symbol(symbol),
            Constant::Cast(operation, from, to) => format!(
                "{} ({} to {})",
                operation.name(),
                self.typed_constant(from),
                self.ty(to)
            ),
            Constant::Binary(operation, left, right) => format!(
                "{operation} ({}, {})",
                self.typed_constant(left),
                self.typed_constant(right)
            ),
            Constant::ElementPointer {
                inbounds,
                source,
                base,
                indices,
            } => self.constant_element_pointer(*inbounds, source, base, indices),
        }
    }

    /// A function or static as a pointer to anything in its own address space.
    fn symbol(&self, symbol: &Symbol) -> String {
        let name = format!("@{}", quoted(symbol));
        let (pointee, space) = match self.module.globals.get(symbol) {
            Some(global) => (self.ty(&global.ty), global.address_space),
            None => match self.module.functions.get(symbol) {
                Some(function) => (self.function_type(&function.ty), 0),
                None => return name,
            },
        };
        self.erased(&pointee, space, &name)
    }

    /// A constant pointer to `pointee` as a pointer to anything.
    fn erased(&self, pointee: &str, space: u32, pointer: &str) -> String {
        match self.dialect.tells_apart(pointee) {
            true => format!(
                "bitcast ({} {pointer} to {})",
                self.dialect.pointer_to(pointee, space),
                self.dialect.any_pointer(space)
            ),
            false => pointer.to_owned(),
        }
    }

    fn constant_element_pointer(
        &self,
        inbounds: bool,
        source: &Type,
        base: &TypedConstant,
        indices: &[TypedConstant],
    ) -> String {
        let space = match base.ty {
            Type::Pointer(space) => space,
            _ => 0,
        };
        let pointee = self.ty(source);
        let pointer = self.constant(&base.ty, &base.value);
        let pointer = match self.dialect.tells_apart(&pointee) {
            true => format!(
                "bitcast ({} {pointer} to {})",
                self.dialect.any_pointer(space),
                self.dialect.pointer_to(&pointee, space)
            ),
            false => pointer,
        };
        let steps = indices.iter().map(|index| index.value.as_integer());
        let element = self.ty(element_at(source, steps));
        let indices: String = indices
            .iter()
            .map(|index| format!(", {}", self.typed_constant(index)))
            .collect();
        let inbounds = if inbounds { "inbounds " } else { "" };
        let pointer = format!(
            "getelementptr {inbounds}({pointee}, {} {pointer}{indices})",
            self.dialect.pointer_to(&pointee, space)
        );
        self.erased(&element, space, &pointer)
    }
}

/// The type that `getelementptr` leads to; the first index counts complete values of `source`.
pub(super) fn element_at(source: &Type, indices: impl Iterator<Item = Option<i128>>) -> &Type {
    indices.skip(1).fold(source, |ty, index| {
        // All elements but a struct's are alike, so that an index that is not known does not
        // matter.
        let index = index
            .and_then(|index| u64::try_from(index).ok())
            .unwrap_or(0);
        ty.element(index).unwrap_or(ty)
    })
}
