//! Phis: each way into a block gives them their values.

use super::body::Body;
use super::expression::Expression;
use super::spaces;
use crate::error::Result;
use crate::ir::{BlockId, Operation, Type};

impl Body<'_, '_> {
    /// Gives the phis of a block their values for the way from another: all at once, as the IR
    /// has it, so one that another still needs is kept.
    pub(super) fn copies(&mut self, from: usize, to: usize) -> Result<()> {
        let function = self.function;
        let mut waiting: Vec<(spaces::Part, Type, Expression)> = Vec::new();
        for instruction in &function.blocks[to].instructions {
            let (Operation::Phi { ty, incoming, .. }, Some(id)) =
                (&instruction.operation, instruction.result)
            else {
                break;
            };
            let source = BlockId(from as u32);
            let Some((value, _)) = incoming.iter().find(|(_, block)| *block == source) else {
                return Err(self.error("a phi has no value for a way into its block"));
            };
            for (index, part) in self.parts(ty)?.iter().enumerate() {
                let value = self.part_of(ty, value, index)?;
                let target = (id, index);
                let is_itself = value.reads == [target] && value.text == self.variable(target);
                if !is_itself {
                    waiting.push((target, part.ty.clone(), value));
                }
            }
        }
        while !waiting.is_empty() {
            let free = waiting
                .iter()
                .enumerate()
                .position(|(index, (target, ..))| {
                    let mut others = waiting.iter().enumerate();
                    !others.any(|(other, (_, _, value))| {
                        other != index && value.reads.contains(target)
                    })
                });
            match free {
                Some(index) => {
                    let (target, ty, value) = waiting.remove(index);
                    self.assign(target, &ty, value)?;
                }
                None => {
                    // They go in a circle: the first one's old value is kept under another name.
                    let (target, ty, _) = &waiting[0];
                    let (target, ty) = (*target, ty.clone());
                    let name = self.variable(target);
                    let of_type = self.type_of_part(target, &ty)?;
                    let old = self.names.unique(Some(&format!("old_{name}")));
                    let variable = Expression::variable(target, &name);
                    self.push(format!("{of_type} {old} = {name};"), &[&variable]);
                    for (_, _, value) in &mut waiting {
                        if value.reads.contains(&target) {
                            value.text = replace_word(&value.text, &name, &old);
                            value.reads.retain(|read| *read != target);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Replaces a whole identifier.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, found) = rest.split_at(at);
        let after = &found[word.len()..];
        let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        out.push_str(before);
        out.push_str(if is_whole { by } else { word });
        rest = after;
    }
    out.push_str(rest);
    out
}
