//! Arithmetic, comparisons and conversions, exact as the IR defines them.
//!
//! Integers are unsigned in C, so that they wrap; narrow ones, which C computes as `int`, are cast
//! back. Shifts by the width or more have no value in the IR, and any will do. The pragma at the
//! head of the file says whether products and sums of floats may be fused.

use super::body::Body;
use super::expression::{Expression, rank};
use super::kernel::Contraction;
use super::types::{scalar_name, signed_name, vector_name};
use crate::error::Result;
use crate::ir::{CastOperation, Constant, Operand, Type, Value};

impl Body<'_, '_> {
    pub(super) fn binary(
        &mut self,
        operation: &str,
        ty: &Type,
        left: &Value,
        right: &Value,
    ) -> Result<Expression> {
        let element = match ty {
            Type::Vector(_, element) => element,
            _ => ty,
        };
        let name = match scalar_name(ty) {
            Some(name) => name.to_owned(),
            None => vector_name(ty).ok_or_else(|| self.no_type(ty))?,
        };
        if operation == "frem" || element.is_float() {
            return self.float_binary(operation, ty, left, right);
        }
        let width = element.integer_width().unwrap_or(0);
        // `x ^ -1`
        let is_inverted = operation == "xor" && right.as_integer() == Some(-1);
        let is_flipped = operation == "xor"
            && width == 1
            && right.as_integer().is_some_and(|value| value & 1 == 1);
        let (left, right) = (self.value(ty, left)?, self.value(ty, right)?);
        if is_flipped && *ty == Type::BOOL {
            return Ok(Expression::not(&left));
        }
        let (operator, rank) = match operation {
            "add" => ("+", rank::SUM),
            "sub" => ("-", rank::SUM),
            "mul" => ("*", rank::PRODUCT),
            "udiv" | "sdiv" => ("/", rank::PRODUCT),
            "urem" | "srem" => ("%", rank::PRODUCT),
            "shl" => ("<<", rank::SHIFT),
            "lshr" | "ashr" => (">>", rank::SHIFT),
            "and" => ("&", rank::AND),
            "or" => ("|", rank::OR),
            "xor" => ("^", rank::XOR),
            _ => return Err(self.error(format!("`{operation}` has no operator in OpenCL C"))),
        };
        if width == 1 {
            return match operation {
                "and" | "or" | "xor" => Ok(Expression::binary(&left, operator, &right, rank)),
                _ => Err(self.error(format!(
                    "`{operation}` of truth values has no operator in OpenCL C"
                ))),
            };
        }
        if is_inverted && width >= 32 {
            let text = format!("~{}", left.at(rank::UNARY));
            return Ok(Expression::of(text, rank::UNARY, &[&left]));
        }
        let is_signed = matches!(operation, "sdiv" | "srem" | "ashr");
        let (left, right) = match is_signed {
            true => {
                let signed = signed_name(width).ok_or_else(|| self.no_type(ty))?;
                let signed = format!(
                    "as_{signed}{}",
                    name.trim_start_matches(char::is_alphabetic)
                );
                let right = match operation {
                    "ashr" => right,
                    _ => Expression::call(&signed, &[&right]),
                };
                (Expression::call(&signed, &[&left]), right)
            }
            // The product of two ushorts may be too great for an int.
            false if width < 32 && *ty == *element => (
                Expression::cast("uint", &left),
                Expression::cast("uint", &right),
            ),
            false => (left, right),
        };
        let result = Expression::binary(&left, operator, &right, rank);
        Ok(match (is_signed, width < 32 && *ty == *element) {
            (_, true) => Expression::cast(&name, &result),
            (true, false) => Expression::call(&format!("as_{name}"), &[&result]),
            (false, false) => result,
        })
    }

    fn float_binary(
        &mut self,
        operation: &str,
        ty: &Type,
        left: &Value,
        right: &Value,
    ) -> Result<Expression> {
        let (left, right) = (self.value(ty, left)?, self.value(ty, right)?);
        self.needs.note_type(ty);
        let (operator, rank) = match operation {
            "fadd" => ("+", rank::SUM),
            "fsub" => ("-", rank::SUM),
            "fmul" => ("*", rank::PRODUCT),
            "fdiv" => {
                self.needs.correct_rounding |= *ty != Type::Double;
                ("/", rank::PRODUCT)
            }
            "frem" => return Ok(Expression::call("fmod", &[&left, &right])),
            _ => return Err(self.error(format!("`{operation}` has no operator in OpenCL C"))),
        };
        let mut result = Expression::binary(&left, operator, &right, rank);
        result.has_product |= operation == "fmul";
        Ok(result)
    }

    /// `left + right` or `left * right`, rounded by itself, whatever the context.
    pub(super) fn rounded(
        &mut self,
        operator: &str,
        rank: u8,
        ty: &Type,
        operands: [&Expression; 2],
    ) -> Result<Expression> {
        if self.printer.contraction == Contraction::Forbidden {
            let [left, right] = operands;
            return Ok(Expression::binary(left, operator, right, rank));
        }
        let name = scalar_name(ty).ok_or_else(|| self.no_type(ty))?;
        let [left, right] = operands.map(|operand| match operand.has_product {
            true => self.kept("product", name, operand.clone()),
            false => operand.clone(),
        });
        let mut result = Expression::binary(&left, operator, &right, rank);
        result.is_rounded = true;
        Ok(result)
    }

