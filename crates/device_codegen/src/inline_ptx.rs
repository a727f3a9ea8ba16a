//! `asm!` for the device: x86 operands, as rustc wrote them, become PTX operands.
//!
//! rustc types the operands of `asm!` for the host: `${0:x}`, `${1:q}` and constraints such as
//! `=x` and `r`. In PTX a register's class follows from its type: `f` f32, `d` f64, `h` 16 bits,
//! `r` 32 bits, `l` 64 bits and pointers.

use crate::error::{Error, Result};
use crate::ir::{
    Attribute, AttributeArgument, Call, Callee, InlineAssembly, Instruction, Module, Operation,
    Type,
};

/// Rewrites all inline assembly that rustc wrote.
pub(crate) fn translate(module: &mut Module) -> Result<()> {
    for function in module.functions.values_mut() {
        let location = function.location.clone();
        for block in &mut function.blocks {
            block
                .instructions
                .retain(|instruction| !is_empty(instruction));
            for instruction in &mut block.instructions {
                let Operation::Call(call) = &mut instruction.operation else {
                    continue;
                };
                let Callee::Assembly(assembly) = &call.callee else {
                    continue;
                };
                match translate_one(assembly, call) {
                    Ok(translated) => {
                        call.callee = Callee::Assembly(translated);
                        call.attributes = attributes(call);
                    }
                    Err(problem) => {
                        let line = instruction.line;
                        let location = crate::error::Location { line, ..location };
                        return Err(Error::new(&location, problem));
                    }
                }
            }
        }
    }
    Ok(())
}

/// `asm!("", options(nomem))`: with it `cuda_std` keeps a convergent call from being copied, see
/// its `device.rs`.
fn is_empty(instruction: &Instruction) -> bool {
    match &instruction.operation {
        Operation::Call(call) => match &call.callee {
            Callee::Assembly(assembly) => {
                assembly.text.is_empty()
                    && call.arguments.is_empty()
                    && instruction.result.is_none()
                    && !assembly.constraints.contains("memory")
            }
            _ => false,
        },
        _ => false,
    }
}

fn translate_one(
    assembly: &InlineAssembly,
    call: &Call,
) -> std::result::Result<InlineAssembly, String> {
    Ok(InlineAssembly {
        side_effect: assembly.side_effect,
        text: without_modifiers(&assembly.text),
        constraints: constraints(&assembly.constraints, call)?,
    })
}

/// `options(pure, nomem)` and `options(pure, readonly)` are `memory(none)` and `memory(read)`.
/// Whether the text needs all threads of a warp is unknown, so it is assumed to.
fn attributes(call: &Call) -> Vec<Attribute> {
    let mut attributes = vec![Attribute::flag("convergent")];
    for attribute in &call.attributes {
        match (attribute.name.as_str(), &attribute.argument) {
            ("memory", Some(AttributeArgument::Text(what))) if what == "none" => {
                attributes.push(Attribute::flag("readnone"));
            }
            ("memory", Some(AttributeArgument::Text(what))) if what == "read" => {
                attributes.push(Attribute::flag("readonly"));
            }
            _ => {}
        }
    }
    attributes
}

/// `${0:x}` becomes `$0`; `$$`, a dollar, stays.
fn without_modifiers(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        if let [b'$', b'$', tail @ ..] = rest {
            out.extend(b"$$");
            rest = tail;
            continue;
        }
        if let [b'$', b'{', tail @ ..] = rest
            && let Some(end) = tail.iter().position(|byte| *byte == b'}')
        {
            let operand = &tail[..end];
            let digits = operand
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits > 0 && matches!(operand.get(digits), None | Some(b':')) {
                out.push(b'$');
                out.extend(&operand[..digits]);
                // `$1` and a digit after it would be read as one number.
                rest = &tail[end + 1..];
                if rest.first().is_some_and(u8::is_ascii_digit) {
                    out.truncate(out.len() - digits);
                    out.extend([b"{".as_slice(), &operand[..digits], b"}"].concat());
                }
                continue;
            }
        }
        out.push(*first);
        rest = tail;
    }
    out
}

fn constraints(written: &str, call: &Call) -> std::result::Result<String, String> {
    let results: Vec<&Type> = match &call.ty.result {
        Type::Void => Vec::new(),
        Type::Struct { fields, .. } => fields.iter().collect(),
        other => vec![other],
    };
    let mut results = results.into_iter();
    let mut parameters = call.ty.parameters.iter();
    let mut out = Vec::new();
    for constraint in written
        .split(',')
        .filter(|constraint| !constraint.is_empty())
    {
        if let Some(clobber) = constraint.strip_prefix("~") {
            if clobber == "{memory}" {
                out.push(constraint.to_owned());
            }
            continue;
        }
        let missing =
            || format!("the constraint `{constraint}` of the inline assembly has no operand");
        if let Some(output) = constraint.strip_prefix('=') {
            let (early, output) = match output.strip_prefix('&') {
                Some(output) => ("&", output),
                None => ("", output),
            };
            if output.starts_with('*') {
                return Err("inline assembly cannot write through a memory operand".to_owned());
            }
            let letter = register_class(results.next().ok_or_else(missing)?, constraint)?;
            out.push(format!("={early}{letter}"));
            continue;
        }
        let ty = parameters.next().ok_or_else(missing)?;
        if constraint.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push(constraint.to_owned());
        } else if matches!(constraint, "i" | "n" | "s") {
            return Err(format!(
                "the operand of type `{ty}` of the inline assembly is a `const` or a `sym`; write its value into the text"
            ));
        } else {
            out.push(register_class(ty, constraint)?.to_string());
        }
    }
    if results.next().is_some() || parameters.next().is_some() {
        return Err("the inline assembly has more operands than constraints".to_owned());
    }
    Ok(out.join(","))
}

/// PTX's register class of a type.
fn register_class(ty: &Type, constraint: &str) -> std::result::Result<char, String> {
    match ty {
        Type::Float => Ok('f'),
        Type::Double => Ok('d'),
        Type::Integer(16) | Type::Half | Type::BFloat => Ok('h'),
        Type::Integer(32) => Ok('r'),
        Type::Integer(64) | Type::Pointer(_) => Ok('l'),
        _ => Err(format!(
            "PTX has no register for the operand `{constraint}` of type `{ty}`; pass 16, 32 or 64 bits"
        )),
    }
}
