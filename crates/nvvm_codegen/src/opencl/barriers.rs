//! Barriers on every way or on none.
//!
//! All work-items of a group reach a barrier, or none does; so the branch that decides it goes the
//! same way for all. PoCL 3.1 miscompiles what follows if only one of the two ways has a barrier
//! and a work-item may return behind it:
//!
//! ```text
//!     if (groups == 0) {          a barrier here, too, changes nothing but that
//!         sum = 7;
//!     } else {
//!         barrier(..);
//!         if (local_id >= 4) return;
//!         sum = ...;
//!     }
//!     out[..] = sum;
//! ```
//!
//! So the other way of such a branch gets a barrier, unless it only reports a panic. For the same
//! reason a kernel that may panic, and end there, has a barrier where it returns: all work-items
//! that have not panicked reach it.

use std::collections::BTreeSet;

use crate::ir::{Function, Instruction, Operation, TerminatorKind};
use crate::loops::{self, Dominators};
use crate::panics;

/// OpenCL C's name of a block's barrier is another file's; this is the IR's.
pub(super) const BARRIER: &str = "llvm.nvvm.barrier0";

/// The edges, from block to block, that get a barrier.
pub(super) fn added(function: &Function) -> BTreeSet<(usize, usize)> {
    let mut edges = BTreeSet::new();
    let order = loops::reverse_postorder(function);
    let mut has_barrier: Vec<bool> = function
        .blocks
        .iter()
        .map(|block| block.instructions.iter().any(|it| calls(it, &[BARRIER])))
        .collect();
    if !has_barrier.contains(&true) {
        return edges;
    }
    let mut predecessors = vec![0_u32; function.blocks.len()];
    for block in &order {
        for to in function.blocks[*block].terminator.kind.successors() {
            predecessors[to.0 as usize] += 1;
        }
    }
    // Whether a block or one that it dominates has a barrier, from the leaves of the tree on.
    let dominators = Dominators::of_function(function);
    for block in order.iter().rev() {
        if has_barrier[*block]
            && let Some(parent) = dominators.immediate(*block)
        {
            has_barrier[parent] = true;
        }
    }
    for block in &order {
        let TerminatorKind::ConditionalBranch {
            then, otherwise, ..
        } = &function.blocks[*block].terminator.kind
        else {
            continue;
        };
        let arms = [then.0 as usize, otherwise.0 as usize];
        // What several ways lead to is not the branch's own.
        let has_own = arms.map(|arm| predecessors[arm] == 1 && has_barrier[arm]);
        let other = match has_own {
            [true, false] => arms[1],
            [false, true] => arms[0],
            _ => continue,
        };
        if !panics(function, other) {
            edges.insert((*block, other));
        }
    }
    edges
}

/// The block before whose return there must be a barrier.
pub(super) fn at_return(function: &Function) -> Option<usize> {
    let blocks = || function.blocks.iter().enumerate();
    let instructions = || blocks().flat_map(|(_, block)| &block.instructions);
    let has_barrier = instructions().any(|it| calls(it, &[BARRIER]));
    let may_panic =
        blocks().any(|(_, it)| matches!(it.terminator.kind, TerminatorKind::Unreachable));
    let mut returns = blocks()
        .filter(|(_, block)| matches!(block.terminator.kind, TerminatorKind::Return(_)))
        .map(|(index, _)| index);
    // Of several, not all work-items need take the same.
    match (returns.next(), returns.next()) {
        (Some(only), None) if has_barrier && may_panic && function.kernel.is_some() => Some(only),
        _ => None,
    }
}

/// Whether a block does nothing but to report a panic.
fn panics(function: &Function, mut block: usize) -> bool {
    for _ in 0..function.blocks.len() {
        let of_block = &function.blocks[block];
        if of_block
            .instructions
            .iter()
            .any(|it| calls(it, &[panics::PANIC, panics::TRAP]))
        {
            return true;
        }
        match of_block.terminator.kind {
            TerminatorKind::Branch(next) => block = next.0 as usize,
            TerminatorKind::Unreachable => return true,
            _ => return false,
        }
    }
    false
}

fn calls(instruction: &Instruction, names: &[&str]) -> bool {
    match &instruction.operation {
        Operation::Call(call) => call
            .symbol()
            .is_some_and(|symbol| names.contains(&&**symbol)),
        _ => false,
    }
}