    /// `icmp` and `fcmp` of scalars.
    pub(super) fn compare(
        &mut self,
        predicate: &str,
        ty: &Type,
        left: &Value,
        right: &Value,
    ) -> Result<Expression> {
        if let Type::Vector(..) = ty {
            return Err(
                self.error("a comparison of vectors cannot be written; compare their elements")
            );
        }
        let (left, right) = (self.value(ty, left)?, self.value(ty, right)?);
        let (left, right) = match ty {
            Type::Pointer(_) if !matches!(predicate, "eq" | "ne") => (
                Expression::cast("ulong", &left),
                Expression::cast("ulong", &right),
            ),
            _ if predicate.starts_with('s') => {
                let width = ty.integer_width().unwrap_or(64);
                let signed = signed_name(width).ok_or_else(|| self.no_type(ty))?;
                let signed = format!("as_{signed}");
                (
                    Expression::call(&signed, &[&left]),
                    Expression::call(&signed, &[&right]),
                )
            }
            _ => (left, right),
        };
        self.needs.note_type(ty);
        let is_float = ty.is_float();
        let binary = |operator, rank| Expression::binary(&left, operator, &right, rank);
        let negated = |operator| Expression::not(&binary(operator, rank::RELATION));
        Ok(match (predicate, is_float) {
            ("eq" | "oeq", _) => binary("==", rank::EQUALITY),
            ("ne" | "une", _) => binary("!=", rank::EQUALITY),
            ("ult" | "slt", false) | ("olt", true) => binary("<", rank::RELATION),
            ("ule" | "sle", false) | ("ole", true) => binary("<=", rank::RELATION),
            ("ugt" | "sgt", false) | ("ogt", true) => binary(">", rank::RELATION),
            ("uge" | "sge", false) | ("oge", true) => binary(">=", rank::RELATION),
            // Also where one is NaN.
            ("ult", true) => negated(">="),
            ("ule", true) => negated(">"),
            ("ugt", true) => negated("<="),
            ("uge", true) => negated("<"),
            ("one", true) => Expression::call("islessgreater", &[&left, &right]),
            ("ueq", true) => Expression::not(&Expression::call("islessgreater", &[&left, &right])),
            ("ord", true) => Expression::call("isordered", &[&left, &right]),
            ("uno", true) => Expression::call("isunordered", &[&left, &right]),
            ("true", _) => Expression::constant("true"),
            ("false", _) => Expression::constant("false"),
            _ => {
                return Err(self.error(format!(
                    "the comparison `{predicate}` has no operator in OpenCL C"
                )));
            }
        })
    }

    /// `condition ? then : otherwise`, of a part of what is selected.
    pub(super) fn select(
        &mut self,
        condition: &Expression,
        ty: &Type,
        then: Expression,
        otherwise: Expression,
    ) -> Expression {
        if *ty == Type::BOOL && otherwise.text == "false" {
            return Expression::binary(condition, "&&", &then, rank::BOTH);
        }
        if *ty == Type::BOOL && then.text == "true" {
            return Expression::binary(condition, "||", &otherwise, rank::EITHER);
        }
        let text = format!(
            "{} ? {} : {}",
            condition.at(rank::EITHER),
            then.at(rank::EITHER),
            otherwise.at(rank::EITHER)
        );
        Expression::of(text, rank::CONDITIONAL, &[condition, &then, &otherwise])
    }

