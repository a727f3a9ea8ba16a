//! An expression of C: its text, how tightly it binds, and what it reads.

use super::spaces::Part;

/// How tightly an operator binds; less binds tighter.
pub(super) mod rank {
    pub(in super::super) const PRIMARY: u8 = 0;
    pub(in super::super) const UNARY: u8 = 1;
    pub(in super::super) const PRODUCT: u8 = 2;
    pub(in super::super) const SUM: u8 = 3;
    pub(in super::super) const SHIFT: u8 = 4;
    pub(in super::super) const RELATION: u8 = 5;
    pub(in super::super) const EQUALITY: u8 = 6;
    pub(in super::super) const AND: u8 = 7;
    pub(in super::super) const XOR: u8 = 8;
    pub(in super::super) const OR: u8 = 9;
    pub(in super::super) const BOTH: u8 = 10;
    pub(in super::super) const EITHER: u8 = 11;
    pub(in super::super) const CONDITIONAL: u8 = 12;
}

/// An expression without side effects.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    pub(super) rank: u8,
    /// The variables in it.
    pub(super) reads: Vec<Part>,
    /// Whether it reads memory, so that it must not move behind a write.
    pub(super) loads: bool,
    /// Whether it has a product of floats, which a sum around it might be fused with.
    pub(super) has_product: bool,
    /// Whether it must not be fused with what uses it.
    pub(super) is_rounded: bool,
    /// For a pointer that is a sum: the pointer and the index.
    pub(super) indexed: Option<(String, String)>,
}

impl Expression {
    /// A constant, or something else that never changes.
    pub(super) fn constant(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            rank: rank::PRIMARY,
            reads: Vec::new(),
            loads: false,
            has_product: false,
            is_rounded: false,
            indexed: None,
        }
    }

    pub(super) fn variable(part: Part, name: &str) -> Self {
        Self {
            reads: vec![part],
            ..Self::constant(name)
        }
    }

    /// An expression that is made of others.
    pub(super) fn of(text: String, rank: u8, operands: &[&Expression]) -> Self {
        Self {
            text,
            rank,
            reads: operands
                .iter()
                .flat_map(|operand| operand.reads.iter().copied())
                .collect(),
            loads: operands.iter().any(|operand| operand.loads),
            has_product: operands.iter().any(|operand| operand.has_product),
            is_rounded: false,
            indexed: None,
        }
    }

    /// The text as an operand of an operator that binds this tightly.
    pub(super) fn at(&self, rank: u8) -> String {
        match self.rank > rank {
            true => format!("({})", self.text),
            false => self.text.clone(),
        }
    }

    /// `left operator right`
    pub(super) fn binary(left: &Self, operator: &str, right: &Self, rank: u8) -> Self {
        // Operators whose order of precedence few know by heart get parentheses.
        let inner = match rank {
            rank::SHIFT | rank::AND | rank::XOR | rank::OR => rank::UNARY,
            rank::EQUALITY => rank::SUM,
            rank::BOTH | rank::EITHER => rank::EQUALITY,
            rank::RELATION => rank::SUM,
            _ => rank,
        };
        let right_rank = inner.min(rank.saturating_sub(1));
        let text = format!("{} {operator} {}", left.at(inner), right.at(right_rank));
        Self::of(text, rank, &[left, right])
    }

    /// `name(operand)`
    pub(super) fn call(name: &str, operands: &[&Expression]) -> Self {
        let list: Vec<&str> = operands
            .iter()
            .map(|operand| operand.text.as_str())
            .collect();
        let text = format!("{name}({})", list.join(", "));
        Self::of(text, rank::PRIMARY, operands)
    }

    /// `(type)operand`
    pub(super) fn cast(ty: &str, operand: &Self) -> Self {
        let text = format!("({ty}){}", operand.at(rank::UNARY));
        Self::of(text, rank::UNARY, &[operand])
    }

    /// `!operand`
    pub(super) fn not(operand: &Self) -> Self {
        if let Some(inner) = operand.text.strip_prefix('!')
            && operand.rank == rank::UNARY
        {
            let rank = rank::UNARY;
            return Self::of(inner.to_owned(), rank, &[operand]);
        }
        let text = format!("!{}", operand.at(rank::UNARY));
        Self::of(text, rank::UNARY, &[operand])
    }

    /// What the pointer leads to.
    pub(super) fn target(&self) -> Self {
        let (text, rank) = match &self.indexed {
            Some((base, index)) => (format!("{base}[{index}]"), rank::PRIMARY),
            None => (format!("*{}", self.at(rank::UNARY)), rank::UNARY),
        };
        Self::of(text, rank, &[self])
    }
}
