//! Metadata: attached nodes, and what libNVVM needs to know about kernels.

use super::names::quoted;
use super::numbers::UnitNumbers;
use super::printer::Printer;
use crate::ir::{Function, MetadataItem, Symbol};

impl Printer<'_> {
    /// `, !range !7`
    pub(super) fn attachments(&self, attachments: &[(String, u32)]) -> String {
        attachments
            .iter()
            .map(|(kind, number)| format!(", !{kind} !{}", self.metadata.get(*number)))
            .collect()
    }

    pub(super) fn metadata_section(&mut self) -> String {
        let mut text = String::new();
        let mut annotations = Vec::new();
        let mut next = self.metadata.order.len() as u32;
        next += self.metadata.unit.map_or(0, |_| UnitNumbers::COUNT);
        for (symbol, function) in &self.module.functions {
            for annotation in self.annotations(symbol, function) {
                annotations.push((next, annotation));
                next += 1;
            }
        }
        let numbers: Vec<String> = annotations
            .iter()
            .map(|(number, _)| format!("!{number}"))
            .collect();
        text.push_str(&format!(
            "!nvvm.annotations = !{{{}}}\n",
            numbers.join(", ")
        ));
        text.push_str(&format!("!nvvmir.version = !{{!{next}}}\n"));
        text.push_str(&self.unit_lists());
        text.push('\n');
        for (number, old) in self.metadata.order.iter().enumerate() {
            text.push_str(&format!("!{number} = {}\n", self.node(*old)));
        }
        text.push_str(&self.unit_nodes());
        for (number, annotation) in annotations {
            text.push_str(&format!("!{number} = !{{{annotation}}}\n"));
        }
        text.push_str(&format!("!{next} = !{{{}}}\n", self.version()));
        text
    }

    fn node(&self, number: u32) -> String {
        if let Some(node) = self.line_node(number) {
            return node;
        }
        let Some(node) = self.module.metadata.get(&number) else {
            return "!{}".to_owned();
        };
        let items: Vec<String> = node
            .items
            .iter()
            .map(|item| match item {
                MetadataItem::Null => "null".to_owned(),
                MetadataItem::Node(number) => format!("!{}", self.metadata.get(*number)),
                MetadataItem::String(text) => format!("!\"{text}\""),
                MetadataItem::Constant(constant) => self.typed_constant(constant),
            })
            .collect();
        let distinct = if node.distinct { "distinct " } else { "" };
        format!("{distinct}!{{{}}}", items.join(", "))
    }

    /// `void (i8*)* @name, !"kernel", i32 1`, and the kernel's properties.
    fn annotations(&self, symbol: &Symbol, function: &Function) -> Vec<String> {
        let Some(kernel) = &function.kernel else {
            return Vec::new();
        };
        let parameters = self.parameter_types(function).join(", ");
        let result = self.ty(&function.ty.result);
        let ty = self
            .dialect
            .pointer_to(&format!("{result} ({parameters})"), 0);
        let annotation =
            |name: &str, value: &str| format!("{ty} @{}, !\"{name}\", {value}", quoted(symbol));
        let number = |name: &str, value: u32| annotation(name, &format!("i32 {value}"));
        let mut annotations = vec![number("kernel", 1)];
        if let Some(threads) = kernel.max_threads {
            // The product of the three counts; a block may have any shape up to it.
            annotations.push(number("maxntidx", threads));
            annotations.push(number("maxntidy", 1));
            annotations.push(number("maxntidz", 1));
        }
        if let Some(blocks) = kernel.min_blocks {
            annotations.push(number("minctasm", blocks));
        }
        if let Some(registers) = kernel.max_registers {
            annotations.push(number("maxnreg", registers));
        }
        for (axis, blocks) in ["x", "y", "z"]
            .iter()
            .zip(kernel.cluster_dim.unwrap_or_default())
        {
            if blocks > 0 {
                annotations.push(number(&format!("cluster_dim_{axis}"), blocks));
            }
        }
        // Counted from 1.
        let constants = kernel
            .by_value
            .iter()
            .filter(|(_, value)| value.is_grid_constant);
        let constants: Vec<String> = constants
            .map(|(position, _)| format!("i32 {}", position + 1))
            .collect();
        if !constants.is_empty() {
            let list = format!("!{{{}}}", constants.join(", "));
            annotations.push(annotation("grid_constant", &list));
        }
        annotations
    }
}
