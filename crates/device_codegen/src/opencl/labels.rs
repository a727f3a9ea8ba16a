//! Labels of blocks: each block gets one, and those that no `goto` leads to are removed again.

use std::collections::BTreeSet;

use super::body::{Body, Line};
use crate::ir::{BlockId, Type};

impl Body<'_, '_> {
    pub(super) fn label(&mut self, block: usize) {
        self.forget_source();
        self.lines.push(Line {
            depth: self.depth,
            text: String::new(),
            defines: None,
            reads: Vec::new(),
            label: Some(BlockId(block as u32)),
        });
    }

    pub(super) fn label_name(&mut self, block: usize) -> String {
        format!("block_{block}")
    }

    /// Writes the labels that a `goto` leads to, and removes the others.
    pub(super) fn drop_labels(&mut self) {
        let used: BTreeSet<usize> = std::mem::take(&mut self.needs.labels);
        let lines = std::mem::take(&mut self.lines);
        for mut line in lines {
            if let Some(BlockId(block)) = line.label {
                if !used.contains(&(block as usize)) {
                    continue;
                }
                let name = self.label_name(block as usize);
                line.text = format!("{name}:;");
            }
            self.lines.push(line);
        }
        // Behind the last line there is nothing to leave out.
        let is_end = |line: &Line| line.text == "return;" && line.depth == 1;
        if self.lines.last().is_some_and(is_end) && self.function.ty.result == Type::Void {
            self.lines.pop();
        }
    }
}
