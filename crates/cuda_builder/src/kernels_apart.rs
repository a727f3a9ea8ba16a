//! Divides a module into one for each of its kernels, and joins the PTX of these into what the
//! whole module would give. So after a change only the kernels that it reaches are compiled.
//!
//! libNVVM compiles each kernel for itself as long as they share nothing: if there is no other
//! function, and no variable but arrays in shared memory of one kernel each, and dynamic shared
//! memory, which is declared only. In its PTX only numbers then depend on the kernels before: those
//! of labels, source files and names of inlined functions. Kernels that stay apart may share
//! functions and constants, too: each has a copy of what it reaches. Where there is anything else,
//! the answer is `None`, and the module is compiled as a whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

/// One kernel as a module of its own.
pub(crate) struct Part<'a> {
    pub(crate) kernel: &'a str,
    pub(crate) ir: String,
    pub(crate) needs_libdevice: bool,
}

/// What will become of the PTX of single kernels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Will {
    /// Each kernel stays a module, with its own copy of functions, constants and arrays in shared
    /// memory that others use, too: a launch has one kernel.
    StayApart,
    /// It becomes one module again.
    BeJoined,
    /// The same, of IR with opaque pointers.
    BeJoinedOpaque,
}

/// A module of NVVM IR, as `device_codegen` prints it.
#[derive(Default)]
pub(crate) struct Module<'a> {
    /// What the machine looks like.
    target: Vec<&'a str>,
    /// Names and lines, in the order of the text.
    variables: Vec<(&'a str, &'a str)>,
    declarations: Vec<(&'a str, &'a str)>,
    /// Kernels and others.
    functions: Vec<(&'a str, &'a str)>,
    /// The lines of metadata after their `=`; those with numbers for names are at their numbers.
    named: Vec<(&'a str, &'a str)>,
    nodes: Vec<&'a str>,
}

/// The list of what the kernels are and how they are launched, of which each gets its own lines.
const ANNOTATIONS: &str = "nvvm.annotations";

/// Variables that no kernel writes.
const CONSTANTS: [&str; 2] = [
    " = internal addrspace(1) constant ",
    " = internal addrspace(4) constant ",
];

/// Metadata that is the same for each kernel.
const OF_ALL: [&str; 3] = ["nvvmir.version", "llvm.dbg.cu", "llvm.module.flags"];

impl<'a> Module<'a> {
    pub(crate) fn parse(ir: &'a str) -> Option<Self> {
        let mut module = Module::default();
        let mut rest = ir;
        while !rest.is_empty() {
            let end = match rest.starts_with("define ") {
                true => rest.find("\n}\n")? + 3,
                false => rest.find('\n')? + 1,
            };
            let (item, after) = rest.split_at(end);
            rest = after;
            match item.split([' ', '\n']).next()? {
                "" => {}
                "target" => module.target.push(item),
                "declare" => module.declarations.push((first_name(item)?, item)),
                "define" => module.functions.push((first_name(item)?, item)),
                first if first.starts_with('@') => {
                    module.variables.push((first_name(item)?, item));
                }
                first if first.starts_with('!') => {
                    let (name, value) = item.strip_prefix('!')?.split_once(" = ")?;
                    match name.parse::<usize>() {
                        Ok(number) if number == module.nodes.len() => module.nodes.push(value),
                        Ok(_) => return None,
                        Err(_) => module.named.push((name, value)),
                    }
                }
                _ => return None,
            }
        }
        Some(module)
    }

