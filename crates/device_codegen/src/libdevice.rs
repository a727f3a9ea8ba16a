//! One table of the mathematical functions that libdevice has, by the names under which Rust's
//! code calls them.
//!
//! `f32::sin` of `std` is LLVM's `llvm.sin.f32`, and `f32::tan` calls the C library's `tanf`. Both
//! are functions of libdevice: `__nv_sinf` and `__nv_tanf`.

use std::collections::BTreeMap;

use crate::ir::{FunctionType, Module, Symbol, Type};

/// How many numbers a function takes; all are of its result's type.
#[derive(Clone, Copy)]
enum Takes {
    One,
    Two,
    Three,
    /// And a 32-bit integer.
    OneAndInteger,
}

use Takes::{One, OneAndInteger, Three, Two};

/// The prefix of libdevice's functions.
const PREFIX: &str = "__nv_";

/// The name in libdevice and in C for `f64`, which has an `f` behind it for `f32`; what it takes;
/// the name in LLVM, if LLVM has such an intrinsic and libNVVM lacks it.
#[rustfmt::skip]
const TABLE: &[(&str, Takes, Option<&str>)] = &[
    ("acos",      One,   Some("acos")),
    ("acosh",     One,   None),
    ("asin",      One,   Some("asin")),
    ("asinh",     One,   None),
    ("atan",      One,   Some("atan")),
    ("atan2",     Two,   Some("atan2")),
    ("atanh",     One,   None),
    ("cbrt",      One,   None),
    ("ceil",      One,   None),
    ("cos",       One,   Some("cos")),
    ("cosh",      One,   Some("cosh")),
    ("erf",       One,   None),
    ("erfc",      One,   None),
    ("exp",       One,   Some("exp")),
    ("exp10",     One,   Some("exp10")),
    ("exp2",      One,   Some("exp2")),
    ("expm1",     One,   None),
    ("fabs",      One,   None),
    ("fdim",      Two,   None),
    ("floor",     One,   None),
    ("fma",       Three, None),
    ("fmax",      Two,   None),
    ("fmin",      Two,   None),
    ("fmod",      Two,   None),
    ("hypot",     Two,   None),
    ("ldexp",     OneAndInteger, Some("ldexp")),
    ("lgamma",    One,   None),
    ("log",       One,   Some("log")),
    ("log10",     One,   Some("log10")),
    ("log1p",     One,   None),
    ("log2",      One,   Some("log2")),
    ("nearbyint", One,   None),
    ("nextafter", Two,   None),
    ("pow",       Two,   Some("pow")),
    ("powi",      OneAndInteger, Some("powi")),
    ("remainder", Two,   None),
    ("rint",      One,   None),
    ("round",     One,   Some("round")),
    ("scalbn",    OneAndInteger, None),
    ("sin",       One,   Some("sin")),
    ("sinh",      One,   Some("sinh")),
    ("sqrt",      One,   None),
    ("tan",       One,   Some("tan")),
    ("tanh",      One,   Some("tanh")),
    ("tgamma",    One,   None),
    ("trunc",     One,   None),
];

/// The function of libdevice that an intrinsic of LLVM is, if the call has its type: `__nv_sinf`
/// for `sin`, the base name, of `float (float)`.
pub(crate) fn of_intrinsic(base: &str, ty: &FunctionType) -> Option<Symbol> {
    let (name, takes, _) = TABLE
        .iter()
        .find(|(.., intrinsic)| *intrinsic == Some(base))?;
    Some(format!("{PREFIX}{name}{}", suffix(*takes, ty)?).into())
}

/// Gives the C library's functions that the module declares and nothing defines the names of
/// libdevice.
pub(crate) fn rename_c_functions(module: &mut Module) {
    let functions = module.functions.iter();
    let declared = functions.filter(|(_, function)| function.is_declaration());
    let renamed: BTreeMap<Symbol, Symbol> = declared
        .filter_map(|(symbol, function)| Some((symbol.clone(), of_c(symbol, &function.ty)?)))
        .collect();
    module.rename(&renamed);
}

fn of_c(symbol: &str, ty: &FunctionType) -> Option<Symbol> {
    let is_named = |(name, takes, _): &&(&str, Takes, _)| {
        let suffix = suffix(*takes, ty);
        suffix.is_some_and(|suffix| symbol.strip_prefix(name) == Some(suffix))
    };
    TABLE.iter().find(is_named)?;
    Some(format!("{PREFIX}{symbol}").into())
}

/// The suffix of the name of a function of this type; `None` if the function does not take these
/// parameters.
fn suffix(takes: Takes, ty: &FunctionType) -> Option<&'static str> {
    let x = &ty.result;
    let parameters = match takes {
        One => vec![x.clone()],
        Two => vec![x.clone(); 2],
        Three => vec![x.clone(); 3],
        OneAndInteger => vec![x.clone(), Type::Integer(32)],
    };
    match x {
        Type::Float if ty.parameters == parameters => Some("f"),
        Type::Double if ty.parameters == parameters => Some(""),
        _ => None,
    }
}
