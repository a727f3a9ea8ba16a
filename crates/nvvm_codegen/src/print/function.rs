//! Functions: head, blocks, terminators, and how operands are written.

use super::names::{Names, quoted};
use super::{Pointers, Printer};
use crate::ir::{
    Block, BlockId, Function, Operand, Symbol, Terminator, TerminatorKind, Type, Value,
};

impl Printer<'_> {
    pub(super) fn function(&self, symbol: &Symbol, function: &Function) -> String {
        let mut body = Body {
            printer: self,
            names: Names::of(function),
            source: String::new(),
            text: String::new(),
        };
        for (index, block) in function.blocks.iter().enumerate() {
            body.block(BlockId(index as u32), block);
        }
        format!(
            "{} {{\n{}}}\n",
            self.head(symbol, function, &body.names),
            body.text
        )
    }

    fn head(&self, symbol: &Symbol, function: &Function, names: &Names) -> String {
        let parameters: Vec<String> = function
            .parameters
            .iter()
            .enumerate()
            .map(|(position, id)| {
                let ty = function.local_type(*id);
                let attributes = function.parameter_attributes.get(position);
                format!(
                    "{}{} {}",
                    self.ty(ty),
                    self.parameter_attributes(attributes.map_or(&[], Vec::as_slice), ty),
                    names.local(*id)
                )
            })
            .collect();
        let internal = if function.kernel.is_some() {
            ""
        } else {
            "internal "
        };
        let scope = function.scope.map_or_else(String::new, |scope| {
            format!(" !dbg !{}", self.metadata.get(scope))
        });
        format!(
            "define {internal}{} @{}({}){}{scope}",
            self.ty(&function.ty.result),
            quoted(symbol),
            parameters.join(", "),
            self.function_attributes(&function.attributes)
        )
    }
}

/// The blocks of one function, as text.
pub(super) struct Body<'p, 'm> {
    pub(super) printer: &'p Printer<'m>,
    pub(super) names: Names,
    /// `, !dbg !7` of the instruction that is being written, which may take several lines.
    pub(super) source: String,
    text: String,
}

impl Body<'_, '_> {
    fn block(&mut self, id: BlockId, block: &Block) {
        if id.0 > 0 {
            self.text.push('\n');
        }
        let label = self.names.block(id);
        self.text.push_str(&format!("{label}:\n"));
        for instruction in &block.instructions {
            self.instruction(instruction);
        }
        self.terminator(&block.terminator);
    }

    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str("  ");
        self.text.push_str(text);
        self.text.push_str(&self.source);
        self.text.push('\n');
    }

    pub(super) fn pointers(&self) -> &dyn Pointers {
        self.printer.pointers
    }

    pub(super) fn ty(&self, ty: &Type) -> String {
        self.printer.ty(ty)
    }

    /// A value of type `ty`, without the type.
    pub(super) fn value(&self, ty: &Type, value: &Value) -> String {
        match value {
            Value::Local(id) => self.names.local(*id),
            Value::Constant(constant) => self.printer.constant(ty, constant),
            Value::Metadata => "!{}".to_owned(),
        }
    }

    /// `i32 %name`
    pub(super) fn operand(&self, operand: &Operand) -> String {
        format!(
            "{} {}",
            self.ty(&operand.ty),
            self.value(&operand.ty, &operand.value)
        )
    }

    /// A pointer operand with its type, cast before to a pointer to `pointee` where the dialect
    /// needs that.
    pub(super) fn pointer_to(&mut self, pointee: &str, pointer: &Operand) -> String {
        let space = address_space(&pointer.ty);
        let value = self.value(&pointer.ty, &pointer.value);
        let ty = self.pointers().to(pointee, space);
        if !self.pointers().differs(pointee) {
            return format!("{ty} {value}");
        }
        let any = self.pointers().any(space);
        if matches!(pointer.value, Value::Constant(_)) {
            return format!("{ty} bitcast ({any} {value} to {ty})");
        }
        let cast = self.names.temporary();
        self.line(&format!("%{cast} = bitcast {any} {value} to {ty}"));
        format!("{ty} %{cast}")
    }

    /// `%name = instruction`, where the instruction makes a pointer to `pointee`.
    pub(super) fn made_pointer(
        &mut self,
        result: &str,
        pointee: &str,
        space: u32,
        instruction: &str,
    ) {
        if !self.pointers().differs(pointee) {
            self.line(&format!("{result} = {instruction}"));
            return;
        }
        let made = self.names.temporary();
        let from = self.pointers().to(pointee, space);
        let to = self.pointers().any(space);
        self.line(&format!("%{made} = {instruction}"));
        self.line(&format!("{result} = bitcast {from} %{made} to {to}"));
    }

    fn terminator(&mut self, terminator: &Terminator) {
        self.source = self.printer.source(terminator.source);
        let label = |id: &BlockId| format!("label %{}", self.names.block(*id));
        let text = match &terminator.kind {
            TerminatorKind::Return(None) => "ret void".to_owned(),
            TerminatorKind::Return(Some(operand)) => format!("ret {}", self.operand(operand)),
            TerminatorKind::Branch(target) => format!("br {}", label(target)),
            TerminatorKind::ConditionalBranch {
                condition,
                then,
                otherwise,
            } => format!(
                "br i1 {}, {}, {}",
                self.value(&Type::BOOL, condition),
                label(then),
                label(otherwise)
            ),
            TerminatorKind::Switch { on, default, cases } => {
                let cases: String = cases
                    .iter()
                    .map(|(case, target)| {
                        format!(
                            "    {} {}, {}\n",
                            self.ty(&on.ty),
                            self.printer.constant(&on.ty, case),
                            label(target)
                        )
                    })
                    .collect();
                format!(
                    "switch {}, {} [\n{cases}  ]",
                    self.operand(on),
                    label(default)
                )
            }
            TerminatorKind::Unreachable => "unreachable".to_owned(),
        };
        let metadata = self.printer.attachments(&terminator.metadata);
        self.line(&format!("{text}{metadata}"));
    }
}

/// The address space of a pointer type.
pub(super) fn address_space(ty: &Type) -> u32 {
    match ty {
        Type::Pointer(space) => *space,
        _ => 0,
    }
}
