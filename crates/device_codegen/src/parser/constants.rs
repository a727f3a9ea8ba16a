//! Constants, each checked against the type it is written with.

use super::Parser;
use crate::error::Result;
use crate::ir::{Aggregate, CastOperation, Constant, Type, TypedConstant};
use crate::lexer::Token;

/// The most elements that `splat (...)` is written out to.
const MAXIMUM_SPLAT: u64 = 1024;

impl Parser<'_> {
    /// `i32 7`
    pub(super) fn typed_constant(&mut self) -> Result<TypedConstant> {
        let ty = self.ty()?;
        let value = self.constant(&ty)?;
        Ok(TypedConstant { ty, value })
    }

    /// The constant after its type.
    pub(super) fn constant(&mut self, ty: &Type) -> Result<Constant> {
        let line = self.at;
        let constant = self.nested(|parser| parser.constant_unchecked(ty))?;
        if fits(&constant, ty) {
            return Ok(constant);
        }
        self.at = line;
        self.error(format!(
            "the constant `{}` is not of type `{ty}`",
            self.peek()
        ))
    }

    fn constant_unchecked(&mut self, ty: &Type) -> Result<Constant> {
        let token = self.next();
        match token {
            Token::Integer(value) => Ok(Constant::Integer(value)),
            // All 128 bits used: the same bits, read as signed.
            Token::WideInteger(digits) => match (ty, digits.parse::<u128>()) {
                (Type::Integer(128), Ok(value)) => Ok(Constant::Integer(value as i128)),
                _ => Ok(Constant::WideInteger(digits.into())),
            },
            Token::Float(text) => Ok(Constant::Float(text.into())),
            Token::Bytes(bytes) => Ok(Constant::Bytes(bytes.into())),
            Token::Global(name) => Ok(Constant::Symbol(name.into())),
            Token::Word(word) => self.constant_word(word, ty),
            Token::Punctuation('[') => self.aggregate(Aggregate::Array, ']'),
            Token::Punctuation('{') => self.aggregate(Aggregate::Struct, '}'),
            Token::Punctuation('<') if self.eat_punctuation('{') => {
                let aggregate = self.aggregate(Aggregate::PackedStruct, '}')?;
                self.punctuation('>')?;
                Ok(aggregate)
            }
            Token::Punctuation('<') => self.aggregate(Aggregate::Vector, '>'),
            _ => {
                self.at -= 1;
                self.expected("a constant")
            }
        }
    }

    fn aggregate(&mut self, kind: Aggregate, close: char) -> Result<Constant> {
        Ok(Constant::Aggregate(
            kind,
            self.list(close, Self::typed_constant)?,
        ))
    }

    fn constant_word(&mut self, word: &str, ty: &Type) -> Result<Constant> {
        match word {
            "true" if *ty == Type::BOOL => Ok(Constant::Integer(1)),
            "false" if *ty == Type::BOOL => Ok(Constant::Integer(0)),
            "null" => Ok(Constant::Null),
            "undef" => Ok(Constant::Undef),
            "poison" => Ok(Constant::Poison),
            "zeroinitializer" => Ok(Constant::Zero),
            "splat" => {
                self.punctuation('(')?;
                let element = self.typed_constant()?;
                self.punctuation(')')?;
                match ty {
                    Type::Vector(count, _) if *count <= MAXIMUM_SPLAT => Ok(Constant::Aggregate(
                        Aggregate::Vector,
                        vec![element; *count as usize],
                    )),
                    _ => self.error(format!("`splat` cannot make a value of type `{ty}`")),
                }
            }
            "getelementptr" => self.constant_element_pointer(),
            "add" | "sub" | "xor" => {
                self.words_of(&["nuw", "nsw"]);
                self.punctuation('(')?;
                let left = self.typed_constant()?;
                self.punctuation(',')?;
                let right = self.typed_constant()?;
                self.punctuation(')')?;
                Ok(Constant::Binary(
                    word.to_owned(),
                    Box::new(left),
                    Box::new(right),
                ))
            }
            _ => {
                let Some(operation) = CastOperation::from_name(word) else {
                    self.at -= 1;
                    return self.expected("a constant");
                };
                self.punctuation('(')?;
                let from = self.typed_constant()?;
                self.word("to")?;
                let to = self.ty()?;
                self.punctuation(')')?;
                Ok(Constant::Cast(operation, Box::new(from), to))
            }
        }
    }

    fn constant_element_pointer(&mut self) -> Result<Constant> {
        let mut inbounds = false;
        loop {
            if self.eat_word("inbounds") {
                inbounds = true;
            } else if self.eat_word("inrange") {
                self.balanced()?;
            } else if !self.eat_word("nuw") && !self.eat_word("nusw") {
                break;
            }
        }
        self.punctuation('(')?;
        let source = self.ty()?;
        self.punctuation(',')?;
        let base = self.typed_constant()?;
        let mut indices = Vec::new();
        while self.eat_punctuation(',') {
            indices.push(self.typed_constant()?);
        }
        self.punctuation(')')?;
        if !matches!(base.ty, Type::Pointer(_)) || indices.is_empty() {
            return self.error("a constant `getelementptr` needs a pointer and an index");
        }
        Ok(Constant::ElementPointer {
            inbounds,
            source,
            base: Box::new(base),
            indices,
        })
    }
}

/// Whether a constant can have the type.
fn fits(constant: &Constant, ty: &Type) -> bool {
    match constant {
        Constant::Integer(_) => matches!(ty, Type::Integer(_)),
        Constant::WideInteger(_) => matches!(ty, Type::Integer(129..)),
        Constant::Float(_) => ty.is_float(),
        Constant::Null | Constant::Symbol(_) | Constant::ElementPointer { .. } => {
            matches!(ty, Type::Pointer(_))
        }
        Constant::Undef | Constant::Poison | Constant::Zero => {
            !matches!(ty, Type::Void | Type::Metadata)
        }
        Constant::Bytes(bytes) => {
            matches!(ty, Type::Array(count, element)
                if **element == Type::Integer(8) && *count == bytes.len() as u64)
        }
        Constant::Cast(_, _, to) => to == ty,
        Constant::Binary(_, left, right) => left.ty == *ty && right.ty == *ty,
        Constant::Aggregate(kind, elements) => match (kind, ty) {
            (Aggregate::Array, Type::Array(count, element))
            | (Aggregate::Vector, Type::Vector(count, element)) => {
                *count == elements.len() as u64
                    && elements.iter().all(|constant| constant.ty == **element)
            }
            (
                Aggregate::Struct,
                Type::Struct {
                    packed: false,
                    fields,
                },
            )
            | (
                Aggregate::PackedStruct,
                Type::Struct {
                    packed: true,
                    fields,
                },
            ) => {
                fields.len() == elements.len()
                    && fields
                        .iter()
                        .zip(elements)
                        .all(|(field, constant)| constant.ty == *field)
            }
            _ => false,
        },
    }
}
