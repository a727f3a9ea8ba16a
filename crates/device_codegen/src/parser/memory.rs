//! Instructions that touch memory: stack slots, loads, stores, atomics.

use super::Parser;
use super::function::Names;
use super::metadata::Attached;
use crate::error::Result;
use crate::ir::{MemoryOrder, Operand, Operation};
use crate::lexer::Token;

const ATOMIC_UPDATES: &[&str] = &[
    "add", "and", "max", "min", "nand", "or", "sub", "umax", "umin", "xchg", "xor",
];

impl Parser<'_> {
    /// `, align 4, !range !7`
    fn alignment_and_attachments(&mut self) -> Result<(Option<u64>, Attached)> {
        let mut align = None;
        let mut attached = Attached::default();
        while self.eat_punctuation(',') {
            match self.eat_word("align") {
                true => align = Some(self.alignment()?),
                false => self.attachment(&mut attached)?,
            }
        }
        Ok((align, attached))
    }

    pub(super) fn allocate(&mut self, names: &mut Names) -> Result<(Operation, Attached)> {
        let ty = self.ty()?;
        let count = match (self.peek(), self.peek_at(1)) {
            (Token::Punctuation(','), Token::Word(word)) if *word != "align" => {
                Some(self.after_comma(names)?)
            }
            _ => None,
        };
        let (align, attached) = self.alignment_and_attachments()?;
        Ok((Operation::Allocate { ty, count, align }, attached))
    }

    pub(super) fn load(&mut self, names: &mut Names) -> Result<(Operation, Attached)> {
        let atomic = self.eat_word("atomic");
        let volatile = self.eat_word("volatile");
        let ty = self.ty()?;
        self.punctuation(',')?;
        let pointer = self.pointer_operand(names)?;
        let order = self.order_if(atomic)?;
        let (align, attached) = self.alignment_and_attachments()?;
        let operation = Operation::Load {
            ty,
            pointer,
            align,
            volatile,
            order,
        };
        Ok((operation, attached))
    }

    pub(super) fn store(&mut self, names: &mut Names) -> Result<(Operation, Attached)> {
        let atomic = self.eat_word("atomic");
        let volatile = self.eat_word("volatile");
        let value = self.operand(names)?;
        self.punctuation(',')?;
        let pointer = self.pointer_operand(names)?;
        let order = self.order_if(atomic)?;
        let (align, attached) = self.alignment_and_attachments()?;
        let operation = Operation::Store {
            value,
            pointer,
            align,
            volatile,
            order,
        };
        Ok((operation, attached))
    }

    pub(super) fn atomic_update(&mut self, names: &mut Names) -> Result<(Operation, Attached)> {
        let volatile = self.eat_word("volatile");
        let operation = match self.peek() {
            Token::Word(word) if ATOMIC_UPDATES.contains(word) => (*word).to_owned(),
            _ => return self.expected("an atomic operation on integers"),
        };
        self.at += 1;
        let pointer = self.pointer_operand(names)?;
        let operand = self.after_comma(names)?;
        self.system_scope()?;
        let order = self.memory_order()?;
        let (_, attached) = self.alignment_and_attachments()?;
        let operation = Operation::AtomicUpdate {
            operation,
            volatile,
            pointer,
            operand,
            order,
        };
        Ok((operation, attached))
    }

    pub(super) fn compare_exchange(&mut self, names: &mut Names) -> Result<(Operation, Attached)> {
        let weak = self.eat_word("weak");
        let volatile = self.eat_word("volatile");
        let pointer = self.pointer_operand(names)?;
        let expected = self.after_comma(names)?;
        self.punctuation(',')?;
        let replacement = self.operand_of(&expected.ty, names)?;
        self.system_scope()?;
        let success = self.memory_order()?;
        let failure = self.memory_order()?;
        let (_, attached) = self.alignment_and_attachments()?;
        let operation = Operation::CompareExchange {
            weak,
            volatile,
            pointer,
            replacement: Operand::new(expected.ty.clone(), replacement),
            expected,
            success,
            failure,
        };
        Ok((operation, attached))
    }

    fn order_if(&mut self, atomic: bool) -> Result<Option<MemoryOrder>> {
        if !atomic {
            return Ok(None);
        }
        self.system_scope()?;
        Ok(Some(self.memory_order()?))
    }

    pub(super) fn memory_order(&mut self) -> Result<MemoryOrder> {
        if let Token::Word(word) = self.peek()
            && let Some(order) = MemoryOrder::from_name(word)
        {
            self.at += 1;
            return Ok(order);
        }
        self.expected("a memory order")
    }

    /// Refuses any `syncscope`: rustc gives one to compiler fences only.
    fn system_scope(&mut self) -> Result<()> {
        match self.at_word("syncscope") {
            true => self.error("an atomic access with a `syncscope` cannot be translated"),
            false => Ok(()),
        }
    }

    /// Whether `syncscope("singlethread")` is next.
    pub(super) fn synchronization_scope(&mut self) -> Result<bool> {
        if !self.eat_word("syncscope") {
            return Ok(false);
        }
        self.punctuation('(')?;
        let scope = self.string()?;
        self.punctuation(')')?;
        match scope.as_str() {
            "singlethread" => Ok(true),
            _ => self.error(format!("a GPU has no synchronization scope `{scope}`")),
        }
    }
}