    /// The kernels as modules of their own, in the order of the text.
    pub(crate) fn parts(&self, will: Will) -> Option<Vec<Part<'a>>> {
        let mut annotations = self.annotations()?;
        let variables: BTreeMap<_, _> = self.variables.iter().copied().collect();
        let (kernels, others): (Vec<_>, Vec<_>) = self
            .functions
            .iter()
            .copied()
            .partition(|(name, _)| annotations.contains_key(name));
        let is_internal = |(_, body): &(_, &str)| body.starts_with("define internal ");
        if !others.is_empty() && (will != Will::StayApart || !others.iter().all(is_internal)) {
            return None;
        }
        let others: BTreeMap<_, _> = others.into_iter().collect();
        let mut owned = BTreeSet::new();
        let mut parts = Vec::new();
        for (kernel, body) in kernels {
            let mut used = BTreeSet::from([kernel]);
            let owned_before = owned.len();
            let mut reached = names(body)?;
            while let Some(name) = reached.pop() {
                if !used.insert(name) {
                    continue;
                }
                if let Some(body) = others.get(name) {
                    reached.extend(names(body)?);
                }
                let Some(line) = variables.get(name) else {
                    continue;
                };
                let is_declared = line.contains(" = external ");
                let is_array = line.contains(" = internal addrspace(3) ");
                let is_constant = CONSTANTS.iter().any(|kind| line.contains(kind));
                if is_constant && will == Will::StayApart {
                    reached.extend(names(line)?);
                    continue;
                }
                let is_own = is_array && (owned.insert(name) || will == Will::StayApart);
                if !is_declared && !is_own {
                    return None;
                }
            }
            // libNVVM's newer half makes one variable of a kernel's arrays and numbers these
            // variables.
            if will == Will::BeJoinedOpaque && owned.len() > owned_before + 1 {
                return None;
            }
            let annotations = annotations.remove(kernel)?;
            parts.push(self.part(kernel, &used, &annotations)?);
        }
        annotations.is_empty().then_some(parts)
    }

    /// The lines of [`ANNOTATIONS`], by kernel.
    fn annotations(&self) -> Option<BTreeMap<&'a str, Vec<usize>>> {
        let mut by_kernel = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in &self.named {
            if *name == ANNOTATIONS {
                for node in nodes(value)? {
                    let kernel = first_name(self.nodes.get(node)?)?;
                    by_kernel.entry(kernel).or_default().push(node);
                }
            } else if !OF_ALL.contains(name) {
                return None;
            }
        }
        Some(by_kernel)
    }

    /// A kernel with what it uses. Metadata has new numbers, so that the text is the same whatever
    /// is in front of the kernel.
    fn part(
        &self,
        kernel: &'a str,
        used: &BTreeSet<&str>,
        annotations: &[usize],
    ) -> Option<Part<'a>> {
        let mut ir = self.target.concat();
        let is_used = |(name, _): &&(&str, &str)| used.contains(name);
        ir.extend(self.variables.iter().filter(is_used).map(|(_, line)| *line));
        let mut numbers = Numbers {
            new: vec![None; self.nodes.len()],
            old: Vec::new(),
        };
        for (_, body) in self.functions.iter().filter(is_used) {
            numbers.copy(body, &mut ir)?;
        }
        let declarations = self.declarations.iter().filter(is_used);
        ir.extend(declarations.clone().map(|(_, line)| *line));
        let annotations: Vec<String> = annotations.iter().map(|node| format!("!{node}")).collect();
        let annotations = format!("!{ANNOTATIONS} = !{{{}}}\n", annotations.join(", "));
        numbers.copy(&annotations, &mut ir)?;
        for (name, value) in self.named.iter().filter(|(name, _)| *name != ANNOTATIONS) {
            let _ = write!(ir, "!{name} = ");
            numbers.copy(value, &mut ir)?;
        }
        let mut next = 0;
        while let Some(node) = numbers.old.get(next) {
            let _ = write!(ir, "!{next} = ");
            numbers.copy(self.nodes.get(*node)?, &mut ir)?;
            next += 1;
        }
        let needs_libdevice = declarations
            .clone()
            .any(|(name, _)| name.starts_with("__nv_"));
        Some(Part {
            kernel,
            ir,
            needs_libdevice,
        })
    }
}

/// Numbers of metadata in the order in which they occur.
struct Numbers {
    new: Vec<Option<usize>>,
    old: Vec<usize>,
}

