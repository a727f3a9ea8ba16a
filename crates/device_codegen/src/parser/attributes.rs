//! Attributes of parameters, results and functions.

use super::Parser;
use crate::error::Result;
use crate::ir::{Attribute, AttributeArgument};
use crate::lexer::Token;

/// The text behind an attribute's name.
#[derive(Clone, Copy)]
enum Argument {
    None,
    /// `align 4` or `align(4)`
    Alignment,
    /// `dereferenceable(24)`
    Number,
    /// `sret([3 x i64])`
    Type,
    /// `captures(none)`
    Text,
    /// `dead_on_return` or `dead_on_return(24)`
    OptionalText,
}

/// The attributes that LLVM 22 allows on a parameter or a result. The list is closed: after them
/// comes a value, which may be a word too.
const PARAMETER_ATTRIBUTES: [(Argument, &str); 6] = [
    (Argument::Alignment, "align"),
    (
        Argument::None,
        "allocalign allocptr dead_on_unwind immarg inreg nest noalias nocapture noext \
         nofree nonnull noundef readnone readonly returned signext swiftasync swifterror \
         swiftself writable writeonly zeroext",
    ),
    (
        Argument::Type,
        "byref byval elementtype inalloca preallocated sret",
    ),
    (Argument::Text, "captures initializes nofpclass range"),
    (Argument::OptionalText, "dead_on_return"),
    (Argument::Number, "dereferenceable dereferenceable_or_null"),
];

/// Attributes that change what a function means and that a GPU cannot honour.
const REFUSED_FUNCTION_ATTRIBUTES: &[&str] = &[
    "naked",
    "null_pointer_is_valid",
    "presplitcoroutine",
    "returns_twice",
    "strictfp",
];

impl Parser<'_> {
    /// The attributes of a parameter or a result; the first word that is none ends them.
    pub(super) fn parameter_attributes(&mut self) -> Result<Vec<Attribute>> {
        let mut attributes = Vec::new();
        while let Token::Word(word) = *self.peek() {
            let mut kinds = PARAMETER_ATTRIBUTES.iter();
            let Some((argument, _)) =
                kinds.find(|(_, names)| names.split(' ').any(|it| it == word))
            else {
                break;
            };
            self.at += 1;
            let argument = match argument {
                Argument::None => None,
                Argument::Alignment if self.eat_punctuation('(') => {
                    let align = self.alignment()?;
                    self.punctuation(')')?;
                    Some(AttributeArgument::Number(align))
                }
                Argument::Alignment => Some(AttributeArgument::Number(self.alignment()?)),
                Argument::Number => Some(AttributeArgument::Number(self.number_in_parentheses()?)),
                Argument::Type => {
                    self.punctuation('(')?;
                    let ty = self.ty()?;
                    self.punctuation(')')?;
                    Some(AttributeArgument::Type(ty))
                }
                Argument::OptionalText if !self.at_punctuation('(') => None,
                Argument::Text | Argument::OptionalText => {
                    Some(AttributeArgument::Text(self.balanced()?))
                }
            };
            attributes.push(Attribute {
                name: word.to_owned(),
                argument,
            });
        }
        Ok(attributes)
    }

    /// `#7` and attributes by name after a function's parameters or a call's arguments.
    pub(super) fn function_attributes(&mut self) -> Result<Vec<Attribute>> {
        let mut attributes = Vec::new();
        loop {
            match self.peek() {
                Token::AttributeGroup(number) => match self.attribute_groups.get(number) {
                    Some(group) => {
                        attributes.extend(group.iter().cloned());
                        self.at += 1;
                    }
                    None => {
                        return self
                            .error(format!("the attribute group `#{number}` is not defined"));
                    }
                },
                Token::Word(
                    "nounwind" | "noreturn" | "noinline" | "alwaysinline" | "cold" | "convergent"
                    | "willreturn" | "memory",
                ) => {
                    let attribute = self.function_attribute()?;
                    attributes.push(attribute);
                }
                _ => return Ok(attributes),
            }
        }
    }

    /// `{ nounwind "target-cpu"="x86-64" }`, the contents of a group.
    pub(super) fn attribute_group(&mut self) -> Result<Vec<Attribute>> {
        self.punctuation('{')?;
        let mut attributes = Vec::new();
        while !self.eat_punctuation('}') {
            let attribute = self.function_attribute()?;
            attributes.push(attribute);
        }
        Ok(attributes)
    }

    fn function_attribute(&mut self) -> Result<Attribute> {
        let name = match self.peek() {
            Token::Word(word) if REFUSED_FUNCTION_ATTRIBUTES.contains(word) => {
                return self.error(format!("a device function cannot be `{word}`"));
            }
            Token::Word(word) => (*word).to_owned(),
            Token::String(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
            _ => return self.expected("an attribute"),
        };
        self.at += 1;
        let argument = if self.at_punctuation('(') {
            Some(AttributeArgument::Text(self.balanced()?))
        } else if self.eat_punctuation('=') {
            match self.peek() {
                Token::String(_) => Some(AttributeArgument::Text(self.string()?)),
                _ => Some(AttributeArgument::Number(self.number()?)),
            }
        } else {
            None
        };
        Ok(Attribute { name, argument })
    }
}
