//! Loads, stores and copies.

use super::body::{Body, pointer_type};
use super::expression::{Expression, rank};
use super::types::{self, Element, Space, Steps};
use crate::error::Result;
use crate::ir::{Call, LocalId, Operand, Type, Value};

/// How memory is accessed.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) align: Option<u64>,
    pub(super) volatile: bool,
}

impl Body<'_, '_> {
    pub(super) fn load(
        &mut self,
        result: Option<LocalId>,
        ty: &Type,
        pointer: &Operand,
        access: Access,
    ) -> Result<()> {
        let Some(id) = result else { return Ok(()) };
        let parts = self.parts(ty)?;
        if let [part] = parts.as_slice() {
            let mut value = self.read(&part.ty, pointer, 0, access, id)?;
            value.loads = true;
            return match access.volatile {
                true => {
                    self.settle()?;
                    self.assign((id, 0), ty, value)
                }
                false => self.define(id, ty, value),
            };
        }
        self.settle()?;
        for (index, part) in parts.iter().enumerate() {
            let value = self.read(&part.ty, pointer, part.offset, access, id)?;
            self.assign((id, index), &part.ty, value)?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        ty: &Type,
        pointer: &Operand,
        offset: u64,
        access: Access,
        result: LocalId,
    ) -> Result<Expression> {
        let held = match ty {
            Type::Pointer(_) => self.held_pointer((result, 0)),
            _ => None,
        };
        let target = self.place(ty, pointer, offset, access, held)?;
        Ok(match ty {
            Type::Integer(1) => {
                let one = Expression::constant("1");
                let last = Expression::binary(&target, "&", &one, rank::AND);
                Expression::binary(&last, "!=", &Expression::constant("0"), rank::EQUALITY)
            }
            _ => target,
        })
    }

    pub(super) fn store(
        &mut self,
        value: &Operand,
        pointer: &Operand,
        access: Access,
    ) -> Result<()> {
        let parts = self.parts(&value.ty)?;
        for (index, part) in parts.iter().enumerate() {
            let stored = self.part_of(&value.ty, &value.value, index)?;
            let held = match (&part.ty, &value.value) {
                (Type::Pointer(_), Value::Local(id)) => self.held_pointer((*id, index)),
                _ => None,
            };
            let target = self.place(&part.ty, pointer, part.offset, access, held)?;
            // The value and the address are read before the store, like all that waits.
            self.settle()?;
            self.say_source();
            let text = match (vector_store(&target.text), &part.ty) {
                (Some(rest), _) => format!(
                    "vstore{};",
                    rest.replacen('(', &format!("({}, ", stored.text), 1)
                ),
                (None, _) => format!("{} = {};", target.text, stored.text),
            };
            self.push(text, &[&target, &stored]);
        }
        Ok(())
    }

    fn held_pointer(&self, part: (LocalId, usize)) -> Option<String> {
        let space = self.space(part).unwrap_or(Space::Global);
        Some(pointer_type(space, self.spaces.element_of(part).name()))
    }

    /// The place of a scalar or a vector in memory, to read or to assign to.
    pub(super) fn place(
        &mut self,
        ty: &Type,
        pointer: &Operand,
        offset: u64,
        access: Access,
        held: Option<String>,
    ) -> Result<Expression> {
        let (space, element) = self.known_pointer(&pointer.value)?;
        let base = self.operand(pointer)?;
        let steps = Steps {
            constant: i128::from(offset),
            variable: Vec::new(),
        };
        let address = self.offset(base, (space, element), &steps)?;
        self.needs.note_type(ty);
        let Some((bytes, natural)) = types::layout(ty) else {
            return Err(self.no_type(ty));
        };
        let align = access.align.unwrap_or(natural).max(1);
        // An access further on is aligned no better than its offset.
        let align = match offset {
            0 => align,
            _ => align.min(1 << offset.trailing_zeros()),
        };
        let is_pointer = held.is_some();
        let name = match (held, types::scalar_name(ty), ty) {
            (Some(pointer), ..) => pointer,
            (None, Some(_), Type::Integer(1)) => "uchar".to_owned(),
            (None, Some(name), _) => name.to_owned(),
            (None, None, _) => {
                return self.vector_place(ty, &address, (space, element), align, access);
            }
        };
        let is_own = Element::of(ty) == Some(element) && !matches!(ty, Type::Pointer(_));
        let volatile = if access.volatile { "volatile " } else { "" };
        let needs_alias = self.is_mixed(space) && bytes > 1 || align < natural;
        if is_own && !needs_alias && !access.volatile {
            return Ok(address.target());
        }
        let keyword = space.keyword();
        let ty = match (needs_alias, is_pointer) {
            (true, _) => {
                let name = self.needs.alias(&name, align.min(natural));
                format!("{volatile}{keyword} {name} *")
            }
            // The space of the pointer itself is written behind its star.
            (false, true) => format!("{name}{volatile}{keyword} *"),
            (false, false) => format!("{volatile}{keyword} {name} *"),
        };
        let cast = Expression::cast(&ty, &address);
        Ok(cast.target())
    }

    fn vector_place(
        &mut self,
        ty: &Type,
        address: &Expression,
        (space, element): (Space, Element),
        align: u64,
        access: Access,
    ) -> Result<Expression> {
        let (Type::Vector(count, of), Some(name)) = (ty, types::vector_name(ty)) else {
            return Err(self.no_type(ty));
        };
        let (bytes, _) = types::layout(ty).unwrap_or((0, 1));
        let of_element = Element::of(of).ok_or_else(|| self.no_type(ty))?;
        if align >= bytes {
            let volatile = if access.volatile { "volatile " } else { "" };
            let cast =
                Expression::cast(&format!("{volatile}{} {name} *", space.keyword()), address);
            return Ok(cast.target());
        }
        if align < of_element.bytes() || access.volatile {
            return Err(self.error(format!(
                "OpenCL C cannot access `{ty}` at a multiple of {align} bytes"
            )));
        }
        let address = match of_element == element {
            true => address.clone(),
            false => Expression::cast(&pointer_type(space, of_element.name()), address),
        };
        let text = format!("vload{count}(0, {})", address.text);
        Ok(Expression::of(text, rank::PRIMARY, &[&address]))
    }

    /// `memcpy`, `memmove` and `memset`.
    pub(super) fn memory_call(&mut self, call: &Call) -> Result<()> {
        let name = call
            .symbol()
            .map_or("", |symbol| symbol.as_ref())
            .to_owned();
        let [to, from, length, volatile] = call.arguments.as_slice() else {
            return Err(self.error(format!("`{name}` does not have the intrinsic's arguments")));
        };
        if volatile.as_integer() != Some(0) {
            return Err(self.error("a volatile copy has no meaning in OpenCL C"));
        }
        let align = call.align_of(0).min(call.align_of(1));
        let known = length
            .as_integer()
            .and_then(|length| u64::try_from(length).ok());
        if known == Some(0) {
            return Ok(());
        }
        let (to_space, to_element) = self.known_pointer(to)?;
        if name.starts_with("llvm.memset.") {
            return self.fill(to, from, length, (to_space, to_element));
        }
        let (from_space, from_element) = self.known_pointer(from)?;
        let unit = match (known, to_element == from_element) {
            (Some(bytes), true)
                if bytes.is_multiple_of(to_element.bytes()) && align >= to_element.bytes() =>
            {
                to_element
            }
            _ => Element::Byte,
        };
        let pointer = Type::GENERIC_POINTER;
        let (to, from) = (self.value(&pointer, to)?, self.value(&pointer, from)?);
        let length = self.value(&Type::Integer(64), length)?;
        self.settle()?;
        self.say_source();
        let count = known.map(|bytes| bytes / unit.bytes());
        let vector = |count: u64| Type::Vector(count, unit.ty().into());
        if let Some(count @ (2 | 4 | 8 | 16)) = count
            && align >= count * unit.bytes()
            && let Some(ty) = types::vector_name(&vector(count))
        {
            let to = Expression::cast(&pointer_type(to_space, &ty), &to).target();
            let from = Expression::cast(&pointer_type(from_space, &ty), &from).target();
            self.push(format!("{} = {};", to.text, from.text), &[&to, &from]);
            return Ok(());
        }
        let is_move = name.starts_with("llvm.memmove.");
        if is_move && count != Some(1) {
            return Err(self.error(
                "a copy between places that may overlap cannot be written; copy the elements in a loop",
            ));
        }
        self.push("{", &[]);
        self.depth += 1;
        let of = |element: Element, pointer: Expression, space| match element == unit {
            true => pointer,
            false => Expression::cast(&pointer_type(space, unit.name()), &pointer),
        };
        let to = of(to_element, to, to_space);
        let from = of(from_element, from, from_space);
        let to = self.kept("to", &pointer_type(to_space, unit.name()), to);
        let from = self.kept("from", &pointer_type(from_space, unit.name()), from);
        match count {
            Some(count @ 1..=4) => {
                for index in 0..count {
                    let text = format!("{}[{index}] = {}[{index}];", to.text, from.text);
                    self.push(text, &[&to, &from]);
                }
            }
            count => {
                let count = count.map_or(length.at(rank::SUM), |count| count.to_string());
                let index = self.names.unique(Some("index"));
                let text = format!(
                    "for (ulong {index} = 0; {index} < {count}; ++{index}) {}[{index}] = {}[{index}];",
                    to.text, from.text
                );
                self.push(text, &[&to, &from, &length]);
            }
        }
        self.depth -= 1;
        self.push("}", &[]);
        Ok(())
    }

    fn fill(
        &mut self,
        to: &Value,
        byte: &Value,
        length: &Value,
        (space, _): (Space, Element),
    ) -> Result<()> {
        let to = self.value(&Type::GENERIC_POINTER, to)?;
        let byte = self.value(&Type::Integer(8), byte)?;
        let length = self.value(&Type::Integer(64), length)?;
        self.settle()?;
        self.say_source();
        let index = self.names.unique(Some("index"));
        let bytes = Expression::cast(&pointer_type(space, "uchar"), &to);
        let text = format!(
            "for (ulong {index} = 0; {index} < {}; ++{index}) {}[{index}] = {};",
            length.at(rank::SUM),
            bytes.at(rank::PRIMARY),
            byte.text
        );
        self.push(text, &[&bytes, &length, &byte]);
        Ok(())
    }
}

/// `4(0, p)` of `vload4(0, p)`.
fn vector_store(target: &str) -> Option<&str> {
    target.strip_prefix("vload")
}
