//! Loads and stores.

use super::body::Body;
use super::expression::{Expression, rank};
use super::types::{self, Element};
use crate::error::Result;
use crate::ir::{LocalId, Operand, Type};

impl Body<'_, '_> {
    pub(super) fn load(
        &mut self,
        result: Option<LocalId>,
        ty: &Type,
        pointer: &Operand,
        align: Option<u64>,
    ) -> Result<()> {
        let Some(id) = result else { return Ok(()) };
        let place = self.place(ty, pointer, align)?;
        let mut value = match ty {
            Type::Integer(1) => {
                let one = Expression::constant("1");
                let last = Expression::binary(&place, "&", &one, rank::AND);
                Expression::binary(&last, "!=", &Expression::constant("0"), rank::EQUALITY)
            }
            _ => place,
        };
        value.loads = true;
        self.define(id, ty, value)
    }

    pub(super) fn store(
        &mut self,
        value: &Operand,
        pointer: &Operand,
        align: Option<u64>,
    ) -> Result<()> {
        let stored = self.operand(value)?;
        let place = self.place(&value.ty, pointer, align)?;
        // The value and the address are read before the store, like all that waits.
        self.settle()?;
        self.say_source();
        let text = format!("{} = {};", place.text, stored.text);
        self.push(text, &[&place, &stored]);
        Ok(())
    }

    /// The place of a scalar in memory, to read or to assign to.
    fn place(&mut self, ty: &Type, pointer: &Operand, align: Option<u64>) -> Result<Expression> {
        if let Type::Pointer(_) = ty {
            return Err(self.error(
                "a pointer in memory has no address space that is known; pass it as a parameter of the kernel",
            ));
        }
        let (space, element) = self.known_pointer(&pointer.value)?;
        let address = self.operand(pointer)?;
        self.needs.note_type(ty);
        let (Some((bytes, natural)), Some(name)) = (types::layout(ty), types::scalar_name(ty))
        else {
            return Err(self.no_type(ty));
        };
        let name = match ty {
            Type::Integer(1) => "uchar",
            _ => name,
        };
        let align = align.unwrap_or(natural).max(1);
        let needs_alias = self.is_mixed(space) && bytes > 1 || align < natural;
        if Element::of(ty) == Some(element) && !needs_alias {
            return Ok(address.target());
        }
        let name = match needs_alias {
            true => self.needs.alias(name, align.min(natural)),
            false => name.to_owned(),
        };
        let ty = format!("{} {name} *", space.keyword());
        Ok(Expression::cast(&ty, &address).target())
    }
}
