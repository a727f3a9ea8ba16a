//! Constants and constant expressions.

use std::sync::Arc;

use super::{CastOperation, Symbol, Type};

/// A constant; its type is beside it ([`TypedConstant`]).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    /// `true` and `false` are 1 and 0 of type `i1`.
    Integer(i128),
    /// An integer of more than 128 bits that is beyond the range of `i128`, as LLVM wrote it.
    WideInteger(Arc<str>),
    /// As LLVM wrote it: `1.000000e+00`, `0x36A0000000000000`. Rewriting it could lose bits.
    Float(Arc<str>),
    Null,
    Undef,
    Poison,
    Zero,
    /// The bytes of a `c"..."`.
    Bytes(Arc<[u8]>),
    Aggregate(Aggregate, Vec<TypedConstant>),
    Symbol(Symbol),
    Cast(CastOperation, Box<TypedConstant>, Type),
    ElementPointer {
        inbounds: bool,
        source: Type,
        base: Box<TypedConstant>,
        indices: Vec<TypedConstant>,
    },
    /// `add`, `sub`, `xor`: what LLVM 22 still folds into expressions.
    Binary(String, Box<TypedConstant>, Box<TypedConstant>),
}

/// How an aggregate is bracketed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    Array,
    Vector,
    Struct,
    PackedStruct,
}

/// A constant with its type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypedConstant {
    pub(crate) ty: Type,
    pub(crate) value: Constant,
}

impl Constant {
    /// The number, if it is one.
    pub(crate) fn as_integer(&self) -> Option<i128> {
        match self {
            Constant::Integer(value) => Some(*value),
            Constant::Zero => Some(0),
            _ => None,
        }
    }

    /// The symbols that it names.
    pub(crate) fn symbols(&self) -> Vec<&Symbol> {
        let mut symbols = Vec::new();
        self.walk(&mut |constant| {
            if let Constant::Symbol(symbol) = constant {
                symbols.push(symbol);
            }
        });
        symbols
    }

    /// Calls `visit` on every nested constant, itself first.
    pub(crate) fn walk<'c>(&'c self, visit: &mut dyn FnMut(&'c Constant)) {
        visit(self);
        match self {
            Constant::Aggregate(_, elements) => {
                for element in elements {
                    element.value.walk(visit);
                }
            }
            Constant::Cast(_, from, _) => from.value.walk(visit),
            Constant::ElementPointer { base, indices, .. } => {
                base.value.walk(visit);
                for index in indices {
                    index.value.walk(visit);
                }
            }
            Constant::Binary(_, left, right) => {
                left.value.walk(visit);
                right.value.walk(visit);
            }
            _ => {}
        }
    }

    /// Calls `visit` on every nested constant, the innermost first, so that it may replace them.
    pub(crate) fn walk_mut(&mut self, visit: &mut dyn FnMut(&mut Constant)) {
        match self {
            Constant::Aggregate(_, elements) => {
                for element in elements {
                    element.value.walk_mut(visit);
                }
            }
            Constant::Cast(_, from, _) => from.value.walk_mut(visit),
            Constant::ElementPointer { base, indices, .. } => {
                base.value.walk_mut(visit);
                for index in indices {
                    index.value.walk_mut(visit);
                }
            }
            Constant::Binary(_, left, right) => {
                left.value.walk_mut(visit);
                right.value.walk_mut(visit);
            }
            _ => {}
        }
        visit(self);
    }
}
