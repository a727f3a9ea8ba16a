//! A function: its head, its arrays in local memory, its variables.
//!
//! A variable is declared where it gets its value if that is one place whose braces hold all of
//! its uses; all others are declared at the top.

use std::collections::{BTreeMap, HashMap};

use super::body::{Body, Line, pointer_type};
use super::instruction::alignment;
use super::needs::{Helper, Needs, PassedPointer, Printer};
use super::spaces::{Part, Spaces};
use super::types::{self, Element, Space};
use super::{names, statics};
use crate::error::{Error, Result, demangle};
use crate::intrinsics::DYNAMIC_SHARED;
use crate::ir::{AttributesExt, Function, LocalId, Symbol, Type};

/// A function as text, and the types of its parameters.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) parameters: Vec<String>,
}

/// Writes a function under a name. To a kernel, all pointers lead to global memory.
pub(super) fn write(
    printer: &Printer<'_>,
    needs: &mut Needs,
    name: &str,
    function: &Function,
    passed: Option<&[PassedPointer]>,
) -> Result<Written> {
    let of_parameters: Vec<Option<Space>> = match passed {
        Some(passed) => passed
            .iter()
            .map(|passed| passed.map(|(space, _)| space))
            .collect(),
        None => {
            let kernel = function.kernel.as_ref();
            let is_by_value =
                |position| kernel.is_some_and(|kernel| kernel.by_value.contains_key(&position));
            let parameters = function.ty.parameters.iter().enumerate();
            parameters
                .map(|(position, ty)| match ty {
                    Type::Pointer(_) if is_by_value(position) => Some(Space::Private),
                    Type::Pointer(_) => Some(Space::Global),
                    _ => None,
                })
                .collect()
        }
    };
    let spaces = Spaces::of(printer.module, function, &of_parameters)?;
    let mut body = Body::new(printer, function, spaces, needs);
    body.find_mixed();
    let mut parameters = Vec::new();
    for (position, id) in function.parameters.iter().enumerate() {
        parameters.push(body.parameter(position, *id)?);
    }
    let mut head = body.arrays()?;
    if let Some(dynamic) = body.statics.get(DYNAMIC_SHARED) {
        let element = body.spaces.of_global(&DYNAMIC_SHARED.into());
        let element = element.map_or(Element::Byte, |(_, element)| element);
        let ty = pointer_type(Space::Local, element.name());
        parameters.push((format!("{ty}{dynamic}"), ty));
    }
    body.blocks()?;
    let result = match &function.ty.result {
        Type::Void => "void".to_owned(),
        ty => match types::parts(ty).as_deref() {
            Some([part]) if !matches!(part.ty, Type::Pointer(_)) => {
                let name = types::scalar_name(&part.ty).map(str::to_owned);
                name.or_else(|| types::vector_name(&part.ty))
                    .ok_or_else(|| body.no_type(ty))?
            }
            _ => {
                return Err(body.error(
                    "a function that returns a pointer or several values has not been inlined; mark it \
                     `#[inline(always)]`",
                ));
            }
        },
    };
    let lines = std::mem::take(&mut body.lines);
    head.extend(declare(lines));
    if function.kernel.is_some() && body.needs.panic_record {
        let ty = "volatile __global uint *";
        parameters.push((format!("{ty}panic_record"), ty.to_owned()));
    }
    let kind = match function.kernel.is_some() {
        true => "__kernel ",
        false => "",
    };
    let list: Vec<&str> = parameters.iter().map(|(text, _)| text.as_str()).collect();
    let one_line = list.join(", ");
    let list = match one_line.len() <= 60 {
        true if list.is_empty() => "void".to_owned(),
        true => one_line,
        false => format!("\n    {}\n", list.join(",\n    ")),
    };
    let mut text = format!("{kind}{result} {name}({list})\n{{\n");
    for line in head {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str("}\n");
    let parameters = parameters.into_iter().map(|(_, ty)| ty).collect();
    Ok(Written { text, parameters })
}

/// Why a function cannot be called.
pub(super) enum Refusal {
    Error(Error),
    /// About the call.
    Reason(String),
}

impl Printer<'_> {
    /// Writes a function that is called with these pointers, unless it has been.
    pub(super) fn helper(
        &self,
        needs: &mut Needs,
        symbol: &Symbol,
        passed: &[PassedPointer],
    ) -> std::result::Result<Helper, Refusal> {
        let key = (symbol.clone(), passed.to_vec());
        match needs.helpers.get(&key) {
            Some(Some(helper)) => return Ok(helper.clone()),
            Some(None) => {
                return Err(Refusal::Reason(format!(
                    "`{}` calls itself, which no function of OpenCL C may; write a loop",
                    demangle(symbol)
                )));
            }
            None => {}
        }
        let Some(function) = self.module.functions.get(symbol) else {
            return Err(Refusal::Reason(format!(
                "`{}` is not defined",
                demangle(symbol)
            )));
        };
        needs.helpers.insert(key.clone(), None);
        let name = format!(
            "function_{}_{}",
            needs.helpers.len(),
            names::of_symbol(symbol)
        );
        let labels = std::mem::take(&mut needs.labels);
        let written = write(self, needs, &name, function, Some(passed));
        needs.labels = labels;
        let Written { text, parameters } = written.map_err(Refusal::Error)?;
        needs.texts_of_helpers.push(text);
        let helper = Helper { name, parameters };
        needs.helpers.insert(key, Some(helper.clone()));
        Ok(helper)
    }
}