    pub(super) fn cast(
        &mut self,
        operation: CastOperation,
        from: &Operand,
        to: &Type,
    ) -> Result<Expression> {
        use CastOperation::{
            AddressSpaceCast, Bitcast, FloatExtend, FloatToSigned, FloatToUnsigned, FloatTruncate,
            IntegerToPointer, PointerToInteger, SignExtend, SignedToFloat, Truncate,
            UnsignedToFloat, ZeroExtend,
        };
        let of_vectors = matches!(to, Type::Vector(..)) || matches!(from.ty, Type::Vector(..));
        if of_vectors && operation != Bitcast {
            return Err(self.error(format!(
                "the conversion of `{}` to `{to}` cannot be written; convert the elements",
                from.ty
            )));
        }
        let value = self.operand(from)?;
        self.needs.note_type(&from.ty);
        self.needs.note_type(to);
        let name = match to {
            Type::Pointer(_) => String::new(),
            _ => match scalar_name(to) {
                Some(name) => name.to_owned(),
                None => vector_name(to).ok_or_else(|| self.no_type(to))?,
            },
        };
        let width = from.ty.integer_width().unwrap_or(0);
        let signed = |value: &Expression| {
            Some(Expression::call(
                &format!("as_{}", signed_name(width)?),
                &[value],
            ))
        };
        Ok(match operation {
            Truncate if *to == Type::BOOL => {
                let one = Expression::constant("1");
                let last = Expression::binary(&value, "&", &one, rank::AND);
                Expression::binary(&last, "!=", &Expression::constant("0"), rank::EQUALITY)
            }
            FloatTruncate if *to == Type::Half => {
                self.needs.halves = true;
                Expression::call("half_of_float", &[&value])
            }
            FloatExtend if from.ty == Type::Half => {
                self.needs.halves = true;
                let float = Expression::call("float_of_half", &[&value]);
                match to {
                    Type::Float => float,
                    _ => Expression::cast(&name, &float),
                }
            }
            Truncate | ZeroExtend | FloatTruncate | FloatExtend | FloatToUnsigned
            | UnsignedToFloat => Expression::cast(&name, &value),
            SignExtend if width == 1 => {
                let minus = Expression::constant(format!("({name})-1"));
                let zero = Expression::constant(format!("({name})0"));
                self.select(&value, to, minus, zero)
            }
            SignExtend => {
                let to_width = to.integer_width().unwrap_or(0);
                let value = signed(&value).ok_or_else(|| self.no_type(&from.ty))?;
                let wide = signed_name(to_width).ok_or_else(|| self.no_type(to))?;
                Expression::cast(&name, &Expression::cast(wide, &value))
            }
            SignedToFloat => {
                let value = signed(&value).ok_or_else(|| self.no_type(&from.ty))?;
                Expression::cast(&name, &value)
            }
            FloatToSigned => {
                let to_width = to.integer_width().unwrap_or(0);
                let wide = signed_name(to_width).ok_or_else(|| self.no_type(to))?;
                Expression::cast(&name, &Expression::cast(wide, &value))
            }
            PointerToInteger => Expression::cast(&name, &value),
            AddressSpaceCast => value,
            Bitcast if matches!((&from.ty, to), (Type::Pointer(_), Type::Pointer(_))) => value,
            Bitcast if from.ty == *to || scalar_name(&from.ty) == Some(&name) => value,
            Bitcast if width == 1 || *to == Type::BOOL => {
                return Err(self.error("the bits of truth values cannot be reinterpreted"));
            }
            Bitcast => Expression::call(&format!("as_{name}"), &[&value]),
            IntegerToPointer => {
                return Err(self.error(
                    "a pointer that is made of an integer has no address space; use the pointer that the integer came \
                     from, and `wrapping_add`",
                ));
            }
        })
    }

    /// The element of a vector.
    pub(super) fn extract_element(
        &mut self,
        vector: &Operand,
        index: &Operand,
    ) -> Result<Expression> {
        let index = self.known_index(&vector.ty, &index.value)?;
        let value = self.operand(vector)?;
        let text = format!("{}.s{index:x}", value.at(rank::PRIMARY));
        Ok(Expression::of(text, rank::PRIMARY, &[&value]))
    }

    /// The index of a vector's element.
    pub(super) fn known_index(&self, vector: &Type, index: &Value) -> Result<u64> {
        let index = index
            .as_integer()
            .and_then(|index| u64::try_from(index).ok());
        match (index, vector) {
            (Some(index), Type::Vector(count, _)) if index < *count => Ok(index),
            _ => {
                Err(self.error("the element of a vector must have a constant index; use an array"))
            }
        }
    }

    /// The elements that a shuffle takes, as a vector.
    pub(super) fn shuffle(
        &mut self,
        left: &Operand,
        right: &Operand,
        mask: &Operand,
    ) -> Result<Expression> {
        let (Type::Vector(count, element), Type::Vector(length, _)) = (&left.ty, &mask.ty) else {
            return Err(self.no_type(&left.ty));
        };
        let ty = Type::Vector(*length, element.clone());
        let name = vector_name(&ty).ok_or_else(|| self.no_type(&ty))?;
        let indices: Vec<u64> = match &mask.value {
            Value::Constant(Constant::Aggregate(_, elements)) => elements
                .iter()
                .map(|element| element.value.as_integer().unwrap_or(0) as u64)
                .collect(),
            Value::Constant(_) => vec![0; *length as usize],
            _ => return Err(self.error("a shuffle needs a constant mask")),
        };
        let first = self.operand(left)?;
        let second = match right.value {
            Value::Constant(_) => None,
            _ => Some(self.operand(right)?),
        };
        let mut texts = Vec::new();
        for index in indices {
            texts.push(match index.checked_sub(*count) {
                None => format!("{}.s{index:x}", first.at(rank::PRIMARY)),
                Some(index) => match &second {
                    Some(second) => format!("{}.s{index:x}", second.at(rank::PRIMARY)),
                    None => self.constant(element, &Constant::Zero)?.text,
                },
            });
        }
        let text = format!("({name})({})", texts.join(", "));
        let operands: Vec<&Expression> = std::iter::once(&first).chain(&second).collect();
        Ok(Expression::of(text, rank::UNARY, &operands))
    }
}
