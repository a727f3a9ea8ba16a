//! Control flow: loops and branches as C writes them, `goto` where it has no better word.
//!
//! A block with one predecessor is written in place of the jump to it; one with several, after the
//! statement that encloses the jumps; one outside of a loop, after the loop. So the text follows
//! the tree of dominators:
//!
//! ```text
//!        A                 A
//!       / \                if (..) {
//!      B   C                   B
//!       \ / \              } else {
//!        D   E                 C
//!                              if (!..) { E }
//!                          }
//!                          D
//! ```
//!
//! A jump to what comes next anyway needs no text; one out of a loop, to what follows it, is
//! `break`; one to the head of the loop is `continue`; all others are `goto`. Whatever text comes
//! of it, each jump leads where the IR's leads. A graph that is not reducible is an error: OpenCL
//! compilers for CPUs refuse barriers in it.

use super::body::Body;
use super::expression::Expression;
use crate::error::Result;
use crate::ir::{BlockId, Call, Function, Operation, TerminatorKind, Type};
use crate::loops::{self, Dominators, NaturalLoop};

/// The place of each block in the text.
pub(super) struct Flow {
    /// The blocks behind the statement of a block, in order.
    behind: Vec<Vec<usize>>,
    /// The blocks behind the loop that a block is the head of, in order.
    behind_loop: Vec<Vec<usize>>,
    /// Whether a block has a place of its own, so that jumps lead to it.
    is_target: Vec<bool>,
    is_head: Vec<bool>,
    order: Vec<usize>,
}

/// A loop that is being written: its head, and the block behind it.
#[derive(Clone, Copy)]
struct Around {
    head: usize,
    behind: Option<usize>,
}

impl Flow {
    /// `None` if the graph is not reducible.
    pub(super) fn of(function: &Function) -> Option<Self> {
        let count = function.blocks.len();
        let dominators = Dominators::of_function(function);
        let mut order = vec![usize::MAX; count];
        for (position, block) in loops::reverse_postorder(function).into_iter().enumerate() {
            order[block] = position;
        }
        let mut forward = vec![0_u32; count];
        for (from, block) in function.blocks.iter().enumerate() {
            if order[from] == usize::MAX {
                continue;
            }
            for to in block.terminator.kind.successors() {
                let to = to.0 as usize;
                match order[to] <= order[from] {
                    true if !dominators.dominates(to, from) => return None,
                    true => {}
                    false => forward[to] += 1,
                }
            }
        }
        let loops = loops::natural_loops(function);
        let mut flow = Self {
            behind: vec![Vec::new(); count],
            behind_loop: vec![Vec::new(); count],
            is_target: vec![false; count],
            is_head: vec![false; count],
            order,
        };
        for natural in &loops {
            flow.is_head[natural.header.0 as usize] = true;
        }
        for (block, &ways) in forward.iter().enumerate().skip(1) {
            let Some(parent) = dominators.immediate(block) else {
                continue;
            };
            if let Some(left) = outermost_left(&loops, parent, block) {
                flow.is_target[block] = true;
                flow.behind_loop[left].push(block);
            } else if ways > 1 {
                flow.is_target[block] = true;
                flow.behind[parent].push(block);
            }
        }
        for blocks in flow.behind.iter_mut().chain(&mut flow.behind_loop) {
            blocks.sort_by_key(|block| flow.order[*block]);
        }
        Some(flow)
    }
}

/// The head of the outermost loop that contains `parent` and not `block`.
fn outermost_left(loops: &[NaturalLoop], parent: usize, block: usize) -> Option<usize> {
    let contains =
        |natural: &NaturalLoop, block: usize| natural.blocks.contains(&BlockId(block as u32));
    let left = loops
        .iter()
        .filter(|natural| contains(natural, parent) && !contains(natural, block));
    let outermost = left.max_by_key(|natural| natural.blocks.len());
    outermost.map(|natural| natural.header.0 as usize)
}

