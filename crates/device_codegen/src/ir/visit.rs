//! Lists of the operands of instructions and terminators, written once for all passes.

use std::collections::{BTreeMap, HashMap};

use super::{
    Attachments, BlockId, Call, Callee, Constant, Function, Instruction, LocalId, Module,
    Operation, Symbol, TerminatorKind, Type, Value,
};

/// The same list by shared and by exclusive reference.
macro_rules! operand_lists {
    ($name:ident $($mutable:ident)?) => {
        impl Operation {
            /// The values that it reads.
            pub(crate) fn $name(&$($mutable)? self) -> Vec<&$($mutable)? Value> {
                match self {
                    Operation::Binary { left, right, .. }
                    | Operation::Compare { left, right, .. } => vec![left, right],
                    Operation::FloatNegate { operand, .. } | Operation::Freeze(operand) => {
                        vec![&$($mutable)? operand.value]
                    }
                    Operation::Cast { from, .. } => vec![&$($mutable)? from.value],
                    Operation::Select { condition, then, otherwise, .. } => {
                        vec![&$($mutable)? condition.value, then, otherwise]
                    }
                    Operation::Phi { incoming, .. } => {
                        let mut values = Vec::with_capacity(incoming.len());
                        for (value, _) in incoming {
                            values.push(value);
                        }
                        values
                    }
                    Operation::Allocate { count, .. } => match count {
                        Some(count) => vec![&$($mutable)? count.value],
                        None => Vec::new(),
                    },
                    Operation::Load { pointer, .. } => vec![&$($mutable)? pointer.value],
                    Operation::Store { value, pointer, .. } => {
                        vec![&$($mutable)? value.value, &$($mutable)? pointer.value]
                    }
                    Operation::ElementPointer { base, indices, .. } => {
                        let mut values = vec![&$($mutable)? base.value];
                        for index in indices {
                            values.push(&$($mutable)? index.value);
                        }
                        values
                    }
                    Operation::Call(call) => {
                        let call = &$($mutable)? **call;
                        let mut values = Vec::with_capacity(call.arguments.len() + 1);
                        if let Callee::Pointer(pointer) = &$($mutable)? call.callee {
                            values.push(pointer);
                        }
                        for argument in &$($mutable)? call.arguments {
                            values.push(argument);
                        }
                        values
                    }
                    Operation::AtomicUpdate { pointer, operand, .. } => {
                        vec![&$($mutable)? pointer.value, &$($mutable)? operand.value]
                    }
                    Operation::CompareExchange { pointer, expected, replacement, .. } => vec![
                        &$($mutable)? pointer.value,
                        &$($mutable)? expected.value,
                        &$($mutable)? replacement.value,
                    ],
                    Operation::Fence { .. } => Vec::new(),
                    Operation::ExtractValue { aggregate, .. } => {
                        vec![&$($mutable)? aggregate.value]
                    }
                    Operation::InsertValue { aggregate, element, .. } => {
                        vec![&$($mutable)? aggregate.value, &$($mutable)? element.value]
                    }
                    Operation::ExtractElement { vector, index } => {
                        vec![&$($mutable)? vector.value, &$($mutable)? index.value]
                    }
                    Operation::InsertElement { vector, element, index } => vec![
                        &$($mutable)? vector.value,
                        &$($mutable)? element.value,
                        &$($mutable)? index.value,
                    ],
                    Operation::ShuffleVector { left, right, mask } => vec![
                        &$($mutable)? left.value,
                        &$($mutable)? right.value,
                        &$($mutable)? mask.value,
                    ],
                }
            }
        }

        impl TerminatorKind {
            /// The values that it reads.
            pub(crate) fn $name(&$($mutable)? self) -> Vec<&$($mutable)? Value> {
                match self {
                    TerminatorKind::Return(Some(operand)) => vec![&$($mutable)? operand.value],
                    TerminatorKind::ConditionalBranch { condition, .. } => vec![condition],
                    TerminatorKind::Switch { on, .. } => vec![&$($mutable)? on.value],
                    TerminatorKind::Return(None)
                    | TerminatorKind::Branch(_)
                    | TerminatorKind::Unreachable => Vec::new(),
                }
            }
        }
    };
}

operand_lists!(values);
operand_lists!(values_mut mut);

