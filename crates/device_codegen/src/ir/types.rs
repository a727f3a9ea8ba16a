//! First-class types and function types.

use std::fmt;
use std::sync::Arc;

/// A type of the IR. Named types are replaced by what they name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Void,
    /// Width in bits.
    Integer(u32),
    Half,
    BFloat,
    Float,
    Double,
    /// Address space; what it points to is not said.
    Pointer(u32),
    Array(u64, Arc<Type>),
    Vector(u64, Arc<Type>),
    Struct {
        packed: bool,
        fields: Arc<[Type]>,
    },
    /// Only as an argument of an intrinsic.
    Metadata,
}

/// Result and parameters of a function. Device code has no variadic ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionType {
    pub(crate) result: Type,
    pub(crate) parameters: Vec<Type>,
}

impl Type {
    pub(crate) const BOOL: Type = Type::Integer(1);
    pub(crate) const GENERIC_POINTER: Type = Type::Pointer(0);

    /// A struct that is not packed.
    pub(crate) fn tuple(fields: impl IntoIterator<Item = Type>) -> Type {
        Type::Struct {
            packed: false,
            fields: fields.into_iter().collect(),
        }
    }

    /// The type of element `index`; for arrays and vectors every index has the same one.
    pub(crate) fn element(&self, index: u64) -> Option<&Type> {
        match self {
            Type::Array(_, element) | Type::Vector(_, element) => Some(element),
            Type::Struct { fields, .. } => fields.get(usize::try_from(index).ok()?),
            _ => None,
        }
    }

    /// The width of an integer type.
    pub(crate) fn integer_width(&self) -> Option<u32> {
        match self {
            Type::Integer(width) => Some(*width),
            _ => None,
        }
    }

    pub(crate) fn is_float(&self) -> bool {
        matches!(self, Type::Half | Type::BFloat | Type::Float | Type::Double)
    }

    /// How many types it is made of: what printing it costs.
    pub(crate) fn weight(&self) -> u64 {
        match self {
            Type::Array(_, element) | Type::Vector(_, element) => {
                element.weight().saturating_add(1)
            }
            Type::Struct { fields, .. } => fields
                .iter()
                .fold(1, |sum, field| field.weight().saturating_add(sum)),
            _ => 1,
        }
    }

    /// Writes the type, its pointers by `pointer`.
    pub(crate) fn write(
        &self,
        out: &mut dyn fmt::Write,
        pointer: &dyn Fn(u32) -> String,
    ) -> fmt::Result {
        match self {
            Type::Void => out.write_str("void"),
            Type::Integer(width) => write!(out, "i{width}"),
            Type::Half => out.write_str("half"),
            Type::BFloat => out.write_str("bfloat"),
            Type::Float => out.write_str("float"),
            Type::Double => out.write_str("double"),
            Type::Pointer(space) => out.write_str(&pointer(*space)),
            Type::Metadata => out.write_str("metadata"),
            Type::Array(count, element) => {
                write!(out, "[{count} x ")?;
                element.write(out, pointer)?;
                out.write_str("]")
            }
            Type::Vector(count, element) => {
                write!(out, "<{count} x ")?;
                element.write(out, pointer)?;
                out.write_str(">")
            }
            Type::Struct { packed, fields } => {
                out.write_str(if *packed { "<{ " } else { "{ " })?;
                for (position, field) in fields.iter().enumerate() {
                    if position > 0 {
                        out.write_str(", ")?;
                    }
                    field.write(out, pointer)?;
                }
                out.write_str(if *packed { " }>" } else { " }" })
            }
        }
    }
}

/// As LLVM 22 writes it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &|space| match space {
            0 => "ptr".to_owned(),
            _ => format!("ptr addrspace({space})"),
        })
    }
}
