//! Where each pointer of a function leads, and what type its target has.
//!
//! The IR's pointers are generic; OpenCL C 1.2 has none such. So pointers that are made of each
//! other form a class, which has one address space and one type of elements:
//!
//! ```text
//!   parameters of a kernel        __global
//!   statics                       as `address_space.rs` has put them
//!   stack slots                   __private
//!   base + offset, phi, select    as what they are made of
//!   a pointer read from memory    as the pointers that were stored there
//! ```
//!
//! A class with two spaces, or with none and an access, is an error with the place.

use std::collections::HashMap;

use super::types::{Element, Space, part_range, parts};
use crate::error::{Error, Result};
use crate::ir::{
    Aggregate, Callee, CastOperation, Constant, Function, Instruction, LocalId, Module, Operand,
    Operation, Symbol, Type, Value,
};

/// A pointer in a variable: a value, and which of its parts.
pub(super) type Part = (LocalId, usize);

/// What is known of one class.
#[derive(Clone, Default)]
struct Class {
    space: Option<Space>,
    /// How many accesses and offsets speak for each type of element.
    votes: [u32; Element::ALL.len()],
    /// The class of the pointers that are stored there.
    content: Option<usize>,
}

/// The classes of one function's pointers.
pub(super) struct Spaces {
    parents: Vec<usize>,
    classes: Vec<Class>,
    parts: HashMap<Part, usize>,
    globals: HashMap<Symbol, usize>,
}

/// Two address spaces in one class.
struct Conflict(Space, Space);

impl Spaces {
    /// `parameters` says where those that are pointers lead.
    pub(super) fn of(
        module: &Module,
        function: &Function,
        parameters: &[Option<Space>],
    ) -> Result<Self> {
        let mut spaces = Self {
            parents: Vec::new(),
            classes: Vec::new(),
            parts: HashMap::new(),
            globals: HashMap::new(),
        };
        for (id, space) in function.parameters.iter().zip(parameters) {
            let node = spaces.part((*id, 0));
            spaces.classes[node].space = *space;
        }
        let instructions = function.blocks.iter().flat_map(|block| &block.instructions);
        for instruction in instructions {
            let unified = spaces.visit(module, function, instruction);
            if let Err(Conflict(one, other)) = unified {
                let problem = format!(
                    "a pointer leads to {} memory on one way and to {} memory on another, but one of OpenCL C has one \
                     address space; use a variable for each",
                    one.keyword(),
                    other.keyword()
                );
                return Err(Error::new(&function.location_of(instruction.line), problem));
            }
        }
        Ok(spaces)
    }

    fn new_class(&mut self, space: Option<Space>) -> usize {
        self.parents.push(self.parents.len());
        self.classes.push(Class {
            space,
            ..Class::default()
        });
        self.parents.len() - 1
    }

    fn part(&mut self, part: Part) -> usize {
        if let Some(node) = self.parts.get(&part) {
            return *node;
        }
        let node = self.new_class(None);
        self.parts.insert(part, node);
        node
    }

    fn global(&mut self, module: &Module, symbol: &Symbol) -> usize {
        if let Some(node) = self.globals.get(symbol) {
            return *node;
        }
        let global = module.globals.get(symbol);
        let space = global.and_then(|global| match global.is_constant {
            // OpenCL C 1.2 has constants of a program in no other space.
            true if global.address_space != 3 => Some(Space::Constant),
            _ => Space::of_number(global.address_space),
        });
        let node = self.new_class(space);
        if let Some(element) = global.and_then(|global| Element::of_all(&global.ty)) {
            // A static's own type says less than its accesses: `shared_array!` makes bytes.
            self.classes[node].votes[element as usize] += u32::from(element != Element::Byte);
        }
        self.globals.insert(symbol.clone(), node);
        node
    }

    fn root(&self, mut node: usize) -> usize {
        while self.parents[node] != node {
            node = self.parents[node];
        }
        node
    }

