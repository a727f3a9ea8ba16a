//! Instructions that do not end a block.

use super::Parser;
use super::function::Names;
use super::metadata::Attached;
use crate::error::Result;
use crate::ir::{CastOperation, Instruction, Operand, Operation, Type, element_type};
use crate::lexer::Token;

pub(super) const FAST_MATH: &[&str] = &[
    "afn", "arcp", "contract", "fast", "ninf", "nnan", "nsz", "reassoc",
];

const INTEGER_BINARY: &[&str] = &[
    "add", "and", "ashr", "lshr", "mul", "or", "sdiv", "shl", "srem", "sub", "udiv", "urem", "xor",
];

const FLOAT_BINARY: &[&str] = &["fadd", "fdiv", "fmul", "frem", "fsub"];

const INTEGER_PREDICATES: &[&str] = &[
    "eq", "ne", "sge", "sgt", "sle", "slt", "uge", "ugt", "ule", "ult",
];

const FLOAT_PREDICATES: &[&str] = &[
    "false", "oeq", "oge", "ogt", "ole", "olt", "one", "ord", "true", "ueq", "uge", "ugt", "ule",
    "ult", "une", "uno",
];

impl Parser<'_> {
    /// `%name = opcode ...`, or an opcode that gives no value.
    pub(super) fn instruction(&mut self, names: &mut Names) -> Result<Instruction> {
        let line = self.line();
        let start = self.at;
        let name = match self.peek().clone() {
            Token::Local(name) => {
                self.at += 1;
                self.punctuation('=')?;
                Some(name)
            }
            _ => None,
        };
        let (operation, attached) = self.operation(names)?;
        let after = std::mem::replace(&mut self.at, start);
        let Some(ty) = operation.result_type() else {
            return self.error("the operands of the instruction do not fit together");
        };
        let result = match name {
            Some(_) if ty == Type::Void => return self.error("the instruction gives no value"),
            Some(name) => Some(self.define(names, &name, &ty)?),
            None if ty == Type::Void => None,
            None => return self.error(format!("the instruction's `{ty}` has no name")),
        };
        self.at = after;
        Ok(Instruction {
            result,
            operation,
            metadata: attached.metadata,
            source: attached.source,
            line,
        })
    }

    fn operation(&mut self, names: &mut Names) -> Result<(Operation, Attached)> {
        let Token::Word(opcode) = *self.peek() else {
            return self.expected("an instruction");
        };
        self.at += 1;
        let operation = match opcode {
            _ if INTEGER_BINARY.contains(&opcode) => {
                self.binary(opcode, &["disjoint", "exact", "nsw", "nuw"], names)?
            }
            _ if FLOAT_BINARY.contains(&opcode) => self.binary(opcode, FAST_MATH, names)?,
            "fneg" => Operation::FloatNegate {
                flags: self.words_of(FAST_MATH),
                operand: self.operand(names)?,
            },
            "freeze" => Operation::Freeze(self.operand(names)?),
            "icmp" => self.compare(false, &["samesign"], INTEGER_PREDICATES, names)?,
            "fcmp" => self.compare(true, FAST_MATH, FLOAT_PREDICATES, names)?,
            "select" => self.select(names)?,
            "phi" => self.phi(names)?,
            "getelementptr" => self.element_pointer(names)?,
            "extractvalue" => {
                let aggregate = self.operand(names)?;
                let indices = self.path(&aggregate.ty)?;
                Operation::ExtractValue { aggregate, indices }
            }
            "insertvalue" => {
                let aggregate = self.operand(names)?;
                self.punctuation(',')?;
                let element = self.operand(names)?;
                let indices = self.path(&aggregate.ty)?;
                if element_type(&aggregate.ty, &indices) != Some(&element.ty) {
                    return self.error("the element is not of the type at that place");
                }
                Operation::InsertValue {
                    aggregate,
                    element,
                    indices,
                }
            }
            "extractelement" => Operation::ExtractElement {
                vector: self.vector(names)?,
                index: self.after_comma(names)?,
            },
            "insertelement" => {
                let vector = self.vector(names)?;
                let element = self.after_comma(names)?;
                let index = self.after_comma(names)?;
                if vector.ty.element(0) != Some(&element.ty) {
                    return self.error("the element is not of the vector's element type");
                }
                Operation::InsertElement {
                    vector,
                    element,
                    index,
                }
            }
            "shufflevector" => Operation::ShuffleVector {
                left: self.vector(names)?,
                right: self.after_comma(names)?,
                mask: self.after_comma(names)?,
            },
            "fence" => {
                let single_thread = self.synchronization_scope()?;
                self.memory_order()?;
                Operation::Fence { single_thread }
            }
            "tail" | "musttail" | "notail" => {
                self.word("call")?;
                self.call(names)?
            }
            "call" => self.call(names)?,
            // These four have an alignment among their attachments.
            "alloca" => return self.allocate(names),
            "load" => return self.load(names),
            "store" => return self.store(names),
            "atomicrmw" => return self.atomic_update(names),
            "cmpxchg" => return self.compare_exchange(names),
            _ => match CastOperation::from_name(opcode) {
                Some(operation) => self.cast(operation, names)?,
                None => {
                    return self.error(format!(
                        "the instruction `{opcode}` cannot be translated for a GPU"
                    ));
                }
            },
        };
        Ok((operation, self.attachments()?))
    }

    /// `, i32 %name`
    pub(super) fn after_comma(&mut self, names: &mut Names) -> Result<Operand> {
        self.punctuation(',')?;
        self.operand(names)
    }

    fn binary(&mut self, opcode: &str, flags: &[&str], names: &mut Names) -> Result<Operation> {
        let flags = self.words_of(flags);
        let Operand { ty, value: left } = self.operand(names)?;
        self.punctuation(',')?;
        let right = self.value(&ty, names)?;
        let scalar = match &ty {
            Type::Vector(_, element) => element,
            _ => &ty,
        };
        if scalar.is_float() != FLOAT_BINARY.contains(&opcode)
            || !(scalar.is_float() || scalar.integer_width().is_some())
        {
            return self.error(format!("`{opcode}` does not work on `{ty}`"));
        }
        Ok(Operation::Binary {
            operation: opcode.to_owned(),
            flags,
            ty,
            left,
            right,
        })
    }

    fn cast(&mut self, operation: CastOperation, names: &mut Names) -> Result<Operation> {
        let mut flags = self.words_of(&["nneg", "nsw", "nuw"]);
        flags.extend(self.words_of(FAST_MATH));
        let from = self.operand(names)?;
        self.word("to")?;
        let to = self.ty()?;
        Ok(Operation::Cast {
            operation,
            flags,
            from,
            to,
        })
    }

    fn compare(
        &mut self,
        float: bool,
        flags: &[&str],
        predicates: &[&str],
        names: &mut Names,
    ) -> Result<Operation> {
        let flags = self.words_of(flags);
        let predicate = match self.peek() {
            Token::Word(word) if predicates.contains(word) => (*word).to_owned(),
            _ => return self.expected("a comparison"),
        };
        self.at += 1;
        let Operand { ty, value: left } = self.operand(names)?;
        self.punctuation(',')?;
        let right = self.value(&ty, names)?;
        Ok(Operation::Compare {
            float,
            flags,
            predicate,
            ty,
            left,
            right,
        })
    }

    fn select(&mut self, names: &mut Names) -> Result<Operation> {
        let flags = self.words_of(FAST_MATH);
        let condition = self.operand(names)?;
        self.punctuation(',')?;
        let Operand { ty, value: then } = self.operand(names)?;
        self.punctuation(',')?;
        let otherwise = self.operand_of(&ty, names)?;
        Ok(Operation::Select {
            flags,
            condition,
            ty,
            then,
            otherwise,
        })
    }

    fn phi(&mut self, names: &mut Names) -> Result<Operation> {
        let flags = self.words_of(FAST_MATH);
        let ty = self.ty()?;
        let mut incoming = Vec::new();
        loop {
            self.punctuation('[')?;
            let value = self.value(&ty, names)?;
            self.punctuation(',')?;
            let block = self.block_name(names)?;
            self.punctuation(']')?;
            incoming.push((value, block));
            // A comma may also begin an attachment.
            if !self.at_punctuation(',') || *self.peek_at(1) != Token::Punctuation('[') {
                return Ok(Operation::Phi {
                    flags,
                    ty,
                    incoming,
                });
            }
            self.at += 1;
        }
    }

    fn element_pointer(&mut self, names: &mut Names) -> Result<Operation> {
        let flags = self.words_of(&["inbounds", "nusw", "nuw"]);
        let source = self.ty()?;
        self.punctuation(',')?;
        let base = self.pointer_operand(names)?;
        let mut indices = Vec::new();
        while self.at_punctuation(',') && !matches!(self.peek_at(1), Token::MetadataName(_)) {
            self.at += 1;
            indices.push(self.operand(names)?);
        }
        let mut ty = Some(&source);
        for (position, index) in indices.iter().enumerate() {
            if index.ty.integer_width().is_none() {
                return self.error("an index of `getelementptr` is not an integer");
            }
            if position > 0 {
                let known = index
                    .value
                    .as_integer()
                    .and_then(|value| u64::try_from(value).ok());
                ty = ty.and_then(|ty| match ty {
                    Type::Struct { .. } => ty.element(known?),
                    _ => ty.element(0),
                });
            }
        }
        if indices.is_empty() || ty.is_none() {
            return self.error(format!("the indices do not lead into a `{source}`"));
        }
        Ok(Operation::ElementPointer {
            flags,
            source,
            base,
            indices,
        })
    }

    /// `, 0, 1` into an aggregate.
    fn path(&mut self, ty: &Type) -> Result<Vec<u64>> {
        let mut indices = Vec::new();
        while self.at_punctuation(',') && matches!(self.peek_at(1), Token::Integer(_)) {
            self.at += 1;
            indices.push(self.number()?);
        }
        match indices.is_empty() || element_type(ty, &indices).is_none() {
            true => self.error(format!("the indices do not lead into a `{ty}`")),
            false => Ok(indices),
        }
    }

    fn vector(&mut self, names: &mut Names) -> Result<Operand> {
        let operand = self.operand(names)?;
        match operand.ty {
            Type::Vector(..) => Ok(operand),
            _ => self.error(format!("expected a vector, found a `{}`", operand.ty)),
        }
    }
}
