//! What the parts of a file share while it is written.

use std::collections::{BTreeMap, BTreeSet};

use super::kernel::{Contraction, OpenClVersion};
use super::types::{Element, Space};
use crate::ir::{Module, Symbol, Type};

pub(super) struct Printer<'m> {
    pub(super) module: &'m Module,
    pub(super) contraction: Contraction,
}

/// What a kernel needs beside its own text.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) fp64: bool,
    pub(super) int64_atomics: bool,
    pub(super) correct_rounding: bool,
    pub(super) device_fences: bool,
    pub(super) halves: bool,
    pub(super) dynamic_local: bool,
    pub(super) panic_record: bool,
    /// What each panic says, by its number.
    pub(super) panics: Vec<String>,
    /// Types for accesses that meet those of another type, or are less aligned.
    pub(super) aliases: BTreeSet<(String, u64)>,
    /// Sizes and alignments of parameters by value.
    pub(super) by_value: BTreeSet<(u64, u64)>,
    pub(super) statics: BTreeMap<(Symbol, Element), (String, String)>,
    /// `None` while it is being written.
    pub(super) helpers: BTreeMap<(Symbol, Vec<PassedPointer>), Option<Helper>>,
    pub(super) texts_of_helpers: Vec<String>,
    /// The blocks of the function being written that a `goto` leads to.
    pub(super) labels: BTreeSet<usize>,
}

impl Needs {
    pub(super) fn note_type(&mut self, ty: &Type) {
        match ty {
            Type::Double => self.fp64 = true,
            Type::Vector(_, element) => self.note_type(element),
            _ => {}
        }
    }

    pub(super) fn note_element(&mut self, element: Element) {
        self.fp64 |= element == Element::Double;
    }

    /// A type for such accesses.
    pub(super) fn alias(&mut self, ty: &str, align: u64) -> String {
        // A pointer that is stored has a type of several words.
        let name: String = ty
            .chars()
            .filter(|character| !character.is_whitespace())
            .map(|character| if character == '*' { 'p' } else { character })
            .collect();
        self.aliases.insert((ty.to_owned(), align));
        format!("{name}_aligned_{align}")
    }

    /// The type of a parameter by value.
    pub(super) fn by_value(&mut self, bytes: u64, align: u64) -> String {
        self.by_value.insert((bytes, align));
        format!("by_value_{bytes}_{align}")
    }

    pub(super) fn version(&self) -> OpenClVersion {
        match self.device_fences {
            true => OpenClVersion::V2_0,
            false => OpenClVersion::V1_2,
        }
    }
}

/// A function that a kernel calls: its name in C and the types of its parameters.
#[derive(Clone)]
pub(super) struct Helper {
    pub(super) name: String,
    pub(super) parameters: Vec<String>,
}

/// What a caller says of a pointer that it passes.
pub(super) type PassedPointer = Option<(Space, Element)>;
