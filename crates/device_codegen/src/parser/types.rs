//! Types, and the names that a module gives them.

use std::sync::Arc;

use super::Parser;
use crate::error::Result;
use crate::ir::Type;
use crate::lexer::Token;

/// The most parts that a type may have once its names are replaced.
const MAXIMUM_WEIGHT: u64 = 4096;

/// LLVM's widest integer.
const MAXIMUM_INTEGER_WIDTH: u32 = 1 << 23;

impl Parser<'_> {
    /// A type that a value can have, or `void`.
    pub(super) fn ty(&mut self) -> Result<Type> {
        let ty = self.nested(Self::ty_unchecked)?;
        match ty.weight() {
            weight if weight > MAXIMUM_WEIGHT => self.error("the type has too many parts"),
            _ => Ok(ty),
        }
    }

    fn ty_unchecked(&mut self) -> Result<Type> {
        let token = self.peek().clone();
        let ty = match &token {
            Token::Word(word) => match *word {
                "void" => Type::Void,
                "half" => Type::Half,
                "bfloat" => Type::BFloat,
                "float" => Type::Float,
                "double" => Type::Double,
                "metadata" => Type::Metadata,
                "ptr" => {
                    self.at += 1;
                    return self.pointer();
                }
                "x86_fp80" | "fp128" | "ppc_fp128" | "x86_amx" | "token" | "target" | "opaque" => {
                    return self.error(format!("a GPU has no type `{word}`"));
                }
                _ => match integer_width(word) {
                    Some(width) => Type::Integer(width),
                    None => return self.expected("a type"),
                },
            },
            Token::Local(name) => {
                self.at += 1;
                return self.named_type(name);
            }
            Token::Punctuation('[') => {
                self.at += 1;
                let (count, element) = self.repeated(']')?;
                return Ok(Type::Array(count, element));
            }
            Token::Punctuation('{') => {
                self.at += 1;
                return self.fields(false);
            }
            Token::Punctuation('<') => {
                self.at += 1;
                if self.eat_punctuation('{') {
                    let ty = self.fields(true)?;
                    self.punctuation('>')?;
                    return Ok(ty);
                }
                if self.at_word("vscale") {
                    return self.error("a GPU has no scalable vectors");
                }
                let (count, element) = self.repeated('>')?;
                return Ok(Type::Vector(count, element));
            }
            _ => return self.expected("a type"),
        };
        self.at += 1;
        if self.at_punctuation('*') {
            return self.error(format!(
                "`{ty}*` is a pointer type of LLVM 14 or older; LLVM 22's `ptr` was expected"
            ));
        }
        Ok(ty)
    }

    /// After `ptr`.
    fn pointer(&mut self) -> Result<Type> {
        if !self.eat_word("addrspace") {
            return Ok(Type::Pointer(0));
        }
        let space = self.number_in_parentheses()?;
        match u32::try_from(space) {
            Ok(space @ 0..=5) => Ok(Type::Pointer(space)),
            _ => self.error(format!("a GPU has no address space {space}")),
        }
    }

    /// `4 x float]`
    fn repeated(&mut self, close: char) -> Result<(u64, Arc<Type>)> {
        let count = self.number()?;
        self.word("x")?;
        let element = self.ty()?;
        self.punctuation(close)?;
        Ok((count, Arc::new(element)))
    }

    /// `i32, ptr }`
    fn fields(&mut self, packed: bool) -> Result<Type> {
        let fields = self.list('}', Self::ty)?;
        Ok(Type::Struct {
            packed,
            fields: fields.into(),
        })
    }

    /// The type of a name, read at its definition if that has not happened yet.
    fn named_type(&mut self, name: &str) -> Result<Type> {
        match self.types.get(name) {
            Some(Some(ty)) => return Ok(ty.clone()),
            Some(None) => return self.error(format!("the type `%{name}` contains itself")),
            None => {}
        }
        let Some(definition) = self.type_definitions.get(name).copied() else {
            return self.error(format!("the type `%{name}` is not defined"));
        };
        self.types.insert(name.to_owned(), None);
        let back = std::mem::replace(&mut self.at, definition);
        let ty = self.ty()?;
        self.at = back;
        self.types.insert(name.to_owned(), Some(ty.clone()));
        Ok(ty)
    }
}

/// The width that `i32` names.
fn integer_width(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('i')?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let width = digits.parse().ok()?;
    (1..=MAXIMUM_INTEGER_WIDTH)
        .contains(&width)
        .then_some(width)
}
