//! A thread while it runs, or waits for others.

use std::collections::HashMap;

use anyhow::{Result, bail};

use super::parse::{Function, Instruction, Operand};

/// A thread that waits for others at an instruction.
pub(super) struct Waiting<'m> {
    pub(super) thread: u32,
    pub(super) frames: Vec<Frame<'m>>,
    pub(super) stack: Vec<u8>,
    pub(super) instruction: &'m Instruction,
    /// Of the operands that it reads.
    pub(super) values: Vec<u64>,
}

pub(super) struct Frame<'f> {
    pub(super) function: &'f Function,
    pub(super) registers: Vec<u64>,
    pub(super) variables: HashMap<&'f str, u64>,
    /// The number of the next instruction.
    pub(super) at: usize,
    /// The end of the frame, where that of a called function begins.
    pub(super) top: u64,
    /// Where its result goes.
    pub(super) result: Option<u64>,
    pub(super) steps: u64,
}

/// Writes a register, cut to its width; `_` takes anything.
pub(super) fn set(frame: &mut Frame<'_>, target: &Operand, value: u64) -> Result<()> {
    match target {
        Operand::Register(register) => {
            let width = frame.function.widths[*register];
            frame.registers[*register] = value & (u64::MAX >> (64 - width));
            Ok(())
        }
        Operand::Name(name) if name == "_" => Ok(()),
        _ => bail!("a target that is no register"),
    }
}
