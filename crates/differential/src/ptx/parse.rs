//! PTX text as functions of instructions.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::{Context, Result, bail};

/// What an instruction reads or writes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Register(usize),
    /// An integer, or the bits of a float.
    Number(u64),
    /// A special register, a variable, a label, a function, or `_`.
    Name(String),
    /// `[%rd1+8]`
    Address(Box<Operand>, u64),
    /// `{%r1, %r2}`, and the parentheses of a call.
    List(Vec<Operand>),
    /// `%p1|%p2`
    Pair(Box<Operand>, Box<Operand>),
}

#[derive(Clone, Debug)]
pub(super) struct Instruction {
    /// The predicate register, and whether it must be false.
    pub(super) guard: Option<(usize, bool)>,
    /// `add`, `s32`, ...: the opcode at its dots.
    pub(super) opcode: Vec<String>,
    pub(super) operands: Vec<Operand>,
    pub(super) text: String,
}

impl Instruction {
    pub(super) fn has(&self, part: &str) -> bool {
        self.opcode.iter().any(|other| other == part)
    }
}

/// An entry point or a function.
#[derive(Debug, Default)]
pub(super) struct Function {
    pub(super) parameters: Vec<(String, usize)>,
    /// The width of each register in bits; 1 for predicates.
    pub(super) widths: Vec<u32>,
    pub(super) labels: HashMap<String, usize>,
    /// The labels that a `brx.idx` may go to.
    pub(super) tables: HashMap<String, Vec<String>>,
    /// Variables in local and parameter memory, with their sizes.
    pub(super) variables: Vec<(String, usize)>,
    pub(super) body: Vec<Instruction>,
    /// Shared memory that only it uses.
    shared: Vec<Global>,
    registers: HashMap<String, usize>,
    /// For each inner scope the registers that it declares, and what had these names outside.
    scopes: Vec<Vec<(String, Option<usize>)>>,
    prefixes: Vec<(String, u32)>,
}

/// A module of PTX.
#[derive(Debug, Default)]
pub struct Module {
    pub(super) functions: HashMap<String, Function>,
    /// Variables in global, constant and shared memory.
    pub(super) globals: Vec<Global>,
}

/// A variable in global, constant or shared memory.
#[derive(Debug)]
pub(super) struct Global {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// The addresses that it begins with, such as those of a table of methods.
    pub(super) addresses: Vec<Address>,
}

/// An address, or one byte of it, within a variable.
#[derive(Debug)]
pub(super) struct Address {
    /// Which bytes of the variable it is.
    pub(super) place: Range<usize>,
    /// The function or the variable, and how far behind its beginning.
    pub(super) symbol: String,
    pub(super) offset: u64,
    /// The lowest of the address's bits that is kept.
    pub(super) shift: u32,
}

impl Module {
    /// Reads a module.
    pub fn parse(ptx: &str) -> Result<Self> {
        let text: String = ptx
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default())
            .filter(|line| {
                let directive = line.split_whitespace().next();
                !matches!(
                    directive,
                    Some(".version" | ".target" | ".address_size" | ".loc" | ".file")
                )
            })
            .collect::<Vec<_>>()
            .join("\n");
        let mut module = Self::default();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest
                .find([';', '{'])
                .context("text after the last function")?;
            let head = rest[..end].trim();
            let is_function = head.contains(".entry") || head.contains(".func");
            if !is_function {
                let end = rest.find(';').context("a variable without an end")?;
                module.globals.push(global(&rest[..end])?);
                rest = rest[end + 1..].trim_start();
                continue;
            }
            if rest[end..].starts_with(';') {
                rest = rest[end + 1..].trim_start();
                continue; // a declaration
            }
            let close = matching_brace(rest, end).context("a function without an end")?;
            let (name, mut function) = function(head, &rest[end + 1..close])
                .with_context(|| format!("in `{}`", head.replace('\n', " ")))?;
            module.globals.append(&mut function.shared);
            module.functions.insert(name, function);
            rest = rest[close + 1..].trim_start();
        }
        Ok(module)
    }

    /// The instructions of a module, for a report.
    pub fn instructions(&self) -> usize {
        self.functions
            .values()
            .map(|function| function.body.len())
            .sum()
    }
}

