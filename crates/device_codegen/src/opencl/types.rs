//! What the IR's types are in OpenCL C: their names, sizes and parts.
//!
//! Integers are unsigned; operations that have a sign cast. A half is its bits. A struct or an
//! array that an instruction computes is one variable a part; in memory it is what its layout says.

use crate::ir::{Operand, Type};

/// Where a pointer leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Space {
    Global,
    Local,
    Constant,
    Private,
}

impl Space {
    /// OpenCL C's keyword.
    pub(super) fn keyword(self) -> &'static str {
        match self {
            Space::Global => "__global",
            Space::Local => "__local",
            Space::Constant => "__constant",
            Space::Private => "__private",
        }
    }

    /// Of a number of the IR's, unless it is the generic one.
    pub(super) fn of_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Space::Global),
            3 => Some(Space::Local),
            4 => Some(Space::Constant),
            5 => Some(Space::Private),
            _ => None,
        }
    }
}

/// The bytes of a pointer, as rustc lays out memory.
pub(super) const POINTER_BYTES: u64 = 8;

/// The name of a scalar type that is no pointer. `None` if OpenCL C has no such type.
pub(super) fn scalar_name(ty: &Type) -> Option<&'static str> {
    Some(match ty {
        Type::Integer(1) => "bool",
        Type::Integer(8) => "uchar",
        Type::Integer(16) | Type::Half => "ushort",
        Type::Integer(32) => "uint",
        Type::Integer(64) => "ulong",
        Type::Float => "float",
        Type::Double => "double",
        _ => return None,
    })
}

/// The signed type of the same width as an integer type.
pub(super) fn signed_name(width: u32) -> Option<&'static str> {
    Some(match width {
        8 => "char",
        16 => "short",
        32 => "int",
        64 => "long",
        _ => return None,
    })
}

/// The type that an element of memory has, by its name in OpenCL C. It decides what pointers look
/// like, not what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Element {
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
}

impl Element {
    pub(super) const ALL: [Element; 6] = [
        Element::Byte,
        Element::Short,
        Element::Int,
        Element::Long,
        Element::Float,
        Element::Double,
    ];

    /// The element that a scalar type is in memory.
    pub(super) fn of(ty: &Type) -> Option<Self> {
        Some(match ty {
            Type::Integer(1 | 8) => Element::Byte,
            Type::Integer(16) | Type::Half => Element::Short,
            Type::Integer(32) => Element::Int,
            Type::Integer(64) | Type::Pointer(_) => Element::Long,
            Type::Float => Element::Float,
            Type::Double => Element::Double,
            _ => return None,
        })
    }

    /// The element that all of a type consists of.
    pub(super) fn of_all(ty: &Type) -> Option<Self> {
        match ty {
            Type::Array(_, element) | Type::Vector(_, element) => Element::of_all(element),
            _ => Element::of(ty),
        }
    }

    pub(super) fn name(self) -> &'static str {
        ELEMENTS[self as usize].0
    }

    pub(super) fn bytes(self) -> u64 {
        ELEMENTS[self as usize].1
    }

    /// A type that it is in memory.
    pub(super) fn ty(self) -> Type {
        ELEMENTS[self as usize].2.clone()
    }
}

/// Name, bytes and type of each [`Element`], in their order.
static ELEMENTS: [(&str, u64, Type); Element::ALL.len()] = [
    ("uchar", 1, Type::Integer(8)),
    ("ushort", 2, Type::Integer(16)),
    ("uint", 4, Type::Integer(32)),
    ("ulong", 8, Type::Integer(64)),
    ("float", 4, Type::Float),
    ("double", 8, Type::Double),
];

/// Bytes and alignment of a type in memory, as rustc lays it out on a 64-bit host.
pub(super) fn layout(ty: &Type) -> Option<(u64, u64)> {
    Some(match ty {
        Type::Integer(1 | 8) => (1, 1),
        Type::Integer(16) | Type::Half => (2, 2),
        Type::Integer(32) | Type::Float => (4, 4),
        Type::Integer(64) | Type::Double => (8, 8),
        Type::Pointer(_) => (POINTER_BYTES, POINTER_BYTES),
        Type::Array(count, element) => {
            let (bytes, align) = layout(element)?;
            (bytes.checked_mul(*count)?, align)
        }
        Type::Vector(count, element) => {
            let (bytes, _) = layout(element)?;
            let bytes = bytes.checked_mul(*count)?;
            (bytes, bytes.next_power_of_two())
        }
        Type::Struct { packed, fields } => {
            let (mut end, mut align) = (0_u64, 1);
            for field in fields.iter() {
                let (bytes, of_field) = layout(field)?;
                let of_field = if *packed { 1 } else { of_field };
                end = end.next_multiple_of(of_field).checked_add(bytes)?;
                align = align.max(of_field);
            }
            (end.next_multiple_of(align), align)
        }
        _ => return None,
    })
}

