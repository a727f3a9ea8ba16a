//! Rounding of an f32 to a bf16, which the crate `half` does with integers, becomes one instruction.
//!
//! ```text
//!   is x a NaN?
//!     |      '-- no: do bits 0 to 16 round it up?
//!     |                 |              '-- no ------.
//!     v                 v                           v
//!   x >> 16 | 64     (x >> 16) + 1               x >> 16
//!     '-----------------+---------------------------'
//!                       v
//!                      phi                        ->       cvt.rn.bf16.f32 phi, x
//! ```
//!
//! That is what rustc's passes make of `half::bf16::from_f32`. What differs from it in any way stays
//! as it is. The results are the same but for NaN, which becomes 0x7fff.

use crate::ir::{
    Attribute, BlockId, Call, Callee, CastOperation, Function, FunctionType, InlineAssembly,
    Instruction, LocalId, Module, Operand, Operation, TerminatorKind, Type, Value,
};

const I16: Type = Type::Integer(16);
const I32: Type = Type::Integer(32);

/// A rounding, by the blocks that it takes.
struct Rounding {
    /// Ends in the question whether the number is a NaN.
    begin: BlockId,
    question: BlockId,
    /// For a NaN, rounded up, rounded down.
    results: [BlockId; 3],
    end: BlockId,
    /// An f32, or its bits.
    number: Operand,
}

/// Replaces all roundings of the module.
pub(crate) fn round_by_hardware(module: &mut Module) {
    for function in module.functions.values_mut() {
        let reader = Reader::of(function);
        let blocks = (0..function.blocks.len() as u32).map(BlockId);
        let roundings: Vec<Rounding> = blocks.filter_map(|begin| reader.rounding(begin)).collect();
        for rounding in roundings {
            replace(function, &rounding);
        }
    }
}

fn replace(function: &mut Function, rounding: &Rounding) {
    let rounded = Value::Local(function.fresh(I16));
    let wide = Value::Local(function.fresh(I32));
    let bits = function.fresh(Type::Float);
    let is_result = |block: &BlockId| rounding.results.contains(block);
    for instruction in &mut function.blocks[rounding.end.0 as usize].instructions {
        let Operation::Phi { ty, incoming, .. } = &mut instruction.operation else {
            break;
        };
        let rounded = if *ty == I16 { &rounded } else { &wide };
        let mut values = incoming.iter().filter(|(_, from)| is_result(from));
        let first = values.next().map(|(value, _)| value.clone());
        let is_one = values.all(|(value, _)| Some(value) == first.as_ref());
        incoming.retain(|(_, from)| !is_result(from));
        let value = first.filter(|_| is_one).unwrap_or(rounded.clone());
        incoming.push((value, rounding.begin));
    }
    for block in [rounding.question].iter().chain(&rounding.results) {
        let block = &mut function.blocks[block.0 as usize];
        block.instructions.clear();
        block.terminator.kind = TerminatorKind::Unreachable;
        block.terminator.metadata.clear();
    }
    let begin = &mut function.blocks[rounding.begin.0 as usize];
    begin.terminator.kind = TerminatorKind::Branch(rounding.end);
    begin.terminator.metadata.clear();
    let mut push = |result: &Value, operation| {
        let Value::Local(result) = result else { return };
        let end = &begin.terminator;
        let instruction = Instruction::new(Some(*result), operation, end.source, end.line);
        begin.instructions.push(instruction);
    };
    let mut number = rounding.number.value.clone();
    if rounding.number.ty != Type::Float {
        number = Value::Local(bits);
        let bits = rounding.number.clone();
        push(
            &number,
            Operation::cast(CastOperation::Bitcast, bits, Type::Float),
        );
    }
    let assembly = InlineAssembly {
        side_effect: false,
        text: b"cvt.rn.bf16.f32 $0, $1;".to_vec(),
        constraints: "=h,f".to_owned(),
    };
    let ty = FunctionType {
        result: I16,
        parameters: vec![Type::Float],
    };
    let mut call = Call::plain(Callee::Assembly(assembly), ty, vec![number]);
    call.attributes = ["nounwind", "readnone"].map(Attribute::flag).to_vec();
    push(&rounded, Operation::Call(Box::new(call)));
    let narrow = Operand::new(I16, rounded);
    push(
        &wide,
        Operation::cast(CastOperation::ZeroExtend, narrow, I32),
    );
}

/// Finds what a value is computed from.
struct Reader<'f> {
    function: &'f Function,
    definitions: Vec<Option<&'f Operation>>,
    /// How many blocks branch to each.
    entries: Vec<u32>,
}

impl<'f> Reader<'f> {
    fn of(function: &'f Function) -> Self {
        let mut definitions = vec![None; function.locals.len()];
        let mut entries = vec![0; function.blocks.len()];
        for instruction in function.instructions() {
            if let Some(LocalId(id)) = instruction.result {
                definitions[id as usize] = Some(&instruction.operation);
            }
        }
        for block in &function.blocks {
            for BlockId(next) in block.terminator.kind.successors() {
                entries[next as usize] += 1;
            }
        }
        Self {
            function,
            definitions,
            entries,
        }
    }

