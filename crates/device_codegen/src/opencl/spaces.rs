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

mod visit;

use std::collections::HashMap;

use super::types::{Element, Space, parts};
use crate::error::{Error, Result};
use crate::ir::{
    Aggregate, CastOperation, Constant, Function, LocalId, Module, Symbol, Type, Value,
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
        for instruction in function.instructions() {
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

    /// The class of the pointers that are stored in the memory of a class.
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