impl Numbers {
    fn copy(&mut self, text: &str, to: &mut String) -> Option<()> {
        let mut copied = 0;
        for (start, end) in references(text, b'!') {
            let node: usize = text[start..end].parse().ok()?;
            let number = self.new.get_mut(node)?.get_or_insert_with(|| {
                self.old.push(node);
                self.old.len() - 1
            });
            to.push_str(&text[copied..start]);
            let _ = write!(to, "{number}");
            copied = end;
        }
        to.push_str(&text[copied..]);
        Some(())
    }
}

/// The names of functions and variables in the text. None if one is in quotes.
fn names(text: &str) -> Option<Vec<&str>> {
    let found = references(text, b'@').into_iter();
    let names = found.map(|(start, end)| Some(&text[start..end]).filter(|name| !name.is_empty()));
    names.collect()
}

fn first_name(text: &str) -> Option<&str> {
    names(text)?.first().copied()
}

fn nodes(text: &str) -> Option<Vec<usize>> {
    let found = references(text, b'!').into_iter();
    found
        .map(|(start, end)| text[start..end].parse().ok())
        .collect()
}

/// The place of a name (after `@`) or a number (after `!`), outside of strings.
fn references(text: &str, sign: u8) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let byte = bytes[position];
        position += 1;
        if byte == b'"' {
            while position < bytes.len() && bytes[position] != b'"' {
                position += 1;
            }
            position += 1;
        } else if byte == sign {
            let belongs = |byte: &u8| match sign {
                b'!' => byte.is_ascii_digit(),
                _ => byte.is_ascii_alphanumeric() || b"_.$-".contains(byte),
            };
            let length = bytes[position..].iter().take_while(|byte| belongs(byte));
            let end = position + length.count();
            if sign != b'!' || end > position {
                found.push((position, end));
            }
            position = end;
        }
    }
    found
}

/// The PTX of one kernel.
struct Ptx<'a> {
    /// The version and the target.
    head: &'a str,
    /// The text between these and the kernel.
    demoted: Vec<&'a str>,
    declared: Vec<&'a str>,
    entry: &'a str,
    /// By their numbers less one.
    files: Vec<&'a str>,
    /// By their numbers.
    strings: Vec<&'a str>,
    end: &'a str,
}

const LABEL: &str = "$L__BB0_";
const STRING: &str = "$L__info_string";
const DEMOTED: &str = " has been demoted";

impl<'a> Ptx<'a> {
    fn parse(kernel: &str, ptx: &'a str) -> Option<Self> {
        let (head, rest) = ptx.split_once(&format!("\t// .globl\t{kernel}\n"))?;
        let (before, _) = rest.split_once(&format!(".visible .entry {kernel}("))?;
        let rest = &rest[before.len()..];
        let (entry, mut tail) = rest.split_at(rest.rfind("\n}\n")? + 3);
        let (mut demoted, mut declared) = (Vec::new(), Vec::new());
        for line in before.lines().filter(|line| !line.is_empty()) {
            if line.starts_with("// ") && line.ends_with(DEMOTED) {
                demoted.push(line);
            } else if line.starts_with(".extern .shared ") {
                declared.push(line);
            } else {
                return None;
            }
        }
        let mut files = Vec::new();
        while let Some(after) = tail.strip_prefix(&format!("\t.file\t{} ", files.len() + 1)) {
            let (file, after) = after.split_once('\n')?;
            files.push(file);
            tail = after;
        }
        let mut strings = Vec::new();
        if let Some(after) = tail.strip_prefix("\t.section\t.debug_str\n\t{\n") {
            tail = after;
            while let Some(after) = tail.strip_prefix(&format!("{STRING}{}:\n", strings.len())) {
                let bytes = after.split_inclusive('\n');
                let bytes = bytes.take_while(|line| line.starts_with(".b8 "));
                let (string, after) = after.split_at(bytes.map(str::len).sum());
                strings.push(string);
                tail = after;
            }
        }
        Some(Ptx {
            head,
            demoted,
            declared,
            entry,
            files,
            strings,
            end: tail,
        })
    }
}