impl Operation {
    /// The call, if it is one.
    pub(crate) fn call(&self) -> Option<&Call> {
        match self {
            Operation::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The type of what it computes; [`Type::Void`] if nothing. `None` if its operands do not fit
    /// together.
    pub(crate) fn result_type(&self) -> Option<Type> {
        Some(match self {
            Operation::Binary { ty, .. }
            | Operation::Select { ty, .. }
            | Operation::Phi { ty, .. }
            | Operation::Load { ty, .. } => ty.clone(),
            Operation::Freeze(operand) | Operation::FloatNegate { operand, .. } => {
                operand.ty.clone()
            }
            Operation::Cast { to, .. } => to.clone(),
            Operation::Compare { ty, .. } => match ty {
                Type::Vector(count, _) => Type::Vector(*count, Type::BOOL.into()),
                _ => Type::BOOL,
            },
            Operation::Allocate { .. } => Type::GENERIC_POINTER,
            Operation::ElementPointer { base, .. } => base.ty.clone(),
            Operation::Call(call) => call.ty.result.clone(),
            Operation::AtomicUpdate { operand, .. } => operand.ty.clone(),
            Operation::CompareExchange { replacement, .. } => {
                Type::tuple([replacement.ty.clone(), Type::BOOL])
            }
            Operation::Store { .. } | Operation::Fence { .. } => Type::Void,
            Operation::ExtractValue { aggregate, indices } => {
                element_type(&aggregate.ty, indices)?.clone()
            }
            Operation::InsertValue { aggregate, .. } => aggregate.ty.clone(),
            Operation::InsertElement { vector, .. } => vector.ty.clone(),
            Operation::ExtractElement { vector, .. } => vector.ty.element(0)?.clone(),
            Operation::ShuffleVector { left, mask, .. } => match (&left.ty, &mask.ty) {
                (Type::Vector(_, element), Type::Vector(count, _)) => {
                    Type::Vector(*count, element.clone())
                }
                _ => return None,
            },
        })
    }
}

/// The symbols that values name, each with this line.
fn named(values: Vec<&Value>, line: u32) -> impl Iterator<Item = (&Symbol, u32)> {
    let symbols = values.into_iter().flat_map(|value| match value {
        Value::Constant(constant) => constant.symbols(),
        _ => Vec::new(),
    });
    symbols.map(move |symbol| (symbol, line))
}

/// The type at the end of a path of indices.
pub(crate) fn element_type<'t>(ty: &'t Type, indices: &[u64]) -> Option<&'t Type> {
    indices.iter().try_fold(ty, |ty, index| ty.element(*index))
}

impl Module {
    /// Calls `visit` on each constant and on those inside it, the innermost first, to be replaced;
    /// callees are not visited.
    pub(crate) fn visit_constants_mut(&mut self, visit: &mut dyn FnMut(&mut Constant)) {
        let globals = self.globals.values_mut();
        for initializer in globals.filter_map(|global| global.initializer.as_mut()) {
            initializer.walk_mut(visit);
        }
        for value in self.functions.values_mut().flat_map(Function::values_mut) {
            if let Value::Constant(constant) = value {
                constant.walk_mut(visit);
            }
        }
    }

    /// Renames symbols everywhere.
    pub(crate) fn rename(&mut self, names: &BTreeMap<Symbol, Symbol>) {
        if names.is_empty() {
            return;
        }
        let new_name = |symbol: &Symbol| names.get(symbol).unwrap_or(symbol).clone();
        self.visit_constants_mut(&mut |constant| {
            if let Constant::Symbol(symbol) = constant {
                *symbol = new_name(symbol);
            }
        });
        for instruction in self
            .functions
            .values_mut()
            .flat_map(Function::instructions_mut)
        {
            if let Operation::Call(call) = &mut instruction.operation
                && let Callee::Symbol(symbol) = &mut call.callee
            {
                *symbol = new_name(symbol);
            }
        }
        self.globals = std::mem::take(&mut self.globals)
            .into_iter()
            .map(|(symbol, global)| (new_name(&symbol), global))
            .collect();
        self.functions = std::mem::take(&mut self.functions)
            .into_iter()
            .map(|(symbol, function)| (new_name(&symbol), function))
            .collect();
    }
}