    /// The rounding that begins where this block ends.
    fn rounding(&self, begin: BlockId) -> Option<Rounding> {
        let (is_nan, nan, question) = self.condition(begin)?;
        let (rounds_down, down, up) = self.condition(question)?;
        let Operation::Binary {
            operation,
            left,
            right,
            ..
        } = self.definition(rounds_down)?
        else {
            return None;
        };
        let is_even = self.zero_bits_of(left, 0x8000)?;
        let is_near = self.zero_bits_of(right, 0x1_7fff)?;
        let results = [nan, up, down];
        let mut numbers = self.tested_for_nan(is_nan)?.into_iter().flatten();
        let number = numbers.find(|number| self.is(is_even, number))?;
        let is_number = |value| self.is(value, &number);
        if operation != "or" || !is_number(is_near) {
            return None;
        }
        let inner = [question, nan, up, down];
        let end = self.branch(nan)?;
        let all_end_there = results.iter().all(|block| self.branch(*block) == Some(end));
        let are_apart = inner.iter().all(|block| {
            let is_plain = |instruction: &Instruction| {
                matches!(
                    instruction.operation,
                    Operation::Binary { .. } | Operation::Cast { .. } | Operation::Compare { .. }
                )
            };
            self.entries[block.0 as usize] == 1
                && self.block(*block).instructions.iter().all(is_plain)
        });
        let phis = self.block(end).instructions.iter();
        let mut phis = phis.map_while(|instruction| match &instruction.operation {
            Operation::Phi { incoming, .. } => Some(incoming),
            _ => None,
        });
        let of_all = phis.all(|incoming| {
            let from = |block| incoming.iter().find(|(_, from)| *from == block);
            let Some([nan, up, down]) = (|| Some([&from(nan)?.0, &from(up)?.0, &from(down)?.0]))()
            else {
                return false;
            };
            let high = |value| self.high_of(value).is_some_and(is_number);
            let is_rounded = || {
                let (nan, up) = (self.binary(nan, "or", 64)?, self.binary(up, "add", 1)?);
                Some(high(nan) && high(up) && high(down))
            };
            (nan == up && up == down) || is_rounded() == Some(true)
        });
        (all_end_there && are_apart && of_all).then_some(Rounding {
            begin,
            question,
            results,
            end,
            number,
        })
    }

    fn block(&self, block: BlockId) -> &'f crate::ir::Block {
        &self.function.blocks[block.0 as usize]
    }

    fn definition(&self, value: &Value) -> Option<&'f Operation> {
        match value {
            Value::Local(id) => self.definitions[id.0 as usize],
            _ => None,
        }
    }

    fn condition(&self, block: BlockId) -> Option<(&'f Value, BlockId, BlockId)> {
        match &self.block(block).terminator.kind {
            TerminatorKind::ConditionalBranch {
                condition,
                then,
                otherwise,
            } => Some((condition, *then, *otherwise)),
            _ => None,
        }
    }

    fn branch(&self, block: BlockId) -> Option<BlockId> {
        match self.block(block).terminator.kind {
            TerminatorKind::Branch(next) => Some(next),
            _ => None,
        }
    }

    /// The left operand of `operation`, whose right one is this number.
    fn binary(&self, value: &Value, name: &str, number: i128) -> Option<&'f Value> {
        match self.definition(value)? {
            Operation::Binary {
                operation,
                left,
                right,
                ..
            } if operation == name && right.as_integer() == Some(number) => Some(left),
            _ => None,
        }
    }

    /// The left operand of a comparison of 32-bit integers with this number, and whether that has
    /// its sign.
    fn compared(&self, value: &Value, with: &str, number: i128) -> Option<(&'f Value, bool)> {
        match self.definition(value)? {
            Operation::Compare {
                float: false,
                flags,
                predicate,
                ty,
                left,
                right,
            } if predicate == with && *ty == I32 && right.as_integer() == Some(number) => {
                Some((left, flags.iter().any(|flag| flag == "samesign")))
            }
            _ => None,
        }
    }

    fn cast(&self, value: &Value, name: CastOperation) -> Option<&'f Operand> {
        match self.definition(value)? {
            Operation::Cast {
                operation, from, ..
            } if *operation == name => Some(from),
            _ => None,
        }
    }

    /// The numbers of which a comparison may ask whether they are NaN: `and x, 0x7fffffff` is
    /// compared with infinity, or the bits of `fabs x`, or those of what has no sign.
    fn tested_for_nan(&self, condition: &Value) -> Option<[Option<Operand>; 3]> {
        let (magnitude, has_no_sign) = self.compared(condition, "ugt", 0x7f80_0000)?;
        let bits = self.binary(magnitude, "and", 0x7fff_ffff);
        let absolute = self.cast(magnitude, CastOperation::Bitcast);
        let absolute = absolute.and_then(|float| match self.definition(&float.value)? {
            Operation::Call(call) if call.symbol()?.as_ref() == "llvm.fabs.f32" => {
                call.arguments.first()
            }
            _ => None,
        });
        let operand = |ty| move |value: &Value| Operand::new(ty, value.clone());
        Some([
            bits.map(operand(I32)),
            absolute.map(operand(Type::Float)),
            has_no_sign.then_some(magnitude).map(operand(I32)),
        ])
    }

    /// The value whose bits in the mask a comparison finds to be zero.
    fn zero_bits_of(&self, condition: &Value, mask: i128) -> Option<&'f Value> {
        self.binary(self.compared(condition, "eq", 0)?.0, "and", mask)
    }

    /// The value whose bits 16 to 31 this is, as 16 bits or extended to 32.
    fn high_of(&self, value: &Value) -> Option<&'f Value> {
        match self.definition(value)? {
            Operation::Cast {
                operation: CastOperation::Truncate,
                from,
                to: I16,
                ..
            } => self.binary(&from.value, "lshr", 16),
            Operation::Binary { ty: I32, .. } => self.binary(value, "lshr", 16),
            _ => None,
        }
    }

    /// Whether the value is this number, or its bits are, or the number is its lower 32 bits.
    fn is(&self, value: &Value, number: &Operand) -> bool {
        let bits = self.cast(value, CastOperation::Bitcast);
        let wide = self.cast(&number.value, CastOperation::Truncate);
        *value == number.value
            || bits == Some(number)
            || wide.is_some_and(|wide| wide.value == *value)
    }
}
