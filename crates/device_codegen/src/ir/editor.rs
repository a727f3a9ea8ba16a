//! Appends instructions to a block that is being written.

use super::{
    CastOperation, Constant, Function, Instruction, LocalId, Operand, Operation, Type, Value,
};
use crate::error::Error;

/// The new block, so far.
pub(crate) struct Editor<'f> {
    pub(crate) function: &'f mut Function,
    pub(crate) instructions: Vec<Instruction>,
    /// The line of the instruction that is being rewritten.
    pub(crate) line: u32,
    /// Its place in the Rust source, which its replacement inherits.
    pub(crate) source: Option<u32>,
}

impl<'f> Editor<'f> {
    pub(crate) fn new(function: &'f mut Function) -> Self {
        Self {
            function,
            instructions: Vec::new(),
            line: 0,
            source: None,
        }
    }

    pub(crate) fn finish(self) -> Vec<Instruction> {
        self.instructions
    }

    pub(crate) fn error(&self, problem: impl Into<String>) -> Error {
        Error::new(&self.function.location_of(self.line), problem)
    }

    pub(crate) fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }

    /// Gives the value that replaces `old` its name.
    pub(crate) fn take_name(&mut self, old: LocalId, new: &Value) {
        if let Value::Local(new) = new
            && self.function.locals[new.0 as usize].name.is_none()
        {
            let name = self.function.locals[old.0 as usize].name.take();
            self.function.locals[new.0 as usize].name = name;
        }
    }

    /// An instruction that gives a new value of type `ty`.
    pub(crate) fn value(&mut self, ty: Type, operation: Operation) -> Value {
        let id = self.function.fresh(ty);
        self.define(Some(id), operation);
        Value::Local(id)
    }

    /// An instruction without a value.
    pub(crate) fn effect(&mut self, operation: Operation) {
        self.define(None, operation);
    }

    /// The instruction that gives this value, if any.
    pub(crate) fn define(&mut self, result: Option<LocalId>, operation: Operation) {
        self.push(Instruction::new(result, operation, self.source, self.line));
    }

    pub(crate) fn binary(
        &mut self,
        operation: &str,
        ty: &Type,
        left: &Value,
        right: &Value,
    ) -> Value {
        self.value(
            ty.clone(),
            Operation::Binary {
                operation: operation.to_owned(),
                flags: Vec::new(),
                ty: ty.clone(),
                left: left.clone(),
                right: right.clone(),
            },
        )
    }

    /// `icmp`, or `fcmp` for floats.
    pub(crate) fn compare(
        &mut self,
        predicate: &str,
        ty: &Type,
        left: &Value,
        right: &Value,
    ) -> Value {
        self.value(
            Type::BOOL,
            Operation::Compare {
                float: ty.is_float(),
                flags: Vec::new(),
                predicate: predicate.to_owned(),
                ty: ty.clone(),
                left: left.clone(),
                right: right.clone(),
            },
        )
    }

    pub(crate) fn select(
        &mut self,
        condition: &Value,
        ty: &Type,
        then: &Value,
        otherwise: &Value,
    ) -> Value {
        self.value(
            ty.clone(),
            Operation::Select {
                flags: Vec::new(),
                condition: Operand::new(Type::BOOL, condition.clone()),
                ty: ty.clone(),
                then: then.clone(),
                otherwise: otherwise.clone(),
            },
        )
    }

    pub(crate) fn cast(
        &mut self,
        operation: CastOperation,
        from: &Type,
        value: &Value,
        to: &Type,
    ) -> Value {
        let from = Operand::new(from.clone(), value.clone());
        self.value(to.clone(), Operation::cast(operation, from, to.clone()))
    }

    /// `{ first, second }`
    pub(crate) fn pair(&mut self, first: (&Type, Value), second: (&Type, Value)) -> Value {
        let ty = Type::tuple([first.0.clone(), second.0.clone()]);
        let mut aggregate = Value::Constant(Constant::Undef);
        for (index, (of_element, element)) in [(0, first), (1, second)] {
            let operation = Operation::InsertValue {
                aggregate: Operand::new(ty.clone(), aggregate),
                element: Operand::new(of_element.clone(), element),
                indices: vec![index],
            };
            aggregate = self.value(ty.clone(), operation);
        }
        aggregate
    }

    /// A call of an intrinsic that gives a value.
    pub(crate) fn intrinsic(
        &mut self,
        name: &str,
        result: &Type,
        arguments: &[(&Type, &Value)],
    ) -> Value {
        let call = Operation::intrinsic(name, result, arguments);
        self.value(result.clone(), call)
    }

    /// A call of an intrinsic that gives none.
    pub(crate) fn intrinsic_effect(&mut self, name: &str, arguments: &[(&Type, &Value)]) {
        self.effect(Operation::intrinsic(name, &Type::Void, arguments));
    }
}

/// The float constant with these bits, in LLVM's notation: the bits of the `double` of the same
/// value.
pub(crate) fn float_constant(value: f64) -> Value {
    Value::Constant(Constant::Float(
        format!("0x{:016X}", value.to_bits()).into(),
    ))
}