impl Body<'_, '_> {
    /// Writes all blocks.
    pub(super) fn blocks(&mut self) -> Result<()> {
        let Some(flow) = Flow::of(self.function) else {
            return Err(self.error(
                "the function jumps into a loop from outside, which no OpenCL compiler for a CPU takes beside a barrier; \
                 write the loop with one entry",
            ));
        };
        self.region(&flow, 0, None, &mut Vec::new())?;
        self.drop_labels();
        Ok(())
    }

    /// Writes a block and all that it dominates. `next` follows it.
    fn region(
        &mut self,
        flow: &Flow,
        mut block: usize,
        next: Option<usize>,
        around: &mut Vec<Around>,
    ) -> Result<()> {
        loop {
            if flow.is_head[block] {
                let behind = flow.behind_loop[block].as_slice();
                let first = behind.first().copied();
                if !flow.is_target[block] {
                    self.label(block); // of loops inside, for `goto`
                }
                self.push("for (;;) {", &[]);
                self.depth += 1;
                around.push(Around {
                    head: block,
                    behind: first.or(next),
                });
                self.statements(flow, block, Some(block), around)?;
                around.pop();
                self.depth -= 1;
                self.push("}", &[]);
                let Some(last) = self.all_but_last(flow, behind, around)? else {
                    return Ok(());
                };
                block = last;
                continue;
            }
            // The last of the blocks behind is written in this loop, not in a deeper call: a kernel
            // has thousands of branches in a row.
            let behind = flow.behind[block].as_slice();
            self.block(flow, block, behind.first().copied().or(next), around)?;
            let Some(last) = self.all_but_last(flow, behind, around)? else {
                return Ok(());
            };
            block = last;
        }
    }

    /// Writes blocks that follow each other, and the label of the last one, which it returns.
    fn all_but_last(
        &mut self,
        flow: &Flow,
        blocks: &[usize],
        around: &mut Vec<Around>,
    ) -> Result<Option<usize>> {
        for pair in blocks.windows(2) {
            self.label(pair[0]);
            self.region(flow, pair[0], Some(pair[1]), around)?;
        }
        let last = blocks.last().copied();
        last.into_iter().for_each(|last| self.label(last));
        Ok(last)
    }

    /// The inside of a loop, from its head.
    fn statements(
        &mut self,
        flow: &Flow,
        head: usize,
        next: Option<usize>,
        around: &mut Vec<Around>,
    ) -> Result<()> {
        let behind = flow.behind[head].as_slice();
        self.block(flow, head, behind.first().copied().or(next), around)?;
        match self.all_but_last(flow, behind, around)? {
            Some(last) => self.region(flow, last, next, around),
            None => Ok(()),
        }
    }

    fn block(
        &mut self,
        flow: &Flow,
        block: usize,
        next: Option<usize>,
        around: &mut Vec<Around>,
    ) -> Result<()> {
        let function = self.function;
        let of_block = &function.blocks[block];
        for instruction in &of_block.instructions {
            self.line = instruction.line;
            self.source = instruction.source;
            self.instruction(instruction)?;
            if ends_work_item(&instruction.operation) {
                return Ok(());
            }
        }
        self.line = of_block.terminator.line;
        self.source = of_block.terminator.source;
        match &of_block.terminator.kind {
            TerminatorKind::Return(None) => {
                let is_last = next.is_none() && around.is_empty() && self.depth == 1;
                if !is_last {
                    self.push("return;", &[]);
                }
                Ok(())
            }
            TerminatorKind::Return(Some(operand)) => {
                let value = self.operand(operand)?;
                self.push(format!("return {};", value.text), &[&value]);
                Ok(())
            }
            TerminatorKind::Unreachable => {
                match function.ty.result {
                    Type::Void => self.push("return;", &[]),
                    _ => self.push("return 0;", &[]),
                }
                Ok(())
            }
            TerminatorKind::Branch(target) => {
                self.edge(flow, block, target.0 as usize, next, around)
            }
            TerminatorKind::ConditionalBranch {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.value(&Type::BOOL, condition)?;
                let arms = [then.0 as usize, otherwise.0 as usize];
                self.branch(flow, block, condition, arms, next, around)
            }
            TerminatorKind::Switch { on, default, cases } => {
                let on_value = self.operand(on)?;
                let ty = super::types::scalar_name(&on.ty).ok_or_else(|| self.no_type(&on.ty))?;
                let value = self.kept("on", ty, on_value);
                let outer = self.depth;
                for (constant, target) in cases {
                    let case = self.constant(&on.ty, constant)?;
                    self.say_source();
                    self.push(
                        format!("if ({} == {}) {{", value.text, case.text),
                        &[&value],
                    );
                    self.depth += 1;
                    self.edge(flow, block, target.0 as usize, next, around)?;
                    self.depth -= 1;
                    self.push("} else {", &[]);
                    self.depth += 1;
                }
                self.edge(flow, block, default.0 as usize, next, around)?;
                while self.depth > outer {
                    self.depth -= 1;
                    self.push("}", &[]);
                }
                Ok(())
            }
        }
    }

