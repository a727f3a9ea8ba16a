//! Appends instructions to the block that is being rewritten; what becomes of those it had.

use crate::error::Error;
use crate::ir::{
    Call, Callee, CastOperation, Constant, Function, FunctionType, Instruction, LocalId, Operand,
    Operation, Type, Value,
};

/// What a rewrite made of an instruction.
pub(super) enum Outcome {
    /// It is as it was, or was changed in place.
    Keep,
    /// It is removed, and its value, if it has one, is replaced by this.
    Replace(Option<Value>),
}

/// The new block, so far.
pub(super) struct Editor<'f> {
    function: &'f mut Function,
    instructions: Vec<Instruction>,
    /// The line of the instruction that is being rewritten.
    pub(super) line: u32,
    /// Its place in the Rust source, which its replacement inherits.
    pub(super) source: Option<u32>,
}

impl<'f> Editor<'f> {
    pub(super) fn new(function: &'f mut Function) -> Self {
        Self {
            function,
            instructions: Vec::new(),
            line: 0,
            source: None,
        }
    }

    pub(super) fn finish(self) -> Vec<Instruction> {
        self.instructions
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        Error::new(&self.function.location_of(self.line), problem)
    }

    pub(super) fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }

    /// Gives the value that stands for `old` its name.
    pub(super) fn take_name(&mut self, old: LocalId, new: &Value) {
        if let Value::Local(new) = new
            && self.function.locals[new.0 as usize].name.is_none()
        {
            let name = self.function.locals[old.0 as usize].name.take();
            self.function.locals[new.0 as usize].name = name;
        }
    }

    /// An instruction that gives a value of type `ty`.
    pub(super) fn value(&mut self, ty: Type, operation: Operation) -> Value {
        let id = self.function.fresh(ty);
        self.instructions.push(Instruction {
            result: Some(id),
            operation,
            metadata: Vec::new(),
            source: self.source,
            line: self.line,
        });
        Value::Local(id)
    }

    /// An instruction without a value.
    pub(super) fn effect(&mut self, operation: Operation) {
        self.instructions.push(Instruction {
            result: None,
            operation,
            metadata: Vec::new(),
            source: self.source,
            line: self.line,
        });
    }

    pub(super) fn binary(
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
    pub(super) fn compare(
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

    pub(super) fn select(
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

    pub(super) fn cast(
        &mut self,
        operation: CastOperation,
        from: &Type,
        value: &Value,
        to: &Type,
    ) -> Value {
        self.value(
            to.clone(),
            Operation::Cast {
                operation,
                flags: Vec::new(),
                from: Operand::new(from.clone(), value.clone()),
                to: to.clone(),
            },
        )
    }

    /// A call of an intrinsic that gives a value.
    pub(super) fn intrinsic(
        &mut self,
        name: &str,
        result: &Type,
        arguments: &[(&Type, &Value)],
    ) -> Value {
        let call = intrinsic_call(name, result, arguments);
        self.value(result.clone(), call)
    }

    /// A call of an intrinsic that gives none.
    pub(super) fn intrinsic_effect(&mut self, name: &str, arguments: &[(&Type, &Value)]) {
        self.effect(intrinsic_call(name, &Type::Void, arguments));
    }
}

fn intrinsic_call(name: &str, result: &Type, arguments: &[(&Type, &Value)]) -> Operation {
    let ty = FunctionType {
        result: result.clone(),
        parameters: arguments.iter().map(|(ty, _)| (*ty).clone()).collect(),
    };
    let values = arguments
        .iter()
        .map(|(_, value)| (*value).clone())
        .collect();
    Operation::Call(Box::new(Call::plain(
        Callee::Symbol(name.into()),
        ty,
        values,
    )))
}

/// The float constant with these bits, in LLVM's notation: the bits of the `double` of the same
/// value.
pub(super) fn float_constant(value: f64) -> Value {
    Value::Constant(Constant::Float(
        format!("0x{:016X}", value.to_bits()).into(),
    ))
}
