//! Calls: LLVM's intrinsics by name, and the attributes that a dialect knows.

use super::Outcome;
use super::{copies, floats, halves, integers, overflow};
use crate::Dialect;
use crate::error::Result;
use crate::intrinsics;
use crate::ir::{Attribute, AttributesExt, Call, Callee, Editor, Type, Value};
use crate::libdevice;

/// What becomes of an intrinsic of LLVM.
#[derive(Clone, Copy)]
enum Rule {
    /// Both dialects have it.
    Keep,
    /// Only a hint or a promise: dropped.
    Drop,
    /// Its first argument replaces it.
    FirstArgument,
    /// A constant `false`: what the optimiser could find out, it has found out already.
    False,
    /// Opaque pointers keep it; for typed ones it is written out.
    ModernOnly(Rewrite),
    /// It is written out for both.
    Everywhere(Rewrite),
    /// It makes a vector of halves, and is written out for both by the elements.
    Halves,
    /// Both dialects have it, but for 128 bits it is written out.
    Wide(Rewrite),
    /// Both dialects have it for 16, 32 and 64 bits; else it is written out.
    Overflow,
    /// Both dialects have it for 32 bits; else it is written out.
    Funnel,
    /// Both dialects have it, but are wrong where the target begins within the source.
    Overlapping,
}