impl Function {
    /// All instructions, block by block.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.blocks.iter().flat_map(|block| &block.instructions)
    }

    pub(crate) fn instructions_mut(&mut self) -> impl Iterator<Item = &mut Instruction> {
        let blocks = self.blocks.iter_mut();
        blocks.flat_map(|block| &mut block.instructions)
    }

    /// The instruction that defines a value; `None` if it is a parameter.
    pub(crate) fn definition(&self, id: LocalId) -> Option<&Instruction> {
        self.instructions()
            .find(|instruction| instruction.result == Some(id))
    }

    /// All calls of symbols.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&Instruction, &Call, &Symbol)> {
        self.instructions().filter_map(|instruction| {
            let call = instruction.operation.call()?;
            Some((instruction, call, call.symbol()?))
        })
    }

    /// What instructions and terminators read.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Value> {
        self.blocks.iter().flat_map(|block| {
            let instructions = block.instructions.iter();
            let values = instructions.flat_map(|instruction| instruction.operation.values());
            values.chain(block.terminator.kind.values())
        })
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.blocks.iter_mut().flat_map(|block| {
            let instructions = block.instructions.iter_mut();
            let values = instructions.flat_map(|instruction| instruction.operation.values_mut());
            values.chain(block.terminator.kind.values_mut())
        })
    }

    /// Metadata, source and line of instructions and terminators.
    pub(crate) fn attachments(&self) -> impl Iterator<Item = (&Attachments, Option<u32>, u32)> {
        self.blocks.iter().flat_map(|block| {
            let last = &block.terminator;
            let instructions = block.instructions.iter();
            instructions
                .map(|it| (&it.metadata, it.source, it.line))
                .chain([(&last.metadata, last.source, last.line)])
        })
    }

    /// Metadata and source of each.
    pub(crate) fn attachments_mut(
        &mut self,
    ) -> impl Iterator<Item = (&mut Attachments, &mut Option<u32>)> {
        self.blocks.iter_mut().flat_map(|block| {
            let last = &mut block.terminator;
            let instructions = block.instructions.iter_mut();
            let of_instructions = instructions.map(|it| (&mut it.metadata, &mut it.source));
            of_instructions.chain([(&mut last.metadata, &mut last.source)])
        })
    }

    /// The symbols that it names, each with the line that names it.
    pub(crate) fn symbols(&self) -> Vec<(&Symbol, u32)> {
        let mut symbols = Vec::new();
        for block in &self.blocks {
            for Instruction {
                operation, line, ..
            } in &block.instructions
            {
                let called = operation.call().and_then(Call::symbol);
                symbols.extend(called.map(|symbol| (symbol, *line)));
                symbols.extend(named(operation.values(), *line));
            }
            symbols.extend(named(block.terminator.kind.values(), block.terminator.line));
        }
        symbols
    }

    /// Replaces each use of a local value by its substitute. A substitute may itself have one.
    pub(crate) fn substitute(&mut self, substitutes: &[(LocalId, Value)]) {
        if substitutes.is_empty() {
            return;
        }
        let table: HashMap<LocalId, &Value> =
            substitutes.iter().map(|(id, value)| (*id, value)).collect();
        // A value in terms of itself, which only unreachable code can hold, stops at the bound.
        let resolve = |mut id: LocalId| {
            let mut found = None;
            for _ in 0..=table.len() {
                match table.get(&id) {
                    Some(Value::Local(next)) => {
                        found = Some(Value::Local(*next));
                        id = *next;
                    }
                    Some(other) => return Some((*other).clone()),
                    None => break,
                }
            }
            found
        };
        for value in self.values_mut() {
            if let Value::Local(id) = value
                && let Some(other) = resolve(*id)
            {
                *value = other;
            }
        }
    }
}

impl TerminatorKind {
    /// The blocks that it may go to, in order, with repetitions.
    pub(crate) fn successors(&self) -> Vec<BlockId> {
        match self {
            TerminatorKind::Return(_) | TerminatorKind::Unreachable => Vec::new(),
            TerminatorKind::Branch(target) => vec![*target],
            TerminatorKind::ConditionalBranch {
                then, otherwise, ..
            } => vec![*then, *otherwise],
            TerminatorKind::Switch { default, cases, .. } => std::iter::once(*default)
                .chain(cases.iter().map(|(_, target)| *target))
                .collect(),
        }
    }
}
