//! Functions: head, parameters, blocks.

use std::collections::HashMap;
use std::sync::Arc;

use super::Parser;
use super::metadata::Attached;
use crate::error::Result;
use crate::ir::{
    Attribute, Block, BlockId, Function, FunctionType, Local, LocalId, Module, Operand, Terminator,
    TerminatorKind, Type, Value,
};
use crate::lexer::Token;

/// The values and blocks of the function being read, by name. A name may be used before its
/// definition.
#[derive(Default)]
pub(super) struct Names {
    locals: Vec<Local>,
    /// Where each local is defined, or first used as long as it is not.
    places: Vec<(Place, usize)>,
    by_name: HashMap<String, LocalId>,
    blocks: HashMap<String, BlockId>,
    /// Name and first use of each block, by id.
    block_uses: Vec<(String, usize)>,
}

type Parameter = (Type, Vec<Attribute>, Option<LocalId>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Used,
    Defined,
}

impl<'a> Parser<'a> {
    /// `define ... { ... }` or `declare ...`
    pub(super) fn function(&mut self, module: &mut Module) -> Result<()> {
        let mut location = self.location();
        let is_definition = self.at_word("define");
        self.at += 1;
        while matches!(self.peek(), Token::MetadataName(_)) {
            self.attachment(&mut Attached::default())?;
        }
        let linkage = self.linkage()?;
        self.calling_convention()?;
        // Those of a result promise something to callers; nothing is lost without them.
        self.parameter_attributes()?;
        let result = self.ty()?;
        let Token::Global(name) = self.peek().clone() else {
            return self.expected("the function's name");
        };
        self.at += 1;
        let name: Arc<str> = name.into();
        location.function = Some(name.clone());
        self.function = Some(name.clone());

        let mut names = Names::default();
        self.punctuation('(')?;
        let parameters = self.list(')', |parser| parser.parameter(is_definition, &mut names))?;
        let parameters: Vec<_> = parameters.into_iter().flatten().collect();
        let mut function = Function {
            location,
            linkage,
            ty: FunctionType {
                result,
                parameters: parameters.iter().map(|(ty, ..)| ty.clone()).collect(),
            },
            parameters: parameters.iter().filter_map(|(_, _, id)| *id).collect(),
            parameter_attributes: parameters.into_iter().map(|(_, list, _)| list).collect(),
            attributes: Vec::new(),
            section: None,
            locals: Vec::new(),
            blocks: Vec::new(),
            kernel: None,
            is_visible: false,
            scope: None,
        };
        self.function_tail(&mut function)?;
        if is_definition {
            self.body(&mut function, names)?;
        }
        self.function = None;
        if module.functions.insert(name.clone(), function).is_some() {
            return self.error(format!("`@{name}` is defined twice"));
        }
        Ok(())
    }

    /// Calling conventions differ only in the registers that they use, and PTX has no such
    /// registers: all are the same on the device.
    pub(super) fn calling_convention(&mut self) -> Result<()> {
        self.words_of(&["ccc", "coldcc", "fastcc", "tailcc"]);
        if let Token::Word(word) = self.peek()
            && word.ends_with("cc")
        {
            return self.error(format!("device code has no calling convention `{word}`"));
        }
        Ok(())
    }

    /// Type, attributes and, in a definition, the value; nothing for the `...` of a declaration,
    /// which is an error where it is called.
    fn parameter(&mut self, is_definition: bool, names: &mut Names) -> Result<Option<Parameter>> {
        if !is_definition && *self.peek() == Token::Ellipsis {
            self.at += 1;
            return Ok(None);
        }
        let ty = self.ty()?;
        let attributes = self.parameter_attributes()?;
        let id = match self.peek().clone() {
            Token::Local(name) if is_definition => {
                let id = self.define(names, &name, &ty)?;
                self.at += 1;
                Some(id)
            }
            _ if is_definition => {
                return self.expected("a known attribute or the parameter's name");
            }
            _ => None,
        };
        Ok(Some((ty, attributes, id)))
    }

    /// The attributes between a function's parameters and its body.
    fn function_tail(&mut self, function: &mut Function) -> Result<()> {
        loop {
            self.words_of(&["unnamed_addr", "local_unnamed_addr"]);
            function.attributes.extend(self.function_attributes()?);
            match *self.peek() {
                Token::Word("section") => {
                    self.at += 1;
                    function.section = Some(self.string()?);
                }
                Token::Word("align") => {
                    self.at += 1;
                    self.alignment()?;
                }
                Token::Word("comdat") => {
                    self.at += 1;
                    if self.at_punctuation('(') {
                        self.balanced()?;
                    }
                }
                // Inlining `core` leaves it behind; without landing pads, which are refused, it
                // has no meaning.
                Token::Word("personality") => {
                    self.at += 1;
                    self.typed_constant()?;
                }
                // Not `!llvm.ident = ...`, which may follow a declaration.
                Token::MetadataName(_) if *self.peek_at(1) != Token::Punctuation('=') => {
                    let mut attached = Attached::default();
                    self.attachment(&mut attached)?;
                    function.scope = function.scope.or(attached.source);
                }
                _ => return Ok(()),
            }
        }
    }

