//! Attributes of functions, results and parameters, kept as they are written.

use super::Type;

/// `noundef`, `align 4`, `dereferenceable(24)`, `sret([3 x i64])`, `"target-cpu"="x86-64"`, ...
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) argument: Option<AttributeArgument>,
}

/// The text behind an attribute's name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AttributeArgument {
    Number(u64),
    Type(Type),
    /// The text between the parentheses, such as `argmem: read`.
    Text(String),
}

/// Questions to a list of attributes.
pub(crate) trait AttributesExt {
    fn has(&self, name: &str) -> bool;
}

impl AttributesExt for [Attribute] {
    fn has(&self, name: &str) -> bool {
        self.iter().any(|attribute| attribute.name == name)
    }
}

impl Attribute {
    /// An attribute that is its name alone.
    pub(crate) fn flag(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            argument: None,
        }
    }
}
