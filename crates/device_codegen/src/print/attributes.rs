//! Attributes that libNVVM knows in both dialects; all others are hints that it can do without.

use super::printer::Printer;
use crate::ir::{Attribute, AttributeArgument, Type};

const PARAMETER_FLAGS: &str = "\
    noalias nocapture nonnull readnone readonly signext writeonly zeroext";

const FUNCTION_FLAGS: &str = "\
    alwaysinline cold convergent noinline noreturn nounwind readnone readonly";

impl Printer<'_> {
    /// The attributes of a parameter, an argument or a result, each with a blank before it.
    pub(super) fn parameter_attributes(&self, attributes: &[Attribute], ty: &Type) -> String {
        let is_pointer = matches!(ty, Type::Pointer(_));
        let texts = attributes.iter().filter_map(|attribute| {
            let name = attribute.name.as_str();
            match (&attribute.argument, name) {
                (None, _) if PARAMETER_FLAGS.split(' ').any(|flag| flag == name) => {
                    Some(format!(" {name}"))
                }
                (Some(AttributeArgument::Text(what)), "captures") if what == "none" => {
                    Some(" nocapture".to_owned())
                }
                (Some(AttributeArgument::Number(align)), "align") if is_pointer => {
                    Some(format!(" align {align}"))
                }
                (
                    Some(AttributeArgument::Number(bytes)),
                    "dereferenceable" | "dereferenceable_or_null",
                ) if *bytes > 0 => Some(format!(" {name}({bytes})")),
                _ => None,
            }
        });
        texts.collect()
    }

    /// The attributes of a function or a call, each with a blank before it.
    pub(super) fn function_attributes(&self, attributes: &[Attribute]) -> String {
        FUNCTION_FLAGS
            .split(' ')
            .filter(|flag| attributes.iter().any(|attribute| attribute.name == *flag))
            .map(|flag| format!(" {flag}"))
            .collect()
    }
}
