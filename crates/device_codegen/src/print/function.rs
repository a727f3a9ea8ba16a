//! Functions: head, blocks, terminators, and how operands are written.

use super::names::{Names, quoted};
use super::printer::Printer;
use crate::ir::{
    Block, BlockId, ByValue, Function, Operand, Symbol, Terminator, TerminatorKind, Type, Value,
};

impl Printer<'_> {
    pub(super) fn function(&self, symbol: &Symbol, function: &Function) -> String {
        let mut body = Body {
            printer: self,
            names: Names::of(function),
            source: String::new(),
            text: String::new(),
        };
        let label = function
            .blocks
            .first()
            .map(|_| body.names.block(BlockId(0)));
        if let Some(label) = label {
            body.text.push_str(&format!("{label}:\n"));
        }
        let parameters = body.parameters(function);
        for (index, block) in function.blocks.iter().enumerate() {
            body.block(BlockId(index as u32), block);
        }
        let head = self.head(symbol, function, &parameters);
        format!("{head} {{\n{}}}\n", body.text)
    }

    fn head(&self, symbol: &Symbol, function: &Function, parameters: &[String]) -> String {
        let internal = if function.kernel.is_some() || function.is_visible {
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

    /// What a function's parameters are in its type.
    pub(super) fn parameter_types(&self, function: &Function) -> Vec<String> {
        let parameters = function.ty.parameters.iter().enumerate();
        let types = parameters.map(|(position, ty)| match by_value(function, position) {
            Some(value) => self.dialect.pointer_to(&bytes(value), address_space(ty)),
            None => self.ty(ty),
        });
        types.collect()
    }
}

/// How the launch passes a parameter, if by value.
fn by_value(function: &Function, position: usize) -> Option<&ByValue> {
    function.kernel.as_ref()?.by_value.get(&position)
}

/// The type of a value of any type.
fn bytes(value: &ByValue) -> String {
    format!("[{} x i8]", value.bytes)
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
    /// The parameters as the function's head has them. The body uses a parameter by value as a
    /// pointer to anything, to which the typed dialect casts it first.
    fn parameters(&mut self, function: &Function) -> Vec<String> {
        let types = self.printer.parameter_types(function);
        let mut parameters = Vec::with_capacity(types.len());
        for (position, (id, ty)) in function.parameters.iter().zip(types).enumerate() {
            let name = self.names.local(*id);
            let Some(value) = by_value(function, position) else {
                let attributes = function.parameter_attributes.get(position);
                let attributes = attributes.map_or(&[][..], Vec::as_slice);
                let attributes = self
                    .printer
                    .parameter_attributes(attributes, function.local_type(*id));
                parameters.push(format!("{ty}{attributes} {name}"));
                continue;
            };
            let pointee = bytes(value);
            let (attribute, passed) = if self.printer.dialect.tells_apart(&pointee) {
                let passed = format!("%{}", self.names.temporary());
                let pointer = self.ty(function.local_type(*id));
                self.line(&format!("{name} = bitcast {ty} {passed} to {pointer}"));
                ("byval".to_owned(), passed)
            } else {
                (format!("byval({pointee})"), name)
            };
            let align = value.align;
            parameters.push(format!("{ty} {attribute} align {align} {passed}"));
        }
        parameters
    }

    fn block(&mut self, id: BlockId, block: &Block) {
        // The entry's label is above the parameters.
        if id.0 > 0 {
            let label = self.names.block(id);
            self.text.push_str(&format!("\n{label}:\n"));
        }
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
        let ty = self.printer.dialect.pointer_to(pointee, space);
        if !self.printer.dialect.tells_apart(pointee) {
            return format!("{ty} {value}");
        }
        let any = self.printer.dialect.any_pointer(space);
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
        if !self.printer.dialect.tells_apart(pointee) {
            self.line(&format!("{result} = {instruction}"));
            return;
        }
        let made = self.names.temporary();
        let from = self.printer.dialect.pointer_to(pointee, space);
        let to = self.printer.dialect.any_pointer(space);
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