fn matching_brace(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Bytes of a type such as `.b64`.
fn size_of(ty: &str) -> Result<usize> {
    let digits = ty.trim_start_matches(|c: char| !c.is_ascii_digit());
    Ok(digits
        .parse::<usize>()
        .with_context(|| format!("the type `{ty}`"))?
        / 8)
}

/// `.param .align 8 .b8 name[16]`, `.param .u64 .ptr .align 8 name` and their like: name and size.
fn variable(text: &str) -> Result<(String, usize)> {
    let name = text
        .split_whitespace()
        .last()
        .context("a variable without a name")?;
    let unit = unit_of(text)?;
    Ok(match name.split_once('[') {
        Some((name, count)) => {
            let count: usize = count.trim_end_matches(']').parse()?;
            (name.to_owned(), unit * count)
        }
        None => (name.to_owned(), unit),
    })
}

/// Bytes of the type among the words of a declaration.
fn unit_of(declaration: &str) -> Result<usize> {
    let mut words = declaration.split_whitespace();
    let ty = words.find(|word| {
        let digits = word
            .strip_prefix('.')
            .and_then(|ty| ty.strip_prefix(['b', 's', 'u', 'f']));
        digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
    });
    size_of(ty.context("a variable without a type")?)
}

fn global(text: &str) -> Result<Global> {
    let (declared, values) = match text.split_once('=') {
        Some((declared, values)) => (declared, values.trim().trim_matches(['{', '}'])),
        None => (text, ""),
    };
    let (name, size) = variable(declared.trim())?;
    let unit = unit_of(declared)?;
    let mut bytes = Vec::with_capacity(size);
    let mut addresses = Vec::new();
    for value in values
        .split(',')
        .map(str::trim)
        .filter(|value| !value.is_empty())
    {
        let place = bytes.len()..bytes.len() + unit;
        let is_number = value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let value = if !is_number || value.contains('(') {
            addresses.push(address(value, place).with_context(|| format!("the value `{value}`"))?);
            0
        } else {
            number(value).with_context(|| format!("the value `{value}`"))?
        };
        bytes.extend(&value.to_le_bytes()[..unit]);
    }
    // Shared memory begins with anything.
    let fill = if declared.contains(".shared") {
        0xFF
    } else {
        0
    };
    bytes.resize(size, fill);
    Ok(Global {
        name,
        bytes,
        addresses,
    })
}

/// `name`, `generic(name)+8`, or a byte of these: `0xFF00(name)`.
fn address(text: &str, place: Range<usize>) -> Option<Address> {
    let (shift, inner) = match text.split_once('(') {
        Some((mask, inner)) if mask.starts_with('0') => {
            (number(&mask.to_lowercase())?.trailing_zeros(), inner)
        }
        _ => (0, text),
    };
    let (symbol, offset) = inner.split_once('+').unwrap_or((inner, "0"));
    Some(Address {
        place,
        symbol: symbol
            .trim_start_matches("generic(")
            .trim_end_matches(')')
            .to_owned(),
        offset: number(offset.trim_end_matches(')'))?,
        shift,
    })
}

fn function(head: &str, body: &str) -> Result<(String, Function)> {
    let mut function = Function::default();
    let after = head
        .split(".entry")
        .nth(1)
        .or_else(|| head.split(".func").nth(1));
    let mut after = after.unwrap_or_default().trim();
    // The result of a `.func` comes before its name.
    if let Some(inner) = after.strip_prefix('(') {
        let (result, rest) = inner.split_once(')').context("a result without an end")?;
        function.variables.push(variable(result)?);
        after = rest.trim();
    }
    let (name, parameters) = after.split_once('(').unwrap_or((after, ")"));
    let parameters = parameters.split(')').next().unwrap_or_default();
    for parameter in parameters
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
    {
        function.parameters.push(variable(parameter)?);
    }
    for statement in statements(body) {
        function
            .statement(&statement)
            .with_context(|| format!("in `{statement}`"))?;
    }
    Ok((name.trim().to_owned(), function))
}

/// The statements of a body. A brace around a scope is one, and so is a label.
fn statements(body: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current = String::new();
    for c in body.chars() {
        match c {
            ';' => found.push(std::mem::take(&mut current)),
            '{' | '}' if current.trim().is_empty() => found.push(c.to_string()),
            ':' if !current.contains(char::is_whitespace)
                || !current.trim().contains(char::is_whitespace) =>
            {
                found.push(format!("{}:", std::mem::take(&mut current).trim()));
            }
            _ => current.push(c),
        }
    }
    found
        .into_iter()
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .collect()
}

impl Function {
    fn statement(&mut self, text: &str) -> Result<()> {
        if text == "{" {
            self.scopes.push(Vec::new());
            return Ok(());
        }
        if text == "}" {
            for (name, outer) in self.scopes.pop().into_iter().flatten() {
                match outer {
                    Some(register) => self.registers.insert(name, register),
                    None => self.registers.remove(&name),
                };
            }
            return Ok(());
        }
        if let Some(label) = text.strip_suffix(':') {
            self.labels.insert(label.to_owned(), self.body.len());
            return Ok(());
        }
        if let Some(table) = text.strip_prefix(".branchtargets") {
            let (name, _) = self
                .labels
                .iter()
                .find(|(_, at)| **at == self.body.len())
                .context("a table without a name")?;
            let targets = table
                .split(',')
                .map(|label| label.trim().to_owned())
                .collect();
            self.tables.insert(name.clone(), targets);
            return Ok(());
        }
        if let Some(rest) = text.strip_prefix(".reg") {
            let (ty, names) = rest
                .trim()
                .split_once(char::is_whitespace)
                .context("registers without names")?;
            let width = match ty {
                ".pred" => 1,
                _ => size_of(ty)? as u32 * 8,
            };
            for name in names.split(',').map(str::trim) {
                let prefix = name.split('<').next().unwrap_or(name);
                // An inner scope's register may have an outer one's name.
                if let Some(scope) = self.scopes.last_mut() {
                    scope.push((name.to_owned(), self.registers.remove(name)));
                }
                self.prefixes.retain(|(known, _)| known != prefix);
                self.prefixes.push((prefix.to_owned(), width));
            }
            return Ok(());
        }
        if text.starts_with(".local") || text.starts_with(".param") {
            let found = variable(text)?;
            if !self.variables.contains(&found) {
                self.variables.push(found);
            }
            return Ok(());
        }
        if text.starts_with(".shared") {
            self.shared.push(global(text)?);
            return Ok(());
        }
        if text.starts_with('.') {
            return Ok(()); // `.pragma`, `.maxntid`
        }
        let (guard, rest) = match text.strip_prefix('@') {
            Some(rest) => {
                let (name, rest) = rest
                    .split_once(char::is_whitespace)
                    .context("a guard alone")?;
                let negated = name.starts_with('!');
                match self.operand(name.trim_start_matches('!'))? {
                    Operand::Register(register) => (Some((register, negated)), rest.trim()),
                    _ => bail!("a guard that is no register"),
                }
            }
            None => (None, text),
        };
        let (opcode, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let operands = split_list(operands)
            .iter()
            .map(|operand| self.operand(operand))
            .collect::<Result<_>>()?;
        self.body.push(Instruction {
            guard,
            opcode: opcode.split('.').map(str::to_owned).collect(),
            operands,
            text: text.to_owned(),
        });
        Ok(())
    }

    fn operand(&mut self, text: &str) -> Result<Operand> {
        let text = text.trim();
        if let Some(inner) = text.strip_prefix(['{', '(']) {
            let inner = inner.trim_end_matches(['}', ')']);
            let list = split_list(inner)
                .iter()
                .map(|part| self.operand(part))
                .collect::<Result<_>>()?;
            return Ok(Operand::List(list));
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.trim_end_matches(']');
            let (base, offset) = match inner.split_once('+') {
                Some((base, offset)) => (base, number(offset).context("an offset")?),
                None => (inner, 0),
            };
            return Ok(Operand::Address(Box::new(self.operand(base)?), offset));
        }
        if let Some((left, right)) = text.split_once('|') {
            return Ok(Operand::Pair(
                Box::new(self.operand(left)?),
                Box::new(self.operand(right)?),
            ));
        }
        if let Some(number) = number(text) {
            return Ok(Operand::Number(number));
        }
        if let Some(register) = self.registers.get(text) {
            return Ok(Operand::Register(*register));
        }
        let prefix = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let width = self
            .prefixes
            .iter()
            .find(|(known, _)| known == prefix || known == text);
        match width {
            Some((_, width)) => {
                self.widths.push(*width);
                self.registers
                    .insert(text.to_owned(), self.widths.len() - 1);
                Ok(Operand::Register(self.widths.len() - 1))
            }
            None => Ok(Operand::Name(text.to_owned())),
        }
    }
}

/// Splits at the commas outside of brackets.
fn split_list(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
        .into_iter()
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(bits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0d")) {
        return u64::from_str_radix(bits, 16).ok();
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex.trim_end_matches('U'), 16).ok();
    }
    let text = text.trim_end_matches('U');
    text.parse::<u64>()
        .ok()
        .or_else(|| Some(text.parse::<i64>().ok()? as u64))
}
