//! What the threads of a warp or a block do together: votes, shuffles, reductions, barriers.
//!
//! A whole warp or block must wait at the same instruction, as the generated functions do.

use anyhow::{Context, Result, bail, ensure};

use super::parse::{Instruction, Operand};
use super::thread::{Frame, Waiting, set};
use super::value::{Kind, Type};

pub(super) const OPCODES: [&str; 6] = ["bar", "barrier", "vote", "match", "redux", "shfl"];

/// A result, and the predicate beside it.
type Answer = (u64, bool);

/// Whether it has no result.
fn only_waits(instruction: &Instruction) -> bool {
    instruction.has("sync") && matches!(instruction.opcode[0].as_str(), "bar" | "barrier")
}

/// The operands that are read.
pub(super) fn read_operands<'o>(
    instruction: &Instruction,
    first: &'o Operand,
    rest: &'o [Operand],
) -> Vec<&'o Operand> {
    let first = only_waits(instruction).then_some(first);
    first.into_iter().chain(rest).collect()
}

/// Writes a thread's result to its registers.
pub(super) fn receive(
    frame: &mut Frame<'_>,
    instruction: &Instruction,
    (value, predicate): Answer,
) -> Result<()> {
    match instruction.operands.first() {
        _ if only_waits(instruction) => Ok(()),
        Some(Operand::Pair(target, second)) => {
            set(frame, target, value)?;
            set(frame, second, predicate.into())
        }
        Some(target) => set(frame, target, value),
        None => bail!("no target"),
    }
}

/// The results of the threads for which no other is missing.
pub(super) fn results(waiting: &[Waiting<'_>], threads: u32) -> Result<Vec<(u32, Answer)>> {
    let mut found = Vec::new();
    for warp in waiting.chunk_by(|left, right| left.thread / 32 == right.thread / 32) {
        if !warp[0].instruction.opcode[0].starts_with("bar") || warp[0].instruction.has("warp") {
            found.extend(of_group(warp, 32)?);
        }
    }
    match found.is_empty() {
        true => of_group(waiting, threads),
        false => Ok(found),
    }
}

fn of_group(group: &[Waiting<'_>], threads: u32) -> Result<Vec<(u32, Answer)>> {
    let instruction = group[0].instruction;
    let is_same = |other: &Waiting<'_>| std::ptr::eq(other.instruction, instruction);
    ensure!(
        group.len() == threads as usize && group.iter().all(is_same),
        "not all threads wait at `{}`",
        instruction.text
    );
    let values: Vec<&[u64]> = group.iter().map(|one| one.values.as_slice()).collect();
    let answer = |one: &Waiting<'_>| -> Result<(u32, Answer)> {
        let own = (one.thread - group[0].thread) as usize;
        let answer = answer(instruction, &values, own);
        Ok((
            one.thread,
            answer.with_context(|| format!("at `{}`", instruction.text))?,
        ))
    };
    group.iter().map(answer).collect()
}

/// What the thread of this number in its group gets.
fn answer(instruction: &Instruction, values: &[&[u64]], own: usize) -> Result<Answer> {
    let opcode = instruction.opcode[0].as_str();
    let mine = values[own];
    if opcode.starts_with("bar") {
        if !instruction.has("warp") {
            ensure!(mine.first() == Some(&0), "a barrier with a number");
        }
        if only_waits(instruction) {
            return Ok((0, false));
        }
    } else {
        let mask = mine.last().map(|mask| mask & 0xffff_ffff);
        ensure!(mask == Some(0xffff_ffff), "a part of a warp");
    }
    let mask = |is_in: &dyn Fn(&[u64]) -> bool| -> u64 {
        let lanes = (0..).zip(values);
        lanes.map(|(lane, one)| u64::from(is_in(one)) << lane).sum()
    };
    // A predicate, behind the number of a barrier.
    let behind = usize::from(opcode.starts_with("bar"));
    let count = values.iter().filter(|one| one[behind] != 0).count();
    let (any, all) = (count > 0, count == values.len());
    Ok(match (opcode, mine) {
        ("vote", _) if instruction.has("ballot") => (mask(&|one| one[0] != 0), false),
        ("bar" | "barrier", _) if instruction.has("popc") => (count as u64, false),
        ("vote", _) if instruction.has("any") => (any.into(), false),
        ("vote", _) if instruction.has("all") => (all.into(), false),
        ("bar" | "barrier", _) if instruction.has("or") => (any.into(), false),
        ("bar" | "barrier", _) if instruction.has("and") => (all.into(), false),
        ("match", [value, _]) => match (mask(&|one| one[0] == *value), instruction.has("all")) {
            (mask, false) => (mask, false),
            (0xffff_ffff, true) => (0xffff_ffff, true),
            (_, true) => (0, false),
        },
        ("redux", _) => {
            let ty = Type::of(&instruction.opcode)?;
            (combined(instruction, ty, values)?, false)
        }
        ("shfl", [_, argument, segments, _]) => {
            let lane = own as u64;
            let (argument, bits) = (argument & 31, segments >> 8 & 31);
            let (first, last) = (lane & bits, lane & bits | segments & 31 & !bits);
            let (source, is_read) = match instruction.opcode.get(2).map(String::as_str) {
                Some("up") => (lane.wrapping_sub(argument), lane >= last + argument),
                Some("down") => (lane + argument, lane + argument <= last),
                Some("bfly") => (lane ^ argument, lane ^ argument <= last),
                Some("idx") => (first | argument & !bits, first | argument & !bits <= last),
                _ => bail!("a shuffle that is not known"),
            };
            let source = if is_read { source as usize } else { own };
            (values[source][0], is_read)
        }
        _ => bail!("the instruction is not known"),
    })
}

fn combined(instruction: &Instruction, ty: Type, values: &[&[u64]]) -> Result<u64> {
    ensure!(ty.kind != Kind::Float, "floats");
    let numbers = values.iter().map(|one| ty.number(one[0]));
    let result = match instruction.opcode.get(2).map(String::as_str) {
        Some("add") => Some(numbers.sum()),
        Some("min") => numbers.min(),
        Some("max") => numbers.max(),
        Some("and") => numbers.reduce(|left, right| left & right),
        Some("or") => numbers.reduce(|left, right| left | right),
        Some("xor") => numbers.reduce(|left, right| left ^ right),
        _ => bail!("a reduction that is not known"),
    };
    Ok(result.unwrap_or(0_i128) as u64)
}
