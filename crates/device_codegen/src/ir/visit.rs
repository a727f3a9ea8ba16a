//! Lists of the operands of instructions and terminators, written once for all passes.

use std::collections::{BTreeMap, HashMap};

use super::{
    BlockId, Callee, Constant, Function, LocalId, Module, Operation, Symbol, TerminatorKind, Type,
    Value,
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

/// The type at the end of a path of indices.
pub(crate) fn element_type<'t>(ty: &'t Type, indices: &[u64]) -> Option<&'t Type> {
    indices.iter().try_fold(ty, |ty, index| ty.element(*index))
}

/// Calls `visit` on each symbol that a function names, with the line that names it.
pub(crate) fn visit_symbols<'f>(function: &'f Function, visit: &mut dyn FnMut(&'f Symbol, u32)) {
    for block in &function.blocks {
        for instruction in &block.instructions {
            if let Operation::Call(call) = &instruction.operation
                && let Some(symbol) = call.symbol()
            {
                visit(symbol, instruction.line);
            }
            for value in instruction.operation.values() {
                value_symbols(value, instruction.line, visit);
            }
        }
        for value in block.terminator.kind.values() {
            value_symbols(value, block.terminator.line, visit);
        }
    }
}

fn value_symbols<'f>(value: &'f Value, line: u32, visit: &mut dyn FnMut(&'f Symbol, u32)) {
    if let Value::Constant(constant) = value {
        constant.walk(&mut |constant| {
            if let Constant::Symbol(symbol) = constant {
                visit(symbol, line);
            }
        });
    }
}

/// Calls `visit` on each constant operand of a function, to be replaced; callees are not visited.
pub(crate) fn visit_constants_mut(function: &mut Function, visit: &mut dyn FnMut(&mut Constant)) {
    for block in &mut function.blocks {
        let instructions = block
            .instructions
            .iter_mut()
            .flat_map(|instruction| instruction.operation.values_mut());
        for value in instructions.chain(block.terminator.kind.values_mut()) {
            if let Value::Constant(constant) = value {
                visit(constant);
            }
        }
    }
}

impl Module {
    /// Renames symbols everywhere.
    pub(crate) fn rename(&mut self, names: &BTreeMap<Symbol, Symbol>) {
        if names.is_empty() {
            return;
        }
        let new_name = |symbol: &Symbol| names.get(symbol).unwrap_or(symbol).clone();
        let mut rename = |constant: &mut Constant| {
            constant.walk_mut(&mut |constant| {
                if let Constant::Symbol(symbol) = constant {
                    *symbol = new_name(symbol);
                }
            });
        };
        for global in self.globals.values_mut() {
            if let Some(initializer) = &mut global.initializer {
                rename(initializer);
            }
        }
        for function in self.functions.values_mut() {
            visit_constants_mut(function, &mut rename);
            for block in &mut function.blocks {
                for instruction in &mut block.instructions {
                    if let Operation::Call(call) = &mut instruction.operation
                        && let Callee::Symbol(symbol) = &mut call.callee
                    {
                        *symbol = new_name(symbol);
                    }
                }
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
        for block in &mut self.blocks {
            let operands = block
                .instructions
                .iter_mut()
                .flat_map(|instruction| instruction.operation.values_mut());
            for value in operands.chain(block.terminator.kind.values_mut()) {
                if let Value::Local(id) = value
                    && let Some(other) = resolve(*id)
                {
                    *value = other;
                }
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
