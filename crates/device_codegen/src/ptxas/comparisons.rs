//! Which comparisons of a function `ptxas` could take for one another.

use std::collections::HashMap;

use super::text::parts;

/// The comparisons of 32 bits of a function.
pub(super) struct Comparisons<'p> {
    copies: Copies<'p>,
    kinds: HashMap<Relation<'p>, Vec<Kind>>,
}

/// How the bits of both sides are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    /// Also a test of integers for equality.
    Signed,
    Unsigned,
}

/// What is compared: `a < b` and `a >= b` are one relation, and so are `b > a` and `b <= a`.
#[derive(PartialEq, Eq, Hash)]
struct Relation<'p> {
    equality: bool,
    left: Side<'p>,
    right: Side<'p>,
}

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Side<'p> {
    /// A register of which it is a copy.
    Register(&'p str),
    Bits(u32),
}

impl<'p> Comparisons<'p> {
    pub(super) fn of(function: &'p str) -> Self {
        let mut found = Self {
            copies: Copies::of(function),
            kinds: HashMap::new(),
        };
        for line in function.lines() {
            if let Some((_, opcode, operands)) = parts(line)
                && let Some((relation, kind)) = found.relation(opcode, operands)
            {
                found.kinds.entry(relation).or_default().push(kind);
            }
        }
        found
    }

    /// The mask of lanes with which `%lanemask_eq` has nothing in common, if this comparison must
    /// be told from one of another kind: from two others by two different masks.
    pub(super) fn mask(&self, opcode: &str, operands: &'p str) -> Option<&'static str> {
        let (relation, kind) = self.relation(opcode, operands)?;
        let kinds = &self.kinds[&relation];
        match kind {
            Kind::Signed if kinds.iter().any(|other| *other != Kind::Signed) => {
                Some("%lanemask_lt")
            }
            Kind::Unsigned if kinds.contains(&Kind::Float) => Some("%lanemask_gt"),
            _ => None,
        }
    }

    fn relation(&self, opcode: &str, operands: &'p str) -> Option<(Relation<'p>, Kind)> {
        let mut words = opcode.split('.');
        if words.next() != Some("setp") {
            return None;
        }
        let (operator, ty) = (words.next()?, words.next_back()?);
        let mut sides = operands.split(',').skip(1).map(|side| self.side(side));
        let (left, right) = (sides.next()??, sides.next()??);
        let (equality, swapped) = match operator {
            "eq" | "equ" | "ne" | "neu" => (true, right < left),
            "lt" | "ltu" | "lo" | "ge" | "geu" | "hs" => (false, false),
            "gt" | "gtu" | "hi" | "le" | "leu" | "ls" => (false, true),
            _ => return None,
        };
        let kind = match ty {
            "f32" => Kind::Float,
            "s32" | "u32" | "b32" if equality => Kind::Signed,
            "s32" => Kind::Signed,
            "u32" => Kind::Unsigned,
            _ => return None,
        };
        let (left, right) = if swapped {
            (right, left)
        } else {
            (left, right)
        };
        let relation = Relation {
            equality,
            left,
            right,
        };
        Some((relation, kind))
    }

    fn side(&self, operand: &'p str) -> Option<Side<'p>> {
        let operand = operand.trim();
        if operand.starts_with('%') {
            return Some(Side::Register(self.copies.origin(operand)));
        }
        let bits = match operand.strip_prefix("0f") {
            Some(float) => u32::from_str_radix(float, 16).ok()?,
            None => operand.parse::<i64>().ok()? as u32,
        };
        Some(Side::Bits(bits))
    }
}

/// Registers that hold the same bits, or a half of another's: a forest, each with its parent.
struct Copies<'p>(HashMap<&'p str, &'p str>);

impl<'p> Copies<'p> {
    fn of(function: &'p str) -> Self {
        let mut copies = Self(HashMap::new());
        for line in function.lines() {
            let Some((_, opcode, operands)) = parts(line) else {
                continue;
            };
            let is_copy = opcode.starts_with("mov.")
                || matches!(opcode, "cvt.u32.u64" | "cvt.u64.u32" | "cvt.s64.s32")
                || opcode == "shr.u64" && operands.ends_with(" 32");
            if !is_copy {
                continue;
            }
            // libNVVM names the half that it does not need `%temp`, everywhere.
            let mut registers = operands
                .split([',', '{', '}', ' ', '\t'])
                .filter(|register| register.starts_with('%') && *register != "%temp");
            if let Some(first) = registers.next() {
                for other in registers {
                    let (first, other) = (copies.origin(first), copies.origin(other));
                    if first != other {
                        copies.0.insert(other, first);
                    }
                }
            }
        }
        copies
    }

    fn origin(&self, register: &'p str) -> &'p str {
        let mut origin = register;
        while let Some(parent) = self.0.get(origin) {
            origin = parent;
        }
        origin
    }
}
