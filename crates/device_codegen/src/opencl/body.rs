//! The text of a function while it is written: lines, variables, and expressions that wait for
//! their only use.
//!
//! A value that is used once, in the block where it is computed, needs no variable: its expression
//! is written where it is used. One that reads memory is put into a variable before the next write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::expression::{Expression, rank};
use super::kernel::Contraction;
use super::names::Names;
use super::needs::{Needs, Printer};
use super::spaces::{Part, Spaces};
use super::types::{self, Element, Space};
use super::uses::{Uses, uses};
use crate::error::{Error, Result, SourcePlace};
use crate::ir::{BlockId, Function, LocalId, Operation, Symbol, Type, Value};
use crate::source_place;

/// A longer expression gets a variable.
const LONGEST: usize = 88;

/// One line of the body.
pub(super) struct Line {
    pub(super) depth: usize,
    pub(super) text: String,
    /// The variable that it gives a value, and the type of that.
    pub(super) defines: Option<(Part, String)>,
    pub(super) reads: Vec<Part>,
    /// The block whose label it is.
    pub(super) label: Option<BlockId>,
}

pub(super) struct Body<'p, 'm> {
    pub(super) printer: &'p Printer<'m>,
    pub(super) function: &'m Function,
    pub(super) spaces: Spaces,
    pub(super) needs: &'p mut Needs,
    pub(super) names: Names,
    /// The variables, by part of a value.
    variables: HashMap<Part, String>,
    /// The names of statics.
    pub(super) statics: BTreeMap<Symbol, String>,
    pub(super) lines: Vec<Line>,
    pub(super) depth: usize,
    uses: Vec<Uses>,
    waiting: Vec<(LocalId, Expression)>,
    /// Spaces whose memory is accessed as elements of several types.
    mixed: BTreeSet<Space>,
    /// The instruction that is being written: its line in the IR and its place in the source.
    pub(super) line: u32,
    pub(super) source: Option<u32>,
    said: Option<Place>,
    /// The places of the locations that have been asked for.
    places: HashMap<u32, Option<Place>>,
}

/// File and line.
type Place = (Arc<str>, u32);

impl<'p, 'm> Body<'p, 'm> {
    pub(super) fn new(
        printer: &'p Printer<'m>,
        function: &'m Function,
        spaces: Spaces,
        needs: &'p mut Needs,
    ) -> Self {
        Self {
            uses: uses(function),
            printer,
            function,
            spaces,
            needs,
            names: Names::default(),
            variables: HashMap::new(),
            statics: BTreeMap::new(),
            lines: Vec::new(),
            depth: 1,
            waiting: Vec::new(),
            mixed: BTreeSet::new(),
            line: function.location.line,
            source: None,
            said: None,
            places: HashMap::new(),
        }
    }