impl Body<'_, '_> {
    /// A parameter's declaration and type.
    fn parameter(&mut self, position: usize, id: LocalId) -> Result<(String, String)> {
        let ty = self.function.local_type(id).clone();
        let given = self.function.locals[id.0 as usize].name.clone();
        // rustc passes a slice as `a.0` and `a.1`.
        let wish = match given.as_deref().and_then(|name| name.strip_suffix(".1")) {
            Some(slice) => Some(format!("{slice}_len")),
            None => given.as_deref().map(str::to_owned),
        };
        let name = self.names.unique(wish.as_deref());
        let kernel = self.function.kernel.as_ref();
        if let Some(value) = kernel.and_then(|kernel| kernel.by_value.get(&position)) {
            let ty = self.needs.by_value(value.bytes, value.align);
            let element = self.spaces.element_of((id, 0));
            let pointer = pointer_type(Space::Private, element.name());
            self.name((id, 0), format!("(({pointer})&{name})"));
            return Ok((format!("{ty} {name}"), ty));
        }
        let part = (id, 0);
        if ty == Type::BOOL && kernel.is_some() {
            // A kernel has no parameters of type bool.
            let flag = self.names.unique(Some(&format!("is_{name}")));
            self.push(format!("const bool {flag} = ({name} & 1) != 0;"), &[]);
            self.name(part, flag);
            return Ok((format!("uchar {name}"), "uchar".to_owned()));
        }
        self.needs.note_type(&ty);
        self.name(part, name.clone());
        let text = self.type_of_part(part, &ty)?;
        if !matches!(ty, Type::Pointer(_)) {
            return Ok((format!("{text} {name}"), text));
        }
        let attributes = self.function.parameter_attributes.get(position);
        let is_alone = attributes.is_some_and(|attributes| attributes.has("noalias"));
        let restrict = if is_alone && kernel.is_some() {
            "restrict "
        } else {
            ""
        };
        self.needs.note_element(self.spaces.element_of(part));
        Ok((format!("{text}{restrict}{name}"), text))
    }

    /// The arrays in local memory, and names for all statics.
    fn arrays(&mut self) -> Result<Vec<String>> {
        let mut symbols: Vec<_> = self.spaces.globals().cloned().collect();
        symbols.sort();
        let mut lines = Vec::new();
        for symbol in symbols {
            if *symbol == *DYNAMIC_SHARED {
                self.not_in_helper("dynamic shared memory")?;
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
                let name = statics::constant(self.needs, &symbol, global, element)?;
                self.statics.insert(symbol, name);
                continue;
            }
            if space != Space::Local {
                return Err(self.error(format!(
                    "it uses the variable `{}` in global memory, and OpenCL C 1.2 has none; pass a pointer to the kernel",
                    demangle(&symbol)
                )));
            }
            self.not_in_helper("shared memory")?;
            let name = names::of_symbol(&symbol);
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

    fn not_in_helper(&self, what: &str) -> Result<()> {
        match self.function.kernel {
            Some(_) => Ok(()),
            None => Err(self.error(format!(
                "a function that uses {what} has not been inlined into the kernel, where OpenCL C declares it; mark it \
                 `#[inline(always)]`"
            ))),
        }
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
                // A label is at the margin.
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