    fn body(&mut self, function: &mut Function, mut names: Names) -> Result<()> {
        self.punctuation('{')?;
        let mut blocks = Vec::new();
        // An entry without a label has the number after the numbered parameters.
        let unnamed = function
            .parameters
            .iter()
            .filter(|id| {
                let name = names.locals[id.0 as usize].name.as_deref();
                name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            })
            .count();
        let mut label = match self.peek().clone() {
            Token::Label(name) => {
                self.at += 1;
                name.into_owned()
            }
            _ => unnamed.to_string(),
        };
        loop {
            let id = names.block(&label, self.at);
            blocks.push((id, self.block(label, &mut names)?));
            match self.next() {
                Token::Label(name) => label = name.into_owned(),
                Token::Punctuation('}') => break,
                _ => {
                    self.at -= 1;
                    return self.expected("a label or `}`");
                }
            }
        }
        self.check_all_defined(&names, &blocks)?;
        function.blocks = in_order_of_definition(blocks);
        if function.scope.is_none() {
            // LLVM ignores the locations of what was inlined into code without line tables.
            function.forget_lines();
        }
        function.locals = names.locals;
        Ok(())
    }

    fn block(&mut self, label: String, names: &mut Names) -> Result<Block> {
        let mut instructions = Vec::new();
        loop {
            // Where a variable's value is to be found, which line tables do not say.
            if matches!(self.peek(), Token::DebugRecord(_)) {
                self.at += 1;
                self.balanced()?;
                continue;
            }
            if let Some(terminator) = self.terminator(names)? {
                return Ok(Block {
                    name: label.into(),
                    instructions,
                    terminator,
                });
            }
            instructions.push(self.instruction(names)?);
        }
    }

    /// `ret`, `br`, `switch` or `unreachable`, if one is next.
    fn terminator(&mut self, names: &mut Names) -> Result<Option<Terminator>> {
        let line = self.line();
        let kind = match self.peek() {
            Token::Word("ret") => {
                self.at += 1;
                match self.eat_word("void") {
                    true => TerminatorKind::Return(None),
                    false => TerminatorKind::Return(Some(self.operand(names)?)),
                }
            }
            Token::Word("unreachable") => {
                self.at += 1;
                TerminatorKind::Unreachable
            }
            Token::Word("br") => {
                self.at += 1;
                if self.at_word("label") {
                    TerminatorKind::Branch(self.branch_target(names)?)
                } else {
                    let condition = self.operand_of(&Type::BOOL, names)?;
                    self.punctuation(',')?;
                    let then = self.branch_target(names)?;
                    self.punctuation(',')?;
                    let otherwise = self.branch_target(names)?;
                    TerminatorKind::ConditionalBranch {
                        condition,
                        then,
                        otherwise,
                    }
                }
            }
            Token::Word("switch") => {
                self.at += 1;
                let on = self.operand(names)?;
                self.punctuation(',')?;
                let default = self.branch_target(names)?;
                self.punctuation('[')?;
                let mut cases = Vec::new();
                while !self.eat_punctuation(']') {
                    let case = self.typed_constant()?;
                    if case.ty != on.ty {
                        return self
                            .error(format!("a case of a switch is not of type `{}`", on.ty));
                    }
                    self.punctuation(',')?;
                    cases.push((case.value, self.branch_target(names)?));
                }
                TerminatorKind::Switch { on, default, cases }
            }
            _ => return Ok(None),
        };
        let attached = self.attachments()?;
        Ok(Some(Terminator {
            kind,
            metadata: attached.metadata,
            source: attached.source,
            line,
        }))
    }

    /// `label %name`
    fn branch_target(&mut self, names: &mut Names) -> Result<BlockId> {
        self.word("label")?;
        self.block_name(names)
    }

    /// `%name` of a block
    pub(super) fn block_name(&mut self, names: &mut Names) -> Result<BlockId> {
        let Token::Local(name) = self.peek().clone() else {
            return self.expected("a block's name");
        };
        let id = names.block(&name, self.at);
        self.at += 1;
        Ok(id)
    }

    /// `i32 %name`
    pub(super) fn operand(&mut self, names: &mut Names) -> Result<Operand> {
        let ty = self.ty()?;
        let value = self.value(&ty, names)?;
        Ok(Operand { ty, value })
    }

    /// An operand that must have the type `ty`.
    pub(super) fn operand_of(&mut self, ty: &Type, names: &mut Names) -> Result<Value> {
        let before = self.at;
        let operand = self.operand(names)?;
        if operand.ty == *ty {
            return Ok(operand.value);
        }
        self.at = before;
        self.error(format!(
            "expected a value of type `{ty}`, found `{}`",
            operand.ty
        ))
    }