    /// An error about the instruction that is being written.
    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        let places: Vec<SourcePlace> = self.source.map_or_else(Vec::new, |source| {
            source_place::places(&self.printer.module.lines, source)
        });
        Error::new(&self.function.location_of(self.line), problem).with_places(places)
    }

    pub(super) fn push(&mut self, text: impl Into<String>, reads: &[&Expression]) {
        self.lines.push(Line {
            depth: self.depth,
            text: text.into(),
            defines: None,
            reads: reads
                .iter()
                .flat_map(|expression| expression.reads.iter().copied())
                .collect(),
            label: None,
        });
    }

    /// Says where the following lines come from, if it is another line than before.
    pub(super) fn say_source(&mut self) {
        let Some(source) = self.source else { return };
        let lines = &self.printer.module.lines;
        let known = self.places.entry(source).or_insert_with(|| {
            let places = source_place::places(lines, source);
            places.first().map(|place| (place.file.clone(), place.line))
        });
        let Some(place) = known.clone() else { return };
        if self.said.as_ref() != Some(&place) {
            self.push(format!("// {}:{}", place.0, place.1), &[]);
            self.said = Some(place);
        }
    }

    /// What follows may be reached from elsewhere.
    pub(super) fn forget_source(&mut self) {
        self.said = None;
    }

    /// The parts of a type, each of which is a variable.
    pub(super) fn parts(&self, ty: &Type) -> Result<Vec<types::Part>> {
        types::parts(ty).ok_or_else(|| self.no_type(ty))
    }

    pub(super) fn no_type(&self, ty: &Type) -> Error {
        let advice = match ty {
            Type::Integer(_) => "; use an integer of 8, 16, 32 or 64 bits",
            Type::Half | Type::BFloat => "; convert to f32",
            _ => "",
        };
        self.error(format!(
            "OpenCL C has no type for values of the type `{ty}`{advice}"
        ))
    }

    /// The type of a variable.
    pub(super) fn type_of_part(&self, part: Part, ty: &Type) -> Result<String> {
        match ty {
            Type::Pointer(_) => {
                let space = self.space(part).unwrap_or(Space::Global);
                Ok(pointer_type(space, self.spaces.element_of(part).name()))
            }
            _ => match types::scalar_name(ty) {
                Some(name) => Ok(name.to_owned()),
                None => types::vector_name(ty).ok_or_else(|| self.no_type(ty)),
            },
        }
    }

    pub(super) fn space(&self, part: Part) -> Option<Space> {
        self.spaces.space_of(part)
    }

    /// The variable of a part of a value.
    pub(super) fn variable(&mut self, part: Part) -> String {
        if let Some(name) = self.variables.get(&part) {
            return name.clone();
        }
        let given = self.function.locals[part.0.0 as usize].name.clone();
        let name = self.names.unique(given.as_deref());
        self.variables.insert(part, name.clone());
        name
    }

    /// Gives a value another name than its own.
    pub(super) fn name(&mut self, part: Part, name: String) {
        self.variables.insert(part, name);
    }

    /// The expression of a part of a value that is in variables, or waits.
    pub(super) fn local(&mut self, part: Part) -> Expression {
        let waiting = self.waiting.iter().position(|(id, _)| *id == part.0);
        if let Some(position) = waiting {
            return self.waiting.remove(position).1;
        }
        let name = self.variable(part);
        Expression::variable(part, &name)
    }

    /// Defines a value that has one part.
    pub(super) fn define(&mut self, id: LocalId, ty: &Type, expression: Expression) -> Result<()> {
        let Uses {
            count,
            is_local,
            in_sum,
        } = self.uses[id.0 as usize];
        // Only within one expression is a product fused with a sum.
        let is_fused =
            self.printer.contraction == Contraction::Allowed && expression.has_product && in_sum;
        let may_wait = !expression.is_rounded
            && (is_fused && expression.rank == rank::PRODUCT || expression.text.len() <= LONGEST);
        match count {
            0 => Ok(()),
            1 if is_local && may_wait => {
                self.waiting.push((id, expression));
                Ok(())
            }
            _ => self.assign((id, 0), ty, expression),
        }
    }

    /// `variable = expression;`
    pub(super) fn assign(&mut self, part: Part, ty: &Type, expression: Expression) -> Result<()> {
        let name = self.variable(part);
        let ty = self.type_of_part(part, ty)?;
        self.say_source();
        self.lines.push(Line {
            depth: self.depth,
            text: format!("{name} = {};", expression.text),
            defines: Some((part, ty)),
            reads: expression.reads,
            label: None,
        });
        Ok(())
    }

    pub(super) fn is_used(&self, id: LocalId) -> bool {
        self.uses[id.0 as usize].count > 0
    }

    /// Puts what waits and reads memory into variables, before a write.
    pub(super) fn settle(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        for (id, expression) in waiting {
            match expression.loads {
                true => {
                    let ty = self.function.local_type(id).clone();
                    self.assign((id, 0), &ty, expression)?;
                }
                false => self.waiting.push((id, expression)),
            }
        }
        Ok(())
    }

    /// Puts an expression into a variable of its own, unless it is one already.
    pub(super) fn kept(&mut self, wish: &str, ty: &str, expression: Expression) -> Expression {
        if expression
            .text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return expression;
        }
        let name = self.names.unique(Some(wish));
        let space = if ty.ends_with('*') { "" } else { " " };
        self.push(
            format!("{ty}{space}{name} = {};", expression.text),
            &[&expression],
        );
        // It is written right before its uses, so its reads do not matter.
        Expression::constant(name)
    }

    /// Notes where memory is accessed as elements of several types.
    pub(super) fn find_mixed(&mut self) {
        let mut seen: BTreeMap<Space, BTreeSet<Element>> = BTreeMap::new();
        for instruction in self.function.instructions() {
            let (pointer, ty) = match &instruction.operation {
                Operation::Load { pointer, ty, .. } => (pointer, ty),
                Operation::Store { pointer, value, .. } => (pointer, &value.ty),
                Operation::AtomicUpdate {
                    pointer, operand, ..
                } => (pointer, &operand.ty),
                Operation::CompareExchange {
                    pointer,
                    replacement,
                    ..
                } => (pointer, &replacement.ty),
                _ => continue,
            };
            let Some((space, element)) = self.pointer_facts(&pointer.value) else {
                continue;
            };
            let accessed = types::parts(ty).unwrap_or_default();
            let accessed = accessed.iter().filter_map(|part| Element::of_all(&part.ty));
            let of_space = seen.entry(space).or_default();
            of_space.extend(
                accessed
                    .chain([element])
                    .filter(|one| *one != Element::Byte),
            );
        }
        self.mixed = seen
            .into_iter()
            .filter(|(_, elements)| elements.len() > 1)
            .map(|(space, _)| space)
            .collect();
    }

    /// Whether accesses to a space must say that they may meet those of another type.
    pub(super) fn is_mixed(&self, space: Space) -> bool {
        self.mixed.contains(&space)
    }

    /// Where a pointer leads and what to. `None` if that is not known.
    pub(super) fn pointer_facts(&self, pointer: &Value) -> Option<(Space, Element)> {
        match pointer {
            Value::Local(id) => {
                let part = (*id, 0);
                Some((self.space(part)?, self.spaces.element_of(part)))
            }
            Value::Constant(constant) => {
                let mut found = None;
                constant.walk(&mut |constant| {
                    if let crate::ir::Constant::Symbol(symbol) = constant {
                        found = found.or_else(|| self.spaces.of_global(symbol));
                    }
                });
                found
            }
            Value::Metadata => None,
        }
    }
}

/// `__global float *`
pub(super) fn pointer_type(space: Space, element: &str) -> String {
    format!("{} {element} *", space.keyword())
}
