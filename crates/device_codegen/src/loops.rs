//! Dominators and natural loops of a function.

use std::collections::BTreeSet;

use crate::ir::{BlockId, Function};

/// A loop with one entry: every way into it goes through the header.
pub(crate) struct NaturalLoop {
    pub(crate) header: BlockId,
    /// The blocks that jump back to the header.
    pub(crate) latches: BTreeSet<BlockId>,
    pub(crate) blocks: BTreeSet<BlockId>,
}

/// The blocks that jump to each block.
pub(crate) fn predecessors(function: &Function) -> Vec<Vec<usize>> {
    let mut predecessors = vec![Vec::new(); function.blocks.len()];
    for (index, block) in function.blocks.iter().enumerate() {
        for successor in block.terminator.kind.successors() {
            predecessors[successor.0 as usize].push(index);
        }
    }
    predecessors
}

/// The ways that a thread can take through a function.
pub(crate) struct Ways {
    successors: Vec<Vec<usize>>,
    loops: Vec<NaturalLoop>,
    /// Position in reverse postorder; the last for blocks that are not reached.
    order: Vec<usize>,
}

impl Ways {
    pub(crate) fn of(function: &Function) -> Self {
        let mut order = vec![usize::MAX; function.blocks.len()];
        for (position, block) in reverse_postorder(function).into_iter().enumerate() {
            order[block] = position;
        }
        let successors = function.blocks.iter().map(|block| {
            let targets = block.terminator.kind.successors().into_iter();
            targets.map(|target| target.0 as usize).collect()
        });
        Self {
            successors: successors.collect(),
            loops: natural_loops(function),
            order,
        }
    }

    /// Sorts by the place of a block in reverse postorder.
    pub(crate) fn sort_by_order<T>(&self, items: &mut [T], block: impl Fn(&T) -> usize) {
        items.sort_by_key(|item| self.order[block(item)]);
    }

    /// Whether a way leads from a block to another, or they are the same, within one iteration of
    /// each loop that contains both.
    pub(crate) fn lead(&self, from: usize, to: usize) -> bool {
        let contains = |it: &NaturalLoop, block: usize| it.blocks.contains(&BlockId(block as u32));
        let around: Vec<&NaturalLoop> = self
            .loops
            .iter()
            .filter(|it| contains(it, from) && contains(it, to))
            .collect();
        let begins_again = |block: usize, next: usize| {
            around.iter().any(|it| {
                it.header == BlockId(next as u32) && it.latches.contains(&BlockId(block as u32))
            })
        };
        let mut seen = BTreeSet::from([from]);
        let mut waiting = vec![from];
        while let Some(block) = waiting.pop() {
            if block == to {
                return true;
            }
            for &next in &self.successors[block] {
                if !begins_again(block, next) && seen.insert(next) {
                    waiting.push(next);
                }
            }
        }
        false
    }
}

/// The loops of a function, one a header.
pub(crate) fn natural_loops(function: &Function) -> Vec<NaturalLoop> {
    let count = function.blocks.len();
    let predecessors = predecessors(function);
    let dominators = Dominators::of(function, &predecessors);
    let mut loops = Vec::new();
    for header in 0..count {
        let latches: Vec<usize> = predecessors[header]
            .iter()
            .copied()
            .filter(|latch| dominators.dominates(header, *latch))
            .collect();
        if latches.is_empty() {
            continue;
        }
        let mut blocks = BTreeSet::from([header]);
        let mut waiting = latches.clone();
        while let Some(block) = waiting.pop() {
            if blocks.insert(block) {
                waiting.extend(&predecessors[block]);
            }
        }
        let ids = |blocks: &mut dyn Iterator<Item = usize>| {
            blocks.map(|block| BlockId(block as u32)).collect()
        };
        loops.push(NaturalLoop {
            header: BlockId(header as u32),
            latches: ids(&mut latches.into_iter()),
            blocks: ids(&mut blocks.into_iter()),
        });
    }
    loops
}

/// The tree of immediate dominators, by the iteration of Cooper, Harvey and Kennedy ("A Simple,
/// Fast Dominance Algorithm", 2001).
pub(crate) struct Dominators {
    /// Position in reverse postorder; `None` for blocks that are not reached.
    order: Vec<Option<usize>>,
    immediate: Vec<Option<usize>>,
}

impl Dominators {
    pub(crate) fn of_function(function: &Function) -> Self {
        Self::of(function, &predecessors(function))
    }

    /// The parent of a block in the tree: the nearest other block that dominates it. `None` for the
    /// entry, and for what is not reached.
    pub(crate) fn immediate(&self, block: usize) -> Option<usize> {
        self.immediate[block].filter(|parent| *parent != block)
    }

    pub(crate) fn of(function: &Function, predecessors: &[Vec<usize>]) -> Self {
        let reverse_postorder = reverse_postorder(function);
        let mut order = vec![None; function.blocks.len()];
        for (position, block) in reverse_postorder.iter().enumerate() {
            order[*block] = Some(position);
        }
        let mut dominators = Self {
            order,
            immediate: vec![None; function.blocks.len()],
        };
        if let Some(entry) = dominators.immediate.first_mut() {
            *entry = Some(0);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &block in reverse_postorder.iter().skip(1) {
                let new = predecessors[block]
                    .iter()
                    .copied()
                    .filter(|from| dominators.immediate[*from].is_some())
                    .reduce(|left, right| dominators.common(left, right));
                if new.is_some() && dominators.immediate[block] != new {
                    dominators.immediate[block] = new;
                    changed = true;
                }
            }
        }
        dominators
    }

    /// The nearest block that dominates both.
    fn common(&self, mut left: usize, mut right: usize) -> usize {
        while left != right {
            let lower = if self.order[left] > self.order[right] {
                &mut left
            } else {
                &mut right
            };
            match self.immediate[*lower] {
                Some(parent) if parent != *lower => *lower = parent,
                _ => return 0,
            }
        }
        left
    }

    pub(crate) fn is_reached(&self, block: usize) -> bool {
        self.order[block].is_some()
    }

    /// Whether every way from the entry to `block` goes through `dominator`.
    pub(crate) fn dominates(&self, dominator: usize, mut block: usize) -> bool {
        if !self.is_reached(block) {
            return false;
        }
        loop {
            if block == dominator {
                return true;
            }
            match self.immediate[block] {
                Some(parent) if parent != block => block = parent,
                _ => return false,
            }
        }
    }
}

/// The blocks that are reached, each before its successors but for jumps back.
pub(crate) fn reverse_postorder(function: &Function) -> Vec<usize> {
    let successors = |block: usize| -> Vec<usize> {
        let kind = &function.blocks[block].terminator.kind;
        kind.successors().iter().map(|id| id.0 as usize).collect()
    };
    let mut seen = vec![false; function.blocks.len()];
    let mut postorder = Vec::new();
    let mut stack = Vec::new();
    if let Some(entry) = seen.first_mut() {
        *entry = true;
        stack.push((0, successors(0)));
    }
    while let Some((block, waiting)) = stack.last_mut() {
        match waiting.pop() {
            Some(next) if !seen[next] => {
                seen[next] = true;
                stack.push((next, successors(next)));
            }
            Some(_) => {}
            None => {
                postorder.push(*block);
                stack.pop();
            }
        }
    }
    postorder.reverse();
    postorder
}
