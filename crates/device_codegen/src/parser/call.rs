//! Calls of functions, of pointers and of inline assembly.

use super::Parser;
use super::function::Names;
use super::instruction::FAST_MATH;
use crate::error::Result;
use crate::ir::{Call, Callee, FunctionType, InlineAssembly, Operation, Type};
use crate::lexer::Token;

impl Parser<'_> {
    /// After `call`.
    pub(super) fn call(&mut self, names: &mut Names) -> Result<Operation> {
        let flags = self.words_of(FAST_MATH);
        self.calling_convention()?;
        self.parameter_attributes()?;
        let result = self.ty()?;
        if self.at_punctuation('(') {
            return self.error("device code cannot call variadic functions");
        }
        let callee = self.callee(names)?;
        self.punctuation('(')?;
        let mut ty = FunctionType {
            result,
            parameters: Vec::new(),
        };
        let mut argument_attributes = Vec::new();
        let arguments = self.list(')', |parser| {
            let parameter = parser.ty()?;
            argument_attributes.push(parser.parameter_attributes()?);
            let value = parser.value(&parameter, names)?;
            ty.parameters.push(parameter);
            Ok(value)
        })?;
        let attributes = self.function_attributes()?;
        if self.at_punctuation('[') {
            self.operand_bundles(&callee, names)?;
        }
        Ok(Operation::Call(Box::new(Call {
            flags,
            callee,
            ty,
            arguments,
            argument_attributes,
            attributes,
        })))
    }

    fn callee(&mut self, names: &mut Names) -> Result<Callee> {
        match self.peek().clone() {
            Token::Global(name) => {
                self.at += 1;
                Ok(Callee::Symbol(name.into()))
            }
            Token::Word("asm") => {
                self.at += 1;
                let words = self.words_of(&["sideeffect", "alignstack", "inteldialect"]);
                let Token::String(text) = self.next() else {
                    self.at -= 1;
                    return self.expected("the text of the inline assembly");
                };
                self.punctuation(',')?;
                Ok(Callee::Assembly(InlineAssembly {
                    side_effect: words.iter().any(|word| word == "sideeffect"),
                    text,
                    constraints: self.string()?,
                }))
            }
            _ => Ok(Callee::Pointer(self.value(&Type::GENERIC_POINTER, names)?)),
        }
    }

    /// `[ "align"(ptr %p, i64 16) ]`, which only `llvm.assume` may have: it is dropped, so that
    /// they go with it.
    fn operand_bundles(&mut self, callee: &Callee, names: &mut Names) -> Result<()> {
        if !matches!(callee, Callee::Symbol(symbol) if **symbol == *"llvm.assume") {
            return self.error("a call with operand bundles cannot be translated");
        }
        self.punctuation('[')?;
        self.list(']', |parser| {
            parser.string()?;
            parser.punctuation('(')?;
            parser.list(')', |parser| parser.operand(names))
        })
        .map(drop)
    }
}