/// The offset of a part of a type in bytes.
fn offset_of_part(ty: &Type, index: u64) -> Option<u64> {
    match ty {
        Type::Array(_, element) | Type::Vector(_, element) => layout(element)?.0.checked_mul(index),
        Type::Struct { packed, fields } => {
            let mut end = 0_u64;
            for (position, field) in fields.iter().enumerate() {
                let (bytes, align) = layout(field)?;
                let start = end.next_multiple_of(if *packed { 1 } else { align });
                if position as u64 == index {
                    return Some(start);
                }
                end = start.checked_add(bytes)?;
            }
            None
        }
        _ => None,
    }
}

/// What a `getelementptr` adds to its base.
pub(super) struct Steps<'i> {
    /// What is known, in bytes.
    pub(super) constant: i128,
    /// Indices that are not constant, and the bytes that each counts.
    pub(super) variable: Vec<(&'i Operand, u64)>,
}

/// The steps of a `getelementptr`. `None` if a type in it has no layout here.
pub(super) fn steps<'i>(source: &Type, indices: &'i [Operand]) -> Option<Steps<'i>> {
    let mut steps = Steps {
        constant: 0,
        variable: Vec::new(),
    };
    let mut ty = source;
    for (position, index) in indices.iter().enumerate() {
        let known = index.value.as_integer();
        let stride = match (position, ty) {
            (0, _) => layout(ty)?.0,
            (_, Type::Struct { .. }) => {
                let field = u64::try_from(known?).ok()?;
                let offset = offset_of_part(ty, field)?;
                steps.constant = steps.constant.checked_add(i128::from(offset))?;
                ty = ty.element(field)?;
                continue;
            }
            _ => {
                ty = ty.element(0)?;
                layout(ty)?.0
            }
        };
        match known {
            Some(count) => {
                let bytes = count.checked_mul(i128::from(stride))?;
                steps.constant = steps.constant.checked_add(bytes)?;
            }
            None => steps.variable.push((index, stride)),
        }
    }
    Some(steps)
}

/// A scalar part of a type, and its offset in memory.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) ty: Type,
    pub(super) offset: u64,
}

/// More parts than this are not kept in variables.
const MOST_PARTS: usize = 64;

/// The scalars and vectors that a type consists of, in order. `None` if there are too many, or one
/// that OpenCL C lacks.
pub(super) fn parts(ty: &Type) -> Option<Vec<Part>> {
    let mut found = Vec::new();
    collect(ty, 0, &mut found)?;
    Some(found)
}

fn collect(ty: &Type, offset: u64, found: &mut Vec<Part>) -> Option<()> {
    let count = match ty {
        Type::Array(count, _) => *count,
        Type::Struct { fields, .. } => fields.len() as u64,
        Type::Vector(..) => vector_name(ty).map(|_| 0)?,
        Type::Pointer(_) => 0,
        _ => scalar_name(ty).map(|_| 0)?,
    };
    if !matches!(ty, Type::Array(..) | Type::Struct { .. }) {
        found.push(Part {
            ty: ty.clone(),
            offset,
        });
        return (found.len() <= MOST_PARTS).then_some(());
    }
    for index in 0..count {
        let within = offset.checked_add(offset_of_part(ty, index)?)?;
        collect(ty.element(index)?, within, found)?;
    }
    Some(())
}

/// The first part, and the number of parts, of what a path of indices leads to.
pub(super) fn part_range(ty: &Type, path: &[u64]) -> Option<(usize, usize)> {
    let mut first = 0;
    let mut ty = ty;
    for index in path {
        for before in 0..*index {
            first += parts(ty.element(before)?)?.len();
        }
        ty = ty.element(*index)?;
    }
    Some((first, parts(ty)?.len()))
}

/// `float4`, of the widths that OpenCL C has with the size that rustc gives them.
pub(super) fn vector_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Vector(count @ (2 | 4 | 8 | 16), element) if **element != Type::BOOL => {
            Some(format!("{}{count}", scalar_name(element)?))
        }
        _ => None,
    }
}