    /// A pointer operand.
    pub(super) fn pointer_operand(&mut self, names: &mut Names) -> Result<Operand> {
        let before = self.at;
        let operand = self.operand(names)?;
        if matches!(operand.ty, Type::Pointer(_)) {
            return Ok(operand);
        }
        self.at = before;
        self.error(format!("expected a pointer, found a `{}`", operand.ty))
    }

    /// A local value or a constant after its type.
    pub(super) fn value(&mut self, ty: &Type, names: &mut Names) -> Result<Value> {
        if *ty == Type::Metadata {
            return self.metadata_value(names);
        }
        let Token::Local(name) = self.peek().clone() else {
            return Ok(Value::Constant(self.constant(ty)?));
        };
        if *ty == Type::Void {
            return self.error("there are no values of type `void`");
        }
        let id = match names.by_name.get(&*name) {
            Some(id) => *id,
            None => names.add(&name, ty, Place::Used, self.at),
        };
        let known = &names.locals[id.0 as usize].ty;
        if known != ty {
            let problem = format!("`%{name}` is of type `{known}`, not `{ty}`");
            return self.error(problem);
        }
        self.at += 1;
        Ok(Value::Local(id))
    }

    /// What an intrinsic takes as `metadata`.
    fn metadata_value(&mut self, names: &mut Names) -> Result<Value> {
        match self.peek() {
            Token::MetadataNumber(_) | Token::MetadataString(_) => self.at += 1,
            Token::Exclamation => {
                self.at += 1;
                self.punctuation('{')?;
                self.punctuation('}')?;
            }
            _ => {
                self.operand(names)?;
            }
        }
        Ok(Value::Metadata)
    }

    /// Gives a name its definition. The current token is in its line.
    pub(super) fn define(&mut self, names: &mut Names, name: &str, ty: &Type) -> Result<LocalId> {
        let at = self.at;
        let Some(id) = names.by_name.get(name).copied() else {
            return Ok(names.add(name, ty, Place::Defined, at));
        };
        let known = &names.locals[id.0 as usize].ty;
        if known != ty {
            let problem = format!("`%{name}` is used as a `{known}` and defined as a `{ty}`");
            return self.error(problem);
        }
        let place = &mut names.places[id.0 as usize];
        if place.0 == Place::Defined {
            return self.error(format!("`%{name}` is defined twice"));
        }
        *place = (Place::Defined, at);
        Ok(id)
    }

    fn check_all_defined(&mut self, names: &Names, blocks: &[(BlockId, Block)]) -> Result<()> {
        for ((place, at), local) in names.places.iter().zip(&names.locals) {
            if *place == Place::Used {
                self.at = *at;
                let name = local.name.as_deref().unwrap_or_default();
                return self.error(format!("`%{name}` is not defined"));
            }
        }
        let mut defined = vec![false; names.block_uses.len()];
        for (id, block) in blocks {
            if std::mem::replace(&mut defined[id.0 as usize], true) {
                return self.error(format!("the block `%{}` is defined twice", block.name));
            }
        }
        for (defined, (name, at)) in defined.iter().zip(&names.block_uses) {
            if !defined {
                self.at = *at;
                return self.error(format!("there is no block `%{name}`"));
            }
        }
        Ok(())
    }
}

impl Names {
    fn add(&mut self, name: &str, ty: &Type, place: Place, at: usize) -> LocalId {
        // A file of more than 2^32 values does not fit into memory as text.
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(Local {
            name: Some(name.into()),
            ty: ty.clone(),
        });
        self.places.push((place, at));
        self.by_name.insert(name.to_owned(), id);
        id
    }

    fn block(&mut self, name: &str, at: usize) -> BlockId {
        if let Some(id) = self.blocks.get(name) {
            return *id;
        }
        let id = BlockId(self.block_uses.len() as u32);
        self.blocks.insert(name.to_owned(), id);
        self.block_uses.push((name.to_owned(), at));
        id
    }
}

/// Renumbers blocks so that an id is a position.
fn in_order_of_definition(blocks: Vec<(BlockId, Block)>) -> Vec<Block> {
    let mut position = vec![BlockId(0); blocks.len()];
    for (index, (id, _)) in blocks.iter().enumerate() {
        position[id.0 as usize] = BlockId(index as u32);
    }
    let renumber = |id: &mut BlockId| *id = position[id.0 as usize];
    let mut ordered = Vec::with_capacity(blocks.len());
    for (_, mut block) in blocks {
        for instruction in &mut block.instructions {
            if let crate::ir::Operation::Phi { incoming, .. } = &mut instruction.operation {
                incoming.iter_mut().for_each(|(_, from)| renumber(from));
            }
        }
        match &mut block.terminator.kind {
            TerminatorKind::Branch(target) => renumber(target),
            TerminatorKind::ConditionalBranch {
                then, otherwise, ..
            } => {
                renumber(then);
                renumber(otherwise);
            }
            TerminatorKind::Switch { default, cases, .. } => {
                renumber(default);
                cases.iter_mut().for_each(|(_, target)| renumber(target));
            }
            TerminatorKind::Return(_) | TerminatorKind::Unreachable => {}
        }
        ordered.push(block);
    }
    ordered
}
