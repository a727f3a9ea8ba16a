//! A function: its head, its arrays in local memory, its variables.
//!
//! A variable is declared where it gets its value if that is one place whose braces hold all of
//! its uses; all others are declared at the top.

use std::collections::{BTreeMap, HashMap};

use super::body::{Body, Line, pointer_type};
use super::instruction::alignment;
use super::spaces::{Part, Spaces};
use super::types::{self, Element, Space};
use super::{Needs, Printer};
use crate::error::Result;
use crate::intrinsics::DYNAMIC_SHARED;
use crate::ir::{AttributesExt, Function, LocalId, Type};

/// Writes a kernel. All pointers that it takes lead to global memory.
pub(super) fn write(
    printer: &Printer<'_>,
    needs: &mut Needs,
    name: &str,
    function: &Function,
) -> Result<String> {
    let spaces = Spaces::of(printer.module, function)?;
    let mut body = Body::new(printer, function, spaces, needs);
    if let Some(kernel) = &function.kernel
        && !kernel.by_value.is_empty()
    {
        return Err(body.error(
            "the kernel needs a structure that it takes by value as a whole, and OpenCL C takes only its fields; read \
             them one by one",
        ));
    }
    body.find_mixed();
    let mut parameters = Vec::new();
    for id in &function.parameters {
        parameters.push(body.parameter(*id)?);
    }
    let mut head = body.arrays()?;
    if let Some(dynamic) = body.statics.get(DYNAMIC_SHARED) {
        let element = body.spaces.of_global(&DYNAMIC_SHARED.into());
        let element = element.map_or(Element::Byte, |(_, element)| element);
        let ty = pointer_type(Space::Local, element.name());
        parameters.push(format!("{ty}{dynamic}"));
    }
    body.blocks()?;
    let lines = std::mem::take(&mut body.lines);
    head.extend(declare(lines));
    if body.needs.panic_record {
        parameters.push("volatile __global uint *panic_record".to_owned());
    }
    let one_line = parameters.join(", ");
    let list = match one_line.len() <= 60 {
        true if parameters.is_empty() => "void".to_owned(),
        true => one_line,
        false => format!("\n    {}\n", parameters.join(",\n    ")),
    };
    let mut text = format!("__kernel void {name}({list})\n{{\n");
    for line in head {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str("}\n");
    Ok(text)
}

impl Body<'_, '_> {
    /// A parameter's declaration.
    fn parameter(&mut self, id: LocalId) -> Result<String> {
        let ty = self.function.local_type(id).clone();
        let given = self.function.locals[id.0 as usize].name.clone();
        // rustc passes a slice as `a.0` and `a.1`.
        let wish = match given.as_deref().and_then(|name| name.strip_suffix(".1")) {
            Some(slice) => Some(format!("{slice}_len")),
            None => given.as_deref().map(str::to_owned),
        };
        let name = self.names.unique(wish.as_deref());
        let part = (id, 0);
        if ty == Type::BOOL {
            // A kernel has no parameters of type bool.
            let flag = self.names.unique(Some(&format!("is_{name}")));
            self.push(format!("const bool {flag} = ({name} & 1) != 0;"), &[]);
            self.name(part, flag);
            return Ok(format!("uchar {name}"));
        }
        self.needs.note_type(&ty);
        self.name(part, name.clone());
        let text = self.type_of_part(part, &ty)?;
        if !matches!(ty, Type::Pointer(_)) {
            return Ok(format!("{text} {name}"));
        }
        let position = self
            .function
            .parameters
            .iter()
            .position(|other| *other == id);
        let attributes = position.and_then(|at| self.function.parameter_attributes.get(at));
        let is_alone = attributes.is_some_and(|attributes| attributes.has("noalias"));
        let restrict = if is_alone { "restrict " } else { "" };
        self.needs.note_element(self.spaces.element_of(part));
        Ok(format!("{text}{restrict}{name}"))
    }

    /// The arrays in local memory, and names for all statics.
    fn arrays(&mut self) -> Result<Vec<String>> {
        let mut symbols: Vec<_> = self.spaces.globals().cloned().collect();
        symbols.sort();
        let mut lines = Vec::new();
        for symbol in symbols {
            if *symbol == *DYNAMIC_SHARED {
                self.needs.dynamic_local = true;
                self.statics.insert(symbol, "dynamic_local".to_owned());
                continue;
            }
            let Some(global) = self.printer.module.globals.get(&symbol) else {
                continue;
            };
            let Some((space, element)) = self.spaces.of_global(&symbol) else {
                continue;
            };
            self.needs.note_element(element);
            if space == Space::Constant {
                return Err(self.error(format!(
                    "it reads the table `{}`, which OpenCL C would declare outside of the kernel; compute the values",
                    crate::error::demangle(&symbol)
                )));
            }
            if space != Space::Local {
                return Err(self.error(format!(
                    "it uses the variable `{}` in global memory, and OpenCL C 1.2 has none; pass a pointer to the kernel",
                    crate::error::demangle(&symbol)
                )));
            }
            let name = super::names::of_symbol(&symbol);
            let name = self.names.unique(Some(&name));
            let (bytes, natural) =
                types::layout(&global.ty).ok_or_else(|| self.no_type(&global.ty))?;
            let align = global.align.unwrap_or(natural).max(element.bytes());
            lines.push(format!(
                "    __local {} {name}[{}]{};",
                element.name(),
                bytes.div_ceil(element.bytes()).max(1),
                alignment(align, element)
            ));
            self.statics.insert(symbol, name);
        }
        Ok(lines)
    }
}

/// The lines with the declarations of their variables.
fn declare(lines: Vec<Line>) -> Vec<String> {
    // Where the braces around each line end.
    let mut ends = vec![lines.len(); lines.len()];
    let mut open: Vec<usize> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        while let Some(last) = open.last()
            && lines[*last].depth > line.depth
        {
            ends[*last] = index;
            open.pop();
        }
        open.push(index);
    }
    let mut defined: HashMap<Part, (usize, u32)> = HashMap::new();
    let mut first_read: HashMap<Part, usize> = HashMap::new();
    let mut last_read: HashMap<Part, usize> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        for read in &line.reads {
            first_read.entry(*read).or_insert(index);
            last_read.insert(*read, index);
        }
        if let Some((part, _)) = &line.defines {
            defined.entry(*part).or_insert((index, 0)).1 += 1;
        }
    }
    let is_here = |part: &Part| {
        defined.get(part).is_some_and(|(at, count)| {
            let first = first_read.get(part).is_none_or(|read| read > at);
            let last = last_read.get(part).is_none_or(|read| *read < ends[*at]);
            *count == 1 && first && last
        })
    };
    let mut top: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut seen: HashMap<Part, ()> = HashMap::new();
    let mut out = Vec::with_capacity(lines.len());
    for line in &lines {
        let indent = "    ".repeat(line.depth);
        let text = match &line.defines {
            Some((part, ty)) if is_here(part) => format!("{indent}{}{}", spaced(ty), line.text),
            Some((part, ty)) => {
                if seen.insert(*part, ()).is_none() {
                    let place = match order.iter().position(|known| known == ty) {
                        Some(place) => place,
                        None => {
                            order.push(ty.clone());
                            order.len() - 1
                        }
                    };
                    let name = line.text.split(' ').next().unwrap_or_default();
                    top.entry((place, ty.clone()))
                        .or_default()
                        .push(name.to_owned());
                }
                format!("{indent}{}", line.text)
            }
            None => match line.label {
                // A label stands at the margin.
                Some(_) => line.text.clone(),
                None => format!("{indent}{}", line.text),
            },
        };
        out.push(text);
    }
    let mut all = Vec::new();
    for ((_, ty), names) in top {
        // Each pointer needs a star of its own.
        let star = if ty.ends_with('*') { "*" } else { "" };
        for names in names.chunks(8) {
            let names = names.join(&format!(", {star}"));
            all.push(format!("    {}{names};", spaced(&ty)));
        }
    }
    all.extend(out);
    all
}

/// A type before a name.
fn spaced(ty: &str) -> String {
    match ty.ends_with('*') {
        true => ty.to_owned(),
        false => format!("{ty} "),
    }
}
