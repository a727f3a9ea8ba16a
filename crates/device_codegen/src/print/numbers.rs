//! The numbers that nodes of metadata have in the output.

use std::collections::BTreeMap;

use crate::ir::{MetadataItem, Module, Scope};

/// New numbers of the nodes that are attached somewhere, in order of first mention.
pub(super) struct MetadataNumbers {
    numbers: BTreeMap<u32, u32>,
    pub(super) order: Vec<u32>,
    pub(super) unit: Option<UnitNumbers>,
}

impl MetadataNumbers {
    pub(super) fn of(module: &Module) -> Self {
        let mut found = Self {
            numbers: BTreeMap::new(),
            order: Vec::new(),
            unit: None,
        };
        for function in module.functions.values() {
            found.add_all(module, &[], function.scope);
            for (metadata, source, _) in function.attachments() {
                found.add_all(module, metadata, source);
            }
        }
        let next = found.order.len() as u32;
        found.unit = UnitNumbers::of(module, &found.order, next);
        found
    }

    fn add_all(&mut self, module: &Module, attachments: &[(String, u32)], source: Option<u32>) {
        let mut waiting: Vec<u32> = attachments.iter().map(|(_, number)| *number).collect();
        waiting.extend(source);
        waiting.reverse();
        while let Some(number) = waiting.pop() {
            if self.numbers.contains_key(&number) {
                continue;
            }
            self.numbers.insert(number, self.order.len() as u32);
            self.order.push(number);
            let mut next = mentioned(module, number).unwrap_or_else(|| items(module, number));
            next.reverse();
            waiting.extend(next);
        }
    }

    /// The number that a node has in the output.
    pub(super) fn get(&self, number: u32) -> u32 {
        self.numbers.get(&number).copied().unwrap_or_default()
    }
}

/// Numbers of the nodes that do not come from any module.
#[derive(Clone, Copy)]
pub(super) struct UnitNumbers {
    /// A number of the parser's: where the first function is defined.
    pub(super) file: u32,
    pub(super) unit: u32,
    pub(super) function_type: u32,
    pub(super) no_types: u32,
    pub(super) version: u32,
}

impl UnitNumbers {
    pub(super) const COUNT: u32 = 4;

    /// The numbers from `first` on, if a node of those in `used` is a function.
    pub(super) fn of(module: &Module, used: &[u32], first: u32) -> Option<Self> {
        let function = used.iter().find_map(|number| {
            let scope = module.lines.scopes.get(number)?;
            matches!(scope, Scope::Function(_)).then_some(scope)
        })?;
        Some(Self {
            file: function.file(),
            unit: first,
            function_type: first + 1,
            no_types: first + 2,
            version: first + 3,
        })
    }
}

/// The numbers that a node of the line tables mentions; `None` if it is none.
fn mentioned(module: &Module, number: u32) -> Option<Vec<u32>> {
    let lines = &module.lines;
    if let Some(location) = lines.locations.get(&number) {
        return Some(
            [Some(location.scope), location.inlined_at]
                .into_iter()
                .flatten()
                .collect(),
        );
    }
    if let Some(scope) = lines.scopes.get(&number) {
        return Some(
            [scope.parent(), Some(scope.file())]
                .into_iter()
                .flatten()
                .collect(),
        );
    }
    lines.files.get(&number).map(|_| Vec::new())
}

/// The nodes that a tuple mentions.
fn items(module: &Module, number: u32) -> Vec<u32> {
    let items = module
        .metadata
        .get(&number)
        .map_or(&[][..], |node| &node.items);
    let nodes = items.iter().filter_map(|item| match item {
        MetadataItem::Node(number) => Some(*number),
        _ => None,
    });
    nodes.collect()
}
