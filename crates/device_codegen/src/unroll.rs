//! Loop unrolling as the kernel requests it: `__nvvm_unroll(n)` in a loop's body becomes metadata
//! of the loop.
//!
//! rustc's own LLVM has run by then; if it has already fully unrolled the loop, the mark is outside
//! of any loop and is removed.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::intrinsics::UNROLL;
use crate::ir::{
    BlockId, Constant, Function, MetadataItem, MetadataNode, Module, Operation, Type, TypedConstant,
};
use crate::loops::{NaturalLoop, natural_loops};

/// The kind of metadata that hangs on a loop's latch.
const LOOP: &str = "llvm.loop";

/// What all properties about unrolling begin with.
const UNROLL_PROPERTY: &str = "llvm.loop.unroll.";

/// Converts the marks of all functions to metadata and removes them.
pub(crate) fn apply_marks(module: &mut Module) -> Result<()> {
    let mut next = module.next_metadata();
    for function in module.functions.values_mut() {
        for (latches, count) in marked_loops(function)? {
            for latch in latches {
                let metadata = &mut function.blocks[latch.0 as usize].terminator.metadata;
                let old = metadata
                    .iter()
                    .find(|(kind, _)| kind == LOOP)
                    .map(|(_, node)| *node);
                metadata.retain(|(kind, _)| kind != LOOP);
                metadata.push((LOOP.to_owned(), next));
                let kept = other_properties(&module.metadata, old);
                add_loop_node(&mut module.metadata, next, kept, count);
                next = next.saturating_add(2);
            }
        }
        remove_marks(function);
    }
    Ok(())
}

/// The number that a mark gives, if the operation is one.
fn mark(operation: &Operation) -> Option<Option<u32>> {
    match operation {
        Operation::Call(call) if call.symbol().is_some_and(|symbol| **symbol == *UNROLL) => {
            let number = call.arguments.first().and_then(|value| value.as_integer());
            Some(number.and_then(|number| u32::try_from(number).ok()))
        }
        _ => None,
    }
}

/// The latches of each marked loop, with the count.
fn marked_loops(function: &Function) -> Result<Vec<(BTreeSet<BlockId>, u32)>> {
    let mut marks: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for (index, block) in function.blocks.iter().enumerate() {
        for instruction in &block.instructions {
            match mark(&instruction.operation) {
                Some(Some(count)) => marks
                    .entry(index as u32)
                    .or_default()
                    .push((count, instruction.line)),
                Some(None) => {
                    return Err(Error::new(
                        &function.location_of(instruction.line),
                        "the number of an unrolling must be a constant; write it as a literal or a `const` item",
                    ));
                }
                None => {}
            }
        }
    }
    if marks.is_empty() {
        return Ok(Vec::new());
    }
    let loops = natural_loops(function);
    let mut marked: BTreeMap<usize, u32> = BTreeMap::new();
    for (block, found) in marks {
        let Some(position) = innermost(&loops, BlockId(block)) else {
            continue;
        };
        for (count, line) in found {
            if *marked.entry(position).or_insert(count) != count {
                return Err(Error::new(
                    &function.location_of(line),
                    "a loop is marked with two different unrollings. If an inner loop had a mark of its own, rustc has \
                     unrolled it already: hide its trip count from rustc with an opaque value",
                ));
            }
        }
    }
    Ok(marked
        .into_iter()
        .map(|(position, count)| (loops[position].latches.clone(), count))
        .collect())
}

/// The smallest loop around a block.
fn innermost(loops: &[NaturalLoop], block: BlockId) -> Option<usize> {
    (0..loops.len())
        .filter(|position| loops[*position].blocks.contains(&block))
        .min_by_key(|position| loops[*position].blocks.len())
}

fn remove_marks(function: &mut Function) {
    for block in &mut function.blocks {
        block
            .instructions
            .retain(|instruction| mark(&instruction.operation).is_none());
    }
}

/// What a loop's old node says about other things than unrolling.
fn other_properties(nodes: &BTreeMap<u32, MetadataNode>, old: Option<u32>) -> Vec<MetadataItem> {
    let Some((old, node)) = old.and_then(|old| Some((old, nodes.get(&old)?))) else {
        return Vec::new();
    };
    let is_about_unrolling = |number: &u32| {
        nodes.get(number).is_some_and(|property| {
            matches!(property.items.first(), Some(MetadataItem::String(name)) if name.starts_with(UNROLL_PROPERTY))
        })
    };
    node.items
        .iter()
        .filter(|item| !matches!(item, MetadataItem::Node(number) if *number == old || is_about_unrolling(number)))
        .cloned()
        .collect()
}

/// `!next = distinct !{!next, ..., !property}`, with the property in the number after.
fn add_loop_node(
    nodes: &mut BTreeMap<u32, MetadataNode>,
    next: u32,
    kept: Vec<MetadataItem>,
    count: u32,
) {
    let text = |name: &str| MetadataItem::String(format!("{UNROLL_PROPERTY}{name}").into());
    let property = match count {
        0 => vec![text("full")],
        1 => vec![text("disable")],
        _ => vec![
            text("count"),
            MetadataItem::Constant(TypedConstant {
                ty: Type::Integer(32),
                value: Constant::Integer(i128::from(count)),
            }),
        ],
    };
    let mut items = vec![MetadataItem::Node(next)];
    items.extend(kept);
    items.push(MetadataItem::Node(next.saturating_add(1)));
    nodes.insert(
        next,
        MetadataNode {
            distinct: true,
            items,
        },
    );
    nodes.insert(
        next.saturating_add(1),
        MetadataNode {
            distinct: false,
            items: property,
        },
    );
}