    fn unify(&mut self, left: usize, right: usize) -> std::result::Result<(), Conflict> {
        let (left, right) = (self.root(left), self.root(right));
        if left == right {
            return Ok(());
        }
        // Shorten the way for all later questions: the newer class joins the older one.
        let (keep, join) = (left.min(right), left.max(right));
        self.parents[join] = keep;
        let joined = std::mem::take(&mut self.classes[join]);
        let kept = &mut self.classes[keep];
        for (vote, more) in kept.votes.iter_mut().zip(joined.votes) {
            *vote += more;
        }
        match (kept.space, joined.space) {
            (Some(one), Some(other)) if one != other => return Err(Conflict(one, other)),
            (None, space) => kept.space = space,
            _ => {}
        }
        match (kept.content, joined.content) {
            (Some(one), Some(other)) => self.unify(one, other),
            (None, content) => {
                kept.content = content;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The class of a pointer. `None` for null and for what has no value: those fit all.
    fn class_of(&mut self, module: &Module, value: &Value, part: usize) -> Option<usize> {
        match value {
            Value::Local(id) => Some(self.part((*id, part))),
            Value::Constant(constant) => self.class_of_constant(module, constant, part),
            Value::Metadata => None,
        }
    }

    fn class_of_constant(
        &mut self,
        module: &Module,
        constant: &Constant,
        part: usize,
    ) -> Option<usize> {
        match constant {
            Constant::Symbol(symbol) => Some(self.global(module, symbol)),
            Constant::Cast(CastOperation::AddressSpaceCast | CastOperation::Bitcast, from, _) => {
                self.class_of_constant(module, &from.value, part)
            }
            Constant::ElementPointer { base, .. } => {
                self.class_of_constant(module, &base.value, part)
            }
            Constant::Aggregate(Aggregate::Struct | Aggregate::Array, elements) => {
                let mut first = 0;
                for element in elements {
                    let count = parts(&element.ty)?.len();
                    if part < first + count {
                        return self.class_of_constant(module, &element.value, part - first);
                    }
                    first += count;
                }
                None
            }
            _ => None,
        }
    }

    /// The class of the pointers that lie in the memory of a class.
    fn content(&mut self, class: usize) -> usize {
        let root = self.root(class);
        if let Some(content) = self.classes[root].content {
            return content;
        }
        let content = self.new_class(None);
        self.classes[root].content = Some(content);
        content
    }

    fn vote(&mut self, class: usize, ty: &Type, weight: u32) {
        if let Some(element) = Element::of_all(ty) {
            let root = self.root(class);
            self.classes[root].votes[element as usize] += weight;
        }
    }

    fn join(
        &mut self,
        module: &Module,
        ty: &Type,
        result: Option<LocalId>,
        value: &Value,
    ) -> std::result::Result<(), Conflict> {
        let Some(result) = result else { return Ok(()) };
        for (index, part) in parts(ty).unwrap_or_default().iter().enumerate() {
            if let Type::Pointer(_) = part.ty
                && let Some(class) = self.class_of(module, value, index)
            {
                let node = self.part((result, index));
                self.unify(node, class)?;
            }
        }
        Ok(())
    }

    fn visit(
        &mut self,
        module: &Module,
        function: &Function,
        instruction: &Instruction,
    ) -> std::result::Result<(), Conflict> {
        let result = instruction.result;
        match &instruction.operation {
            Operation::Allocate { ty, .. } => {
                if let Some(id) = result {
                    let node = self.part((id, 0));
                    let seed = self.new_class(Some(Space::Private));
                    self.unify(node, seed)?;
                    self.vote(
                        node,
                        ty,
                        u32::from(Element::of_all(ty) != Some(Element::Byte)),
                    );
                }
            }
            Operation::ElementPointer { base, source, .. } => {
                self.join(module, &base.ty, result, &base.value)?;
                // Offsets in bytes are LLVM's own.
                if *source != Type::Integer(8)
                    && let Some(class) = self.class_of(module, &base.value, 0)
                {
                    self.vote(class, source, 2);
                }
            }
            Operation::Phi { ty, incoming, .. } => {
                for (value, _) in incoming {
                    self.join(module, ty, result, value)?;
                }
            }
            Operation::Select {
                ty,
                then,
                otherwise,
                ..
            } => {
                self.join(module, ty, result, then)?;
                self.join(module, ty, result, otherwise)?;
            }
            Operation::Freeze(operand)
            | Operation::Cast {
                operation: CastOperation::Bitcast | CastOperation::AddressSpaceCast,
                from: operand,
                ..
            } => {
                self.join(module, &operand.ty, result, &operand.value)?;
                if let (Some(id), Some(space)) = (result, named_space(&instruction.operation)) {
                    let node = self.part((id, 0));
                    let seed = self.new_class(Some(space));
                    self.unify(node, seed)?;
                }
            }
            Operation::ExtractValue { aggregate, indices } => {
                self.extract(module, function, result, aggregate, indices)?;
            }
            Operation::InsertValue {
                aggregate,
                element,
                indices,
            } => self.insert(module, result, aggregate, element, indices)?,
            Operation::Load { ty, pointer, .. } => {
                if let Some(class) = self.class_of(module, &pointer.value, 0) {
                    self.vote(class, ty, 1);
                    for (index, part) in parts(ty).unwrap_or_default().iter().enumerate() {
                        if let (Type::Pointer(_), Some(id)) = (&part.ty, result) {
                            let content = self.content(class);
                            let node = self.part((id, index));
                            self.unify(node, content)?;
                        }
                    }
                }
            }
            Operation::Store { value, pointer, .. } => {
                if let Some(class) = self.class_of(module, &pointer.value, 0) {
                    self.vote(class, &value.ty, 1);
                    for (index, part) in parts(&value.ty).unwrap_or_default().iter().enumerate() {
                        if let Type::Pointer(_) = part.ty
                            && let Some(stored) = self.class_of(module, &value.value, index)
                        {
                            let content = self.content(class);
                            self.unify(content, stored)?;
                        }
                    }
                }
            }
            Operation::AtomicUpdate {
                pointer, operand, ..
            }
            | Operation::CompareExchange {
                pointer,
                replacement: operand,
                ..
            } => {
                if let Some(class) = self.class_of(module, &pointer.value, 0) {
                    self.vote(class, &operand.ty, 1);
                }
            }
            Operation::Call(call) => self.visit_call(module, call)?,
            _ => {}
        }
        Ok(())
    }

    /// A copy of memory copies the pointers in it. What is written or read by inline PTX is floats.
    fn visit_call(
        &mut self,
        module: &Module,
        call: &crate::ir::Call,
    ) -> std::result::Result<(), Conflict> {
        if let Callee::Assembly(assembly) = &call.callee {
            let is_float4 = String::from_utf8_lossy(&assembly.text).contains(".v4.f32");
            for (ty, value) in call.ty.parameters.iter().zip(&call.arguments) {
                if let (Type::Pointer(_), Some(class), true) =
                    (ty, self.class_of(module, value, 0), is_float4)
                {
                    self.vote(class, &Type::Float, 4);
                }
            }
            return Ok(());
        }
        let is_copy = call.symbol().is_some_and(|symbol| {
            symbol.starts_with("llvm.memcpy.") || symbol.starts_with("llvm.memmove.")
        });
        if let (true, [to, from, ..]) = (is_copy, call.arguments.as_slice())
            && let Some(to) = self.class_of(module, to, 0)
            && let Some(from) = self.class_of(module, from, 0)
        {
            let (to, from) = (self.content(to), self.content(from));
            self.unify(to, from)?;
        }
        Ok(())
    }

    fn extract(
        &mut self,
        module: &Module,
        function: &Function,
        result: Option<LocalId>,
        aggregate: &Operand,
        indices: &[u64],
    ) -> std::result::Result<(), Conflict> {
        let (Some(id), Some((first, count))) = (result, part_range(&aggregate.ty, indices)) else {
            return Ok(());
        };
        let of_result = parts(function.local_type(id)).unwrap_or_default();
        for (index, part) in of_result.iter().enumerate().take(count) {
            if let Type::Pointer(_) = part.ty
                && let Some(class) = self.class_of(module, &aggregate.value, first + index)
            {
                let node = self.part((id, index));
                self.unify(node, class)?;
            }
        }
        Ok(())
    }

    fn insert(
        &mut self,
        module: &Module,
        result: Option<LocalId>,
        aggregate: &Operand,
        element: &Operand,
        indices: &[u64],
    ) -> std::result::Result<(), Conflict> {
        let (Some(id), Some((first, count))) = (result, part_range(&aggregate.ty, indices)) else {
            return Ok(());
        };
        for (index, part) in parts(&aggregate.ty).unwrap_or_default().iter().enumerate() {
            let Type::Pointer(_) = part.ty else { continue };
            let inserted = index >= first && index < first + count;
            let class = match inserted {
                true => self.class_of(module, &element.value, index - first),
                false => self.class_of(module, &aggregate.value, index),
            };
            if let Some(class) = class {
                let node = self.part((id, index));
                self.unify(node, class)?;
            }
        }
        Ok(())
    }

    /// Where a pointer in a variable leads.
    pub(super) fn space_of(&self, part: Part) -> Option<Space> {
        let node = self.parts.get(&part)?;
        self.classes[self.root(*node)].space
    }

    /// The type of what a pointer in a variable leads to.
    pub(super) fn element_of(&self, part: Part) -> Element {
        match self.parts.get(&part) {
            Some(node) => self.elected(*node),
            None => Element::Byte,
        }
    }

    /// Space and element of a static.
    pub(super) fn of_global(&self, symbol: &Symbol) -> Option<(Space, Element)> {
        let node = *self.globals.get(symbol)?;
        Some((self.classes[self.root(node)].space?, self.elected(node)))
    }

    /// The statics that the function mentions.
    pub(super) fn globals(&self) -> impl Iterator<Item = &Symbol> {
        self.globals.keys()
    }

    /// The element with the most votes; bytes if there are none.
    fn elected(&self, node: usize) -> Element {
        let votes = &self.classes[self.root(node)].votes;
        let mut best = Element::Byte;
        for element in Element::ALL {
            if votes[element as usize] > votes[best as usize] {
                best = element;
            }
        }
        best
    }
}

/// The space that a cast to a pointer of the IR's says.
fn named_space(operation: &Operation) -> Option<Space> {
    match operation {
        Operation::Cast {
            to: Type::Pointer(number),
            ..
        } => Space::of_number(*number),
        _ => None,
    }
}