    fn branch(
        &mut self,
        flow: &Flow,
        block: usize,
        condition: Expression,
        [then, otherwise]: [usize; 2],
        next: Option<usize>,
        around: &mut Vec<Around>,
    ) -> Result<()> {
        self.say_source();
        let head = self.lines.len();
        self.push(String::new(), &[&condition]);
        self.depth += 1;
        self.forget_source();
        self.edge(flow, block, then, next, around)?;
        let between = self.lines.len();
        self.push(String::new(), &[]);
        self.lines[between].depth -= 1;
        self.forget_source();
        self.edge(flow, block, otherwise, next, around)?;
        self.depth -= 1;
        self.forget_source();
        let (has_then, has_else) = (between > head + 1, self.lines.len() > between + 1);
        match (has_then, has_else) {
            // What decides between nothing and nothing has no effect.
            (false, false) => self.lines.truncate(head),
            (true, false) => {
                self.lines[head].text = format!("if ({}) {{", condition.text);
                self.lines[between].text = "}".to_owned();
            }
            (false, true) => {
                let not = Expression::not(&condition);
                self.lines[head].text = format!("if ({}) {{", not.text);
                self.lines.remove(between);
                self.push("}", &[]);
            }
            (true, true) => {
                self.lines[head].text = format!("if ({}) {{", condition.text);
                if is_jump(&self.lines[between - 1].text) {
                    // What is behind the braces is the other way.
                    self.lines[between].text = "}".to_owned();
                    for line in &mut self.lines[between + 1..] {
                        line.depth -= 1;
                    }
                } else {
                    self.lines[between].text = "} else {".to_owned();
                    self.push("}", &[]);
                }
            }
        }
        Ok(())
    }

    /// Goes from a block to another.
    fn edge(
        &mut self,
        flow: &Flow,
        from: usize,
        to: usize,
        next: Option<usize>,
        around: &mut Vec<Around>,
    ) -> Result<()> {
        self.copies(from, to)?;
        let is_back = flow.order[to] <= flow.order[from];
        if !is_back && !flow.is_target[to] {
            return self.region(flow, to, next, around);
        }
        if next == Some(to) {
            return Ok(());
        }
        match around.last() {
            Some(inner) if is_back && inner.head == to => self.push("continue;", &[]),
            Some(inner) if !is_back && inner.behind == Some(to) => self.push("break;", &[]),
            _ => {
                let label = self.label_name(to);
                self.push(format!("goto {label};"), &[]);
                self.needs.labels.insert(to);
            }
        }
        Ok(())
    }
}

/// Whether nothing behind a line is reached from it.
fn is_jump(line: &str) -> bool {
    matches!(line, "break;" | "continue;" | "return;") || line.starts_with("goto ")
}

/// Whether nothing behind the operation runs.
fn ends_work_item(operation: &Operation) -> bool {
    let symbol = operation.call().and_then(Call::symbol);
    symbol.is_some_and(|it| **it == *crate::panics::TRAP || **it == *crate::panics::PANIC)
}