/// Writes a call out in other instructions: the editor, the intrinsic's base name, the call.
type Rewrite = fn(&mut Editor<'_>, &str, &Call) -> Result<Value>;

use Rule::{
    Drop, Everywhere, False, FirstArgument, Funnel, Halves, Keep, ModernOnly, Overflow,
    Overlapping, Wide,
};

/// By base name: the text between `llvm.` and the types.
const RULES: &[(&str, Rule)] = &[
    ("abs", ModernOnly(integers::absolute)),
    ("assume", Drop),
    ("bitreverse", Wide(integers::reverse_in_halves)),
    ("bswap", Wide(integers::reverse_in_halves)),
    ("ceil", Keep),
    ("copysign", Everywhere(floats::copy_sign)),
    ("ctlz", Wide(integers::count_in_halves)),
    ("ctpop", Wide(integers::count_in_halves)),
    ("cttz", Wide(integers::count_in_halves)),
    ("debugtrap", Keep),
    ("donothing", Drop),
    ("expect", FirstArgument),
    ("experimental.noalias.scope.decl", Drop),
    ("fabs", Everywhere(floats::by_nvvm_name)),
    ("floor", Keep),
    ("fma", Keep),
    ("fmuladd", Keep),
    ("fptosi.sat", Everywhere(floats::to_integer_saturating)),
    ("fptoui.sat", Everywhere(floats::to_integer_saturating)),
    ("fshl", Funnel),
    ("fshr", Funnel),
    ("is.constant", False),
    ("is.fpclass", ModernOnly(floats::is_class)),
    // libNVVM (12.9, both dialects) puts two slots in one place that are in use at the same time,
    // where a third was in use before: the contents of an array change under it.
    ("lifetime.end", Drop),
    ("lifetime.start", Drop),
    ("maximum", ModernOnly(floats::ordered_extremum)),
    ("maximumnum", Everywhere(floats::extremum_of_numbers)),
    ("maxnum", Keep),
    ("memcpy", Keep),
    ("memmove", Overlapping),
    ("memset", Keep),
    ("minimum", ModernOnly(floats::ordered_extremum)),
    ("minimumnum", Everywhere(floats::extremum_of_numbers)),
    ("minnum", Keep),
    ("nearbyint", Everywhere(floats::by_nvvm_name)),
    ("rint", Everywhere(floats::by_nvvm_name)),
    ("roundeven", Everywhere(floats::by_nvvm_name)),
    ("sadd.sat", ModernOnly(integers::saturating)),
    ("sadd.with.overflow", Overflow),
    ("scmp", ModernOnly(integers::three_way)),
    ("sideeffect", Drop),
    ("smax", ModernOnly(integers::extremum)),
    ("smin", ModernOnly(integers::extremum)),
    ("smul.with.overflow", Overflow),
    ("sqrt", Keep),
    ("ssub.sat", ModernOnly(integers::saturating)),
    ("ssub.with.overflow", Overflow),
    ("trap", Keep),
    ("trunc", Everywhere(floats::by_nvvm_name)),
    ("uadd.sat", ModernOnly(integers::saturating)),
    ("uadd.with.overflow", Overflow),
    ("ucmp", ModernOnly(integers::three_way)),
    ("umax", ModernOnly(integers::extremum)),
    ("umin", ModernOnly(integers::extremum)),
    ("umul.with.overflow", Overflow),
    ("usub.sat", ModernOnly(integers::saturating)),
    ("usub.with.overflow", Overflow),
    // `core::hint::spin_loop()`
    ("x86.sse2.pause", Drop),
    ("x86.vcvtps2ph.128", Halves),
    ("x86.vcvtps2ph.256", Halves),
];

pub(super) fn rewrite(
    editor: &mut Editor<'_>,
    call: &mut Call,
    dialect: Dialect,
) -> Result<Outcome> {
    if dialect == Dialect::TypedPointers {
        // Fast-math flags of LLVM 7 are for calls of floats only, and its `select` and `phi` have
        // none.
        if !call.ty.result.is_float() {
            call.flags.clear();
        }
    }
    let name = match &call.callee {
        Callee::Symbol(name) => name.clone(),
        Callee::Pointer(_) => {
            mark_convergent(&mut call.attributes);
            return Ok(Outcome::Keep);
        }
        Callee::Assembly(_) => return Ok(Outcome::Keep),
    };
    let Some(intrinsic) = name.strip_prefix("llvm.") else {
        if !intrinsics::is_offered(&name) {
            mark_convergent(&mut call.attributes);
        }
        return Ok(Outcome::Keep);
    };
    if intrinsic.starts_with("nvvm.") {
        return Ok(Outcome::Keep);
    }
    let base = base_name(intrinsic);
    if let Some(function) = libdevice::of_intrinsic(base, &call.ty) {
        call.callee = Callee::Symbol(function);
        // Fast-math flags and promises about an intrinsic.
        call.flags.clear();
        return Ok(Outcome::Keep);
    }
    let Ok(found) = RULES.binary_search_by(|(known, _)| (*known).cmp(base)) else {
        return Err(editor.error(format!(
            "the intrinsic `{name}` cannot be translated for a GPU; use cuda_std's function instead"
        )));
    };
    match RULES[found].1 {
        Keep => {
            adapt_memory_intrinsic(base, call, dialect);
            Ok(Outcome::Keep)
        }
        Overlapping => {
            adapt_memory_intrinsic(base, call, dialect);
            Ok(copies::rewrite(editor, call))
        }
        Drop => Ok(Outcome::Replace(None)),
        FirstArgument => Ok(Outcome::Replace(call.arguments.first().cloned())),
        False => Ok(Outcome::Replace(Some(Value::integer(0)))),
        ModernOnly(_) if dialect == Dialect::OpaquePointers => Ok(Outcome::Keep),
        Wide(_) if call.ty.result != Type::Integer(128) => {
            // libNVVM may make one call of two that differ in the promise that the number is not
            // zero, and this of no constant then, which it refuses. Nothing is gained by it.
            if dialect == Dialect::TypedPointers
                && matches!(base, "ctlz" | "cttz")
                && let [_, promise] = call.arguments.as_mut_slice()
            {
                *promise = Value::integer(0);
            }
            Ok(Outcome::Keep)
        }
        Overflow => match call.ty.parameters.first() {
            Some(Type::Integer(16 | 32 | 64)) => Ok(Outcome::Keep),
            _ => Ok(Outcome::Replace(Some(overflow::with_overflow(
                editor, base, call,
            )?))),
        },
        Funnel if call.ty.result == Type::Integer(32) => Ok(Outcome::Keep),
        Funnel => Ok(Outcome::Replace(Some(integers::funnel_shift(
            editor, base, call,
        )?))),
        Halves => {
            let halves = halves::from_floats(editor, base, call, dialect)?;
            Ok(Outcome::Replace(Some(halves)))
        }
        ModernOnly(rewrite) | Everywhere(rewrite) | Wide(rewrite) => {
            if matches!(call.ty.result, Type::Vector(..)) {
                return Err(editor.error(format!(
                    "the intrinsic `{name}` on vectors cannot be translated for a GPU"
                )));
            }
            Ok(Outcome::Replace(Some(rewrite(editor, base, call)?)))
        }
    }
}

/// A function may hold a barrier, so that no call of it may be moved into or out of a branch. As
/// in clang for CUDA, all functions are marked, and libNVVM removes the mark from those that it
/// sees contain none.
pub(super) fn mark_convergent(attributes: &mut Vec<Attribute>) {
    if !attributes.has("convergent") {
        attributes.push(Attribute::flag("convergent"));
    }
}

/// `umin` of `umin.i32`: the name without the types that LLVM appends.
fn base_name(intrinsic: &str) -> &str {
    let mut end = intrinsic.len();
    while let Some(dot) = intrinsic[..end].rfind('.') {
        if !is_type_suffix(&intrinsic[dot + 1..end]) {
            break;
        }
        end = dot;
    }
    &intrinsic[..end]
}

/// `i32`, `f64`, `bf16`, `p0`, `v4f32`
fn is_type_suffix(part: &str) -> bool {
    let digits = part.trim_start_matches(|character: char| character.is_ascii_alphabetic());
    let letters = &part[..part.len() - digits.len()];
    if letters == "v" {
        let element = digits.trim_start_matches(|character: char| character.is_ascii_digit());
        return is_type_suffix(element);
    }
    matches!(letters, "i" | "f" | "bf" | "p")
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Typed pointers are named by pointee.
fn adapt_memory_intrinsic(base: &str, call: &mut Call, dialect: Dialect) {
    if dialect == Dialect::TypedPointers
        && base.starts_with("mem")
        && let Callee::Symbol(name) = &mut call.callee
    {
        *name = name.replace(".p0", ".p0i8").into();
    }
}
