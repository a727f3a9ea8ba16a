//! Sums, differences and products of integers that say whether they overflow.

use super::body::Body;
use super::calls::refused;
use super::expression::{Expression, rank};
use super::types::{scalar_name, signed_name};
use crate::error::Result;
use crate::ir::{Call, LocalId, Type};

impl Body<'_, '_> {
    /// The result, and whether it has overflowed.
    pub(super) fn with_overflow(
        &mut self,
        result: Option<LocalId>,
        name: &str,
        call: &Call,
    ) -> Result<()> {
        let Some(id) = result else { return Ok(()) };
        let (Some(ty), [left, right]) = (call.ty.parameters.first(), call.arguments.as_slice())
        else {
            return Err(self.error(refused(name)));
        };
        let width = ty.integer_width().unwrap_or(0);
        let (Some(signed), Some(unsigned)) = (signed_name(width), scalar_name(ty)) else {
            return Err(self.no_type(ty));
        };
        let last = width - 1;
        let (left, right) = (self.value(ty, left)?, self.value(ty, right)?);
        let (left, right) = (
            self.kept("left", unsigned, left),
            self.kept("right", unsigned, right),
        );
        let (l, r) = (left.text.as_str(), right.text.as_str());
        let operation = name
            .trim_start_matches("llvm.")
            .split('.')
            .next()
            .unwrap_or_default();
        let operator = match operation.get(1..) {
            Some("add") => "+",
            Some("sub") => "-",
            Some("mul") => "*",
            _ => return Err(self.error(refused(name))),
        };
        let wide = if width < 32 { "(uint)" } else { "" };
        let value = Expression::of(
            format!("({unsigned})({wide}{l} {operator} {wide}{r})"),
            rank::UNARY,
            &[&left, &right],
        );
        self.assign((id, 0), ty, value)?;
        let value = self.variable((id, 0));
        let test = match operation {
            "uadd" => format!("{value} < {l}"),
            "usub" => format!("{l} < {r}"),
            "umul" => format!("mul_hi({l}, {r}) != 0"),
            "sadd" => format!("((({l} ^ {value}) & ({r} ^ {value})) >> {last} & 1) != 0"),
            "ssub" => format!("((({l} ^ {r}) & ({l} ^ {value})) >> {last} & 1) != 0"),
            _ => format!(
                "mul_hi(as_{signed}({l}), as_{signed}({r})) != (as_{signed}({value}) >> {last})"
            ),
        };
        let mut test = Expression::of(test, rank::EQUALITY, &[&left, &right]);
        test.reads.push((id, 0));
        self.assign((id, 1), &Type::BOOL, test)
    }
}