/// The PTX of the whole module, from that of its kernels.
pub(crate) fn join(module: &Module, kernels: &[(&str, String)]) -> Option<String> {
    let all = kernels.iter().map(|(kernel, ptx)| Ptx::parse(kernel, ptx));
    let all = all.collect::<Option<Vec<_>>>()?;
    let first = all.first()?;
    let mut joined = format!("{}\t// .globl\t{}\n", first.head, kernels.first()?.0);
    // In the order of the variables.
    let mut demoted: BTreeSet<&str> = all.iter().flat_map(|ptx| ptx.demoted.clone()).collect();
    for (name, _) in &module.variables {
        let line = format!("// {name}{DEMOTED}");
        if demoted.remove(line.as_str()) {
            joined.extend([&line, "\n"]);
        }
    }
    let declared: BTreeSet<&str> = all.iter().flat_map(|ptx| ptx.declared.clone()).collect();
    if !demoted.is_empty() || declared.len() > 1 {
        return None;
    }
    joined.extend(declared.into_iter().flat_map(|line| [line, "\n"]));
    joined.push('\n');

    let (mut files, mut strings) = (InOrder::default(), InOrder::default());
    for (index, ptx) in all.iter().enumerate() {
        if index > 0 {
            let _ = writeln!(joined, "\t// .globl\t{}", kernels[index].0);
        }
        let has_same_end = ptx.end == first.end && ptx.files.is_empty() == first.files.is_empty();
        if ptx.head != first.head || !has_same_end {
            return None;
        }
        let mut used = (BTreeSet::new(), BTreeSet::new());
        let mut renumbered = |line: &str, to: &mut String| {
            let Some(place) = line.strip_prefix("\t.loc\t") else {
                let label = format!("$L__BB{index}_");
                if line.replace(LABEL, "").contains("$L__") {
                    return None; // of another kind
                }
                to.push_str(&line.replace(LABEL, &label));
                return Some(());
            };
            let mut file = |place: &'_ str, to: &mut String| {
                let (number, rest) = place.split_once(' ')?;
                let number = number.parse::<usize>().ok()?.checked_sub(1)?;
                used.0.insert(number);
                let new = files.number(ptx.files.get(number)?) + 1;
                let _ = write!(to, "{new} {rest}");
                Some(())
            };
            to.push_str("\t.loc\t");
            let inlined = ", function_name ";
            let Some((place, inlined_at)) = place.split_once(inlined) else {
                return file(place, to);
            };
            file(place, to)?;
            let (name, place) = inlined_at.split_once(", inlined_at ")?;
            let number = name.strip_prefix(STRING)?.parse::<usize>().ok()?;
            used.1.insert(number);
            let new = strings.number(ptx.strings.get(number)?);
            let _ = write!(to, "{inlined}{STRING}{new}, inlined_at ");
            file(place, to)
        };
        for line in ptx.entry.split_inclusive('\n') {
            renumbered(line, &mut joined)?;
        }
        // The place of one that no line mentions is not known.
        if used.0.len() != ptx.files.len() || used.1.len() != ptx.strings.len() {
            return None;
        }
    }
    for (index, file) in files.all.iter().enumerate() {
        let _ = writeln!(joined, "\t.file\t{} {file}", index + 1);
    }
    if !strings.all.is_empty() {
        joined.push_str("\t.section\t.debug_str\n\t{\n");
    }
    for (index, string) in strings.all.iter().enumerate() {
        let _ = write!(joined, "{STRING}{index}:\n{string}");
    }
    joined.push_str(first.end);
    Some(joined)
}

/// Texts, numbered in the order in which they first occur.
#[derive(Default)]
struct InOrder<'a> {
    numbers: HashMap<&'a str, usize>,
    all: Vec<&'a str>,
}

impl<'a> InOrder<'a> {
    fn number(&mut self, text: &'a str) -> usize {
        *self.numbers.entry(text).or_insert_with(|| {
            self.all.push(text);
            self.all.len() - 1
        })
    }
}
